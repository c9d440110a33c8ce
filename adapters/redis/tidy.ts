import type { RedisContext } from "./context.ts";
import type { PartitionKeys } from "./keys.ts";
import { TIDY } from "./scripts/topics.ts";

/** A consumer without pending entries that was not seen for this long is removed. */
const IDLE_MS = 3_600_000;

/** Removes consumers of a group that are long gone, and with `leaving` ourselves; never one with entries pending. Never rejects. */
export async function tidy(
  { main, consumer }: RedisContext,
  group: string,
  keys: readonly PartitionKeys[],
  leaving: boolean,
): Promise<void> {
  await Promise.all(
    keys.map(({ stream, owners }) =>
      main.run(TIDY, [stream, owners], [group, consumer, String(IDLE_MS), leaving ? "1" : "0"]).catch(() => {})
    ),
  );
}
