import type { NativeOutcome } from "../../core/transport.ts";
import type { Consumer, RabbitNative } from "./consumer.ts";

/** Settles natives consumer by consumer and puts the outcomes together in the order given. */
export async function byConsumer(
  natives: readonly RabbitNative[],
  settle: (consumer: Consumer, natives: readonly RabbitNative[]) => Promise<readonly NativeOutcome[]>,
): Promise<readonly NativeOutcome[]> {
  const first = natives[0]?.consumer;
  if (first === undefined) return [];
  if (natives.every(({ consumer }) => consumer === first)) return await settle(first, natives);
  const parts = new Map<Consumer, number[]>();
  natives.forEach(({ consumer }, at) => {
    const part = parts.get(consumer);
    if (part === undefined) parts.set(consumer, [at]);
    else part.push(at);
  });
  const outcomes = new Array<NativeOutcome>(natives.length).fill("stale");
  await Promise.all(Array.from(parts, async ([consumer, at]) => {
    (await settle(consumer, at.map((n) => natives[n]!))).forEach((outcome, n) => outcomes[at[n]!] = outcome);
  }));
  return outcomes;
}
