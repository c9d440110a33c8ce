import type { NativeOutcome } from "../../core/transport.ts";
import type { RedisNative } from "./context.ts";

/** How natives of one partition are settled. */
export interface PartitionSettler {
  settle(natives: readonly RedisNative[]): Promise<readonly NativeOutcome[]>;
  /** These are settled, but the caller is told of a failure and will ask again. */
  doubt(natives: readonly RedisNative[]): void;
}

/**
 * Settles natives partition by partition and puts the outcomes together in the order given. Where one partition fails, all
 * is reported as failed, and the others remember what they did.
 */
export async function byPartition(
  natives: readonly RedisNative[],
  settlerOf: (partition: number) => PartitionSettler | undefined,
): Promise<readonly NativeOutcome[]> {
  const parts = new Map<number, number[]>();
  natives.forEach(({ partition }, at) => {
    const part = parts.get(partition);
    if (part === undefined) parts.set(partition, [at]);
    else part.push(at);
  });
  const outcomes = new Array<NativeOutcome>(natives.length).fill("stale");
  const done: (() => void)[] = [];
  const results = await Promise.allSettled(Array.from(parts, async ([partition, at]) => {
    const settler = settlerOf(partition);
    if (settler === undefined) return;
    const ours = at.map((n) => natives[n]!);
    (await settler.settle(ours)).forEach((outcome, n) => outcomes[at[n]!] = outcome);
    done.push(() => settler.doubt(ours));
  }));
  const failure = results.find((result) => result.status === "rejected");
  if (failure === undefined) return outcomes;
  for (const remember of done) remember();
  throw failure.reason;
}
