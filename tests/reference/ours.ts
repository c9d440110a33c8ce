/**
 * This library's side of the tests with the reference system.
 *
 * @module
 */
import { RedisStreamsBroker, type RedisStreamsBrokerOptions } from "../../adapters/redis/mod.ts";
import type { BrokerAdapter, Delivery, SubscribeOptions } from "../../core/contract.ts";
import { type Child, child, fresh, type TestContext } from "../support/test.ts";

/** Names that no other test uses. */
export function names(): { readonly prefix: string; readonly topic: string } {
  return { prefix: fresh("shared"), topic: "orders" };
}

/** A broker of ours, in a worker; closed when the test ends. */
export function ours(context: TestContext, options: RedisStreamsBrokerOptions): RedisStreamsBroker {
  const broker = new RedisStreamsBroker({ source: "/ours", logger: false, ...options });
  context.cleanup(() => broker.close({ drainMs: 1_000 }));
  return broker;
}

/** The next deliveries, unsettled. */
export async function take(
  broker: BrokerAdapter,
  topic: string,
  count: number,
  options: SubscribeOptions = {},
): Promise<Delivery[]> {
  const taken: Delivery[] = [];
  for await (const delivery of broker.subscribe(topic, options)) {
    taken.push(delivery);
    if (taken.length === count) break;
  }
  return taken;
}

/** The next deliveries, each one acknowledged and confirmed; all there are without a `count`. */
export async function drain(
  broker: BrokerAdapter,
  topic: string,
  count: number = Infinity,
  options: SubscribeOptions = count === Infinity ? { idleMs: 0 } : {},
): Promise<Delivery[]> {
  const taken: Delivery[] = [];
  for await (const delivery of broker.subscribe(topic, options)) {
    taken.push(delivery);
    await delivery.ack({ confirm: true });
    if (taken.length >= count) break;
  }
  return taken;
}

/** The JSON object that an envelope is on the wire. */
export function wireOf(delivery: Delivery): unknown {
  return JSON.parse(JSON.stringify(delivery.envelope));
}

/** A process of ours that takes what it can get and settles nothing; prints each id, and is there to be killed. */
export function holder(context: TestContext, topic: string, options: RedisStreamsBrokerOptions): Child {
  const running = child(new URL("./holder.ts", import.meta.url), [topic, JSON.stringify(options)], {}, {
    timeoutMs: 60_000,
  });
  context.cleanup(async () => {
    running.kill();
    await running.done;
  });
  return running;
}
