import type { RedisContext } from "./context.ts";
import { replies } from "./errors.ts";
import type { PartitionKeys } from "./keys.ts";
import { READ, READ_FENCE } from "./scripts/reading.ts";
import { type Entry, readEntries, readFlat } from "./wire.ts";

/**
 * Reads new entries of a partition, if the owner key holds `token`; answers `undefined` if not, and nothing is delivered.
 *
 * One script could do this, but carrying the bodies through it doubles the server's work. So instead: both keys that change
 * with ownership are watched; a small script touches one of them if the owner key does not hold our token; and a transaction
 * reads, or does nothing if either key was changed, ran out, or was touched. All of it goes out in one write. Where the server
 * queues nothing because its memory is full, the one script serves.
 */
export async function fencedRead(
  { main, consumer }: RedisContext,
  keys: PartitionKeys,
  group: string,
  token: string,
  count: number,
): Promise<Entry[] | undefined> {
  const { stream, owner, epoch } = keys;
  let replied: unknown;
  try {
    replied = await main.transact([
      ["WATCH", owner, epoch],
      // Not by its hash: a server that had forgotten it would let the transaction pass unfenced.
      ["EVAL", READ_FENCE.text, "2", owner, epoch, token],
      ["MULTI"],
      ["XREADGROUP", "GROUP", group, consumer, "COUNT", String(count), "STREAMS", stream, ">"],
    ]);
  } catch (error) {
    if (!replies(error, "OOM")) throw error;
    return readFlat(await main.run(READ, [stream, owner], [token, group, consumer, String(count)], { bytes: true }));
  }
  if (replied === null) return undefined;
  const reply = (replied as readonly unknown[])[0];
  if (reply instanceof Error) throw reply;
  return readEntries(reply)[0]?.entries ?? [];
}
