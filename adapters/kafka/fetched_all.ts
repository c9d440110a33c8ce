import type { Bell } from "../../core/bell.ts";
import { BrokerUnavailableError } from "../../core/errors.ts";
import type { FetchRequest } from "../../core/transport.ts";
import type { KafkaContext } from "./context.ts";
import type { OwnedPartition } from "./owned_partition.ts";

/** How long to wait for records that a partition's end promises; what is there may be another's open transaction. */
const PROMISED_MS = 3_000;
const LOOK_MS = 50;

/** What is waited on. */
export interface Fetching {
  readonly parts: ReadonlyMap<number, OwnedPartition>;
  /** Rings whenever something arrives or changes. */
  readonly bell: Bell;
  joined(): boolean;
  /** Whether waiting makes no sense any more. */
  over(): boolean;
  /** Resolves when it is known of all partitions where they begin. */
  located(): Promise<void>;
}

/**
 * Waits until all that our partitions hold at this moment was fetched, or something of it can be handed out: so that a read
 * which does not wait says "empty" only of what is.
 *
 * @throws BrokerUnavailableError when the group does not let this member in in time.
 */
export async function fetchedAll(
  { clock, admin, options }: KafkaContext,
  topic: string,
  { window, signal }: FetchRequest,
  { parts, bell, joined, over, located }: Fetching,
): Promise<void> {
  const ended = (): boolean => signal.aborted || over();
  const joinUntil = clock.monotonic() + options.commandTimeoutMs * 0.9;
  while (!joined()) {
    const left = joinUntil - clock.monotonic();
    if (ended()) return;
    if (left <= 0) throw new BrokerUnavailableError("the group has not let this member in yet");
    await bell.wait(clock, left, signal);
  }
  const share = Math.max(1, Math.floor(window / Math.max(1, parts.size)));
  const ready = (): boolean => [...parts.values()].some((part) => part.room(share, options.maxUncommitted) > 0);
  if (ready() || ended() || parts.size === 0) return;
  await located();
  const ends = await admin.call("asking for the end of a topic", (client) => client.fetchTopicOffsets(topic));
  const behind = (): boolean =>
    ends.some(({ partition, high }) => {
      const part = parts.get(partition);
      // One that holds its share will bring nothing, however long we wait.
      return part !== undefined && part.buffered === 0 && (part.position ?? 0n) < BigInt(high) &&
        part.tracker.unsettled < share;
    });
  const until = clock.monotonic() + Math.min(PROMISED_MS, options.commandTimeoutMs);
  while (!ready() && behind() && !ended()) {
    const left = until - clock.monotonic();
    if (left <= 0) return;
    await bell.wait(clock, Math.min(left, LOOK_MS), signal);
  }
}
