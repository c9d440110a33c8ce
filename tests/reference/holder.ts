/**
 * Takes deliveries, prints their ids and settles none, until it is killed.
 *
 * @module
 */
import process from "node:process";
import { RedisStreamsBroker, type RedisStreamsBrokerOptions } from "../../adapters/redis/mod.ts";

const [topic = "", options = "{}"] = process.argv.slice(2);
const broker = new RedisStreamsBroker(JSON.parse(options) as RedisStreamsBrokerOptions);
for await (const delivery of broker.subscribe(topic)) console.log(`held ${delivery.envelope.id}`);
