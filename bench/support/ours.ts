/**
 * This library in the place of the raw client.
 *
 * @module
 */
import { RedisStreamsBroker, type RedisStreamsBrokerOptions } from "../../adapters/redis/mod.ts";
import { TopicKeys } from "../../adapters/redis/keys.ts";
import type { Delivery } from "../../core/contract.ts";
import { freshOrder, SOURCE, subjectOf, TYPE } from "./event.ts";
import { type Measure, Stopwatch } from "./rounds.ts";

/** A broker on the benchmark's server. */
export function redisBroker(url: string, options: RedisStreamsBrokerOptions = {}): RedisStreamsBroker {
  return new RedisStreamsBroker({ url, source: SOURCE, logger: false, ...options });
}

/** The key of a topic's stream. */
export function streamOf(topic: string): string {
  return new TopicKeys("xsm", topic, 1).streams[0]!;
}

/**
 * Consumes `count` messages in the plain loop, from the first one handed out to the broker's answer to the last ack. The group
 * is new, so it begins at the first entry of the stream.
 */
export async function consume(
  broker: RedisStreamsBroker,
  topic: string,
  group: string,
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
  broker: RedisStreamsBroker,
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
  broker: RedisStreamsBroker,
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
