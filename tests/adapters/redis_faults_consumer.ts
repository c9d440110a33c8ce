import { RedisStreamsBroker, type RedisStreamsBrokerOptions } from "../../adapters/redis/mod.ts";
import { consume } from "./faults_consumer.ts";

await consume((options: RedisStreamsBrokerOptions) => new RedisStreamsBroker({ logger: false, ...options }));
