/**
 * This library in the place of the raw client.
 *
 * @module
 */
import type { AsyncBroker } from "../../core/broker.ts";
import type { Delivery } from "../../core/contract.ts";
import type { Place } from "./broker.ts";
import { freshOrder, subjectOf, TYPE } from "./event.ts";
import { type Measure, Stopwatch } from "./rounds.ts";

/**
 * Consumes `count` messages in the plain loop, from the first one handed out to the broker's answer to the last ack.
 */
export async function consume(
  broker: AsyncBroker,
  { topic, group }: Place,
  count: number,
  handle: (delivery: Delivery) => void,
): Promise<Measure> {
  let watch: Stopwatch | undefined;
  let done = 0;
  for await (const delivery of broker.subscribe(topic, { group })) {
    watch ??= new Stopwatch();
    handle(delivery);
    if (++done < count) {
      await delivery.ack();
    } else {
      await delivery.ack({ confirm: true });
      break;
    }
  }
  return watch!.stop(count);
}

/** Publishes `count` events, `inFlight` at a time. */
export async function publish(
  broker: AsyncBroker,
  topic: string,
  count: number,
  inFlight: number,
): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) {
      const n = next++;
      await broker.publish(topic, { type: TYPE, subject: subjectOf(n), data: freshOrder() });
    }
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
}

/** Publishes `count` events with `publishAll`, `size` at a time. */
export async function publishAll(
  broker: AsyncBroker,
  topic: string,
  count: number,
  size: number,
): Promise<void> {
  for (let from = 0; from < count; from += size) {
    const messages = Array.from({ length: Math.min(size, count - from) }, (_, n) => ({
      type: TYPE,
      subject: subjectOf(from + n),
      data: freshOrder(),
    }));
    await broker.publishAll(topic, messages);
  }
}
