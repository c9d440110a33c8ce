/**
 * Brokers on NATS, and consumers in processes of their own.
 *
 * @module
 */
import { NatsJetStreamBroker, type NatsJetStreamBrokerOptions } from "../../adapters/nats/mod.ts";
import type { TestContext } from "../support/test.ts";
import type { ConsumerPlan } from "./faults_consumer.ts";
import { Consumer, GROUP } from "./faults_rig.ts";

export * from "./faults_rig.ts";

/** A broker of the test, closed with it. */
export function natsBroker(context: TestContext, options: NatsJetStreamBrokerOptions): NatsJetStreamBroker {
  const broker = new NatsJetStreamBroker({ group: GROUP, source: "/faults", logger: false, ...options });
  context.cleanup(() => broker.close({ drainMs: 500 }));
  return broker;
}

/** A consumer in a process of its own; killed with the test. */
export class NatsConsumer extends Consumer {
  constructor(context: TestContext, plan: ConsumerPlan<NatsJetStreamBrokerOptions>) {
    super(context, new URL("./nats_faults_consumer.ts", import.meta.url), plan);
  }
}
