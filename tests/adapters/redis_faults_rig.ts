/**
 * What the tests of consumers under faults share: brokers, and consumers in processes of their own, on Redis.
 *
 * @module
 */
import { RedisStreamsBroker, type RedisStreamsBrokerOptions } from "../../adapters/redis/mod.ts";
import { fresh, type TestContext } from "../support/test.ts";
import type { ConsumerPlan } from "./faults_consumer.ts";
import { Consumer as AnyConsumer, GROUP } from "./faults_rig.ts";

export { assertFirstInOrder, Collector, events, GROUP, TOPIC } from "./faults_rig.ts";

/** A broker of the test, closed with it. */
export function makeBroker(context: TestContext, options: RedisStreamsBrokerOptions): RedisStreamsBroker {
  const broker = new RedisStreamsBroker({ group: GROUP, source: "/faults", logger: false, ...options });
  context.cleanup(() => broker.close({ drainMs: 500 }));
  return broker;
}

/** A consumer in a process of its own; killed with the test. */
export class Consumer extends AnyConsumer {
  constructor(context: TestContext, plan: Omit<ConsumerPlan<RedisStreamsBrokerOptions>, "topic">) {
    super(context, new URL("./redis_faults_consumer.ts", import.meta.url), plan);
  }
}

/** A server's name space for one test. */
export function space(url: string): { url: string; prefix: string } {
  return { url, prefix: fresh("t") };
}
