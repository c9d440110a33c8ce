import { NatsJetStreamBroker, type NatsJetStreamBrokerOptions } from "../../adapters/nats/mod.ts";
import { consume } from "./faults_consumer.ts";

await consume((options: NatsJetStreamBrokerOptions) => new NatsJetStreamBroker({ logger: false, ...options }));
