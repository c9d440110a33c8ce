import { Bell } from "../../core/bell.ts";
import { pause } from "../../core/clock.ts";
import type { EdaError } from "../../core/errors.ts";
import type { BatchPayload } from "./client.ts";
import type { KafkaContext } from "./context.ts";
import type { Member } from "./member.ts";
import type { OwnedPartition } from "./owned_partition.ts";

/** How long other partitions of a broker wait for one that is full, before it is left out of fetches. */
const PATIENCE_MS = 200;
const BEAT_MS = 100;

/** What the intake needs of its subscription. */
export interface IntakeEvents {
  member(): Member | undefined;
  /** The partition is lost as it was, and read from `offset`; undefined if it is no longer ours. */
  begunAnew(part: OwnedPartition, offset: bigint): OwnedPartition | undefined;
  /** What came could not be taken in, and is asked for again. */
  failed(error: EdaError): void;
  /** There may be something to hand out. */
  arrived(): void;
}

/**
 * Takes in what the client fetches, as far as there is room.
 *
 * The client fetches all partitions of a broker in one request, hands over what came, and asks again when that was handled. A
 * partition that it is told to leave out comes back only with its next request, and that one may wait for half a second. So a
 * partition that is full first makes the client wait, which beats meanwhile, and is left out only when that takes long.
 */
export class Intake {
  readonly #context: KafkaContext;
  readonly #topic: string;
  readonly #group: string;
  readonly #parts: ReadonlyMap<number, OwnedPartition>;
  readonly #events: IntakeEvents;
  readonly #room = new Bell();
  #starts: Promise<ReadonlyMap<number, bigint>> | undefined;

  constructor(
    context: KafkaContext,
    topic: string,
    group: string,
    parts: ReadonlyMap<number, OwnedPartition>,
    events: IntakeEvents,
  ) {
    this.#context = context;
    this.#topic = topic;
    this.#group = group;
    this.#parts = parts;
    this.#events = events;
  }

  /** The partitions were divided anew: where others left off has to be asked for. */
  divided(): void {
    this.#starts = undefined;
  }

  /** Something was handed out or lost, so that there may be room. */
  taken(): void {
    this.#room.ring();
    const again: number[] = [];
    for (const part of this.#parts.values()) {
      if (!part.paused || part.full) continue;
      part.paused = false;
      again.push(part.partition);
    }
    if (again.length > 0) this.#events.member()?.pause(again, false);
  }

  /** Takes in one batch. What it rejects with, the client tries again, without a word to anybody. */
  async batch(payload: BatchPayload): Promise<void> {
    const part = await this.#place(payload).catch((error) => {
      this.#events.failed(error);
      throw error;
    });
    if (part !== undefined) await this.#makeRoom(part, payload);
  }

  /** Adds a batch to its partition; undefined where it is not wanted. */
  async #place(payload: BatchPayload): Promise<OwnedPartition | undefined> {
    const { batch } = payload;
    let part = this.#parts.get(batch.partition);
    if (part === undefined) return undefined;
    if (part.position === undefined) await this.located();
    if (this.#parts.get(batch.partition) !== part || part.position === undefined) return undefined;
    const asked = BigInt(batch.fetchedOffset);
    if (asked > part.position && asked !== part.skipsTo && !(await this.#isGone(part, asked))) {
      // It was asked for before the partition was begun anew.
      this.#events.member()?.seek(part.partition, part.position);
      return undefined;
    }
    if (asked < part.position && await this.#isCutOff(part)) {
      this.#context.events.signal("records-cut-off", this.#topic, { group: this.#group, partition: part.partition });
      part = this.#events.begunAnew(part, asked);
      if (part === undefined) return undefined;
    }
    const last = batch.lastOffset();
    part.push(batch.messages, BigInt(last) + 1n, BigInt(batch.highWatermark));
    payload.resolveOffset(last);
    this.#events.arrived();
    return part;
  }

  async #makeRoom(part: OwnedPartition, payload: BatchPayload): Promise<void> {
    const { clock } = this.#context;
    const until = clock.monotonic() + PATIENCE_MS;
    const never = new AbortController().signal;
    while (part.full && this.#parts.get(part.partition) === part && this.#events.member() !== undefined) {
      if (clock.monotonic() >= until && this.#othersHaveRoom(part)) {
        part.paused = true;
        this.#events.member()?.pause([part.partition], true);
        return;
      }
      await this.#room.wait(clock, BEAT_MS, never);
      await payload.heartbeat();
    }
  }

  #othersHaveRoom(part: OwnedPartition): boolean {
    const { leaders } = this.#context.topics.known(this.#topic) ?? { leaders: [] };
    const leader = leaders[part.partition];
    return [...this.#parts.values()].some((other) => leaders[other.partition] === leader && !other.full);
  }

  /** Whether the records between what we have and `asked` no longer exist. */
  async #isGone(part: OwnedPartition, asked: bigint): Promise<boolean> {
    const ends = await this.#ends();
    const low = ends.find(({ partition }) => partition === part.partition)?.low;
    if (low === undefined || BigInt(low) < asked || part.position === undefined) return false;
    this.#context.events.signal("records-expired", this.#topic, {
      group: this.#group,
      partition: part.partition,
      count: Number(asked - part.position),
    });
    return true;
  }

  /**
   * Whether the log ends before what we have read: it was deleted and made anew, or lost its end with a broker. The client then
   * begins again where its log begins.
   */
  async #isCutOff(part: OwnedPartition): Promise<boolean> {
    const ends = await this.#ends();
    const high = ends.find(({ partition }) => partition === part.partition)?.high;
    return high !== undefined && part.position !== undefined && BigInt(high) < part.position;
  }

  #ends() {
    return this.#context.admin.call("asking for the ends of a topic", (admin) => admin.fetchTopicOffsets(this.#topic));
  }

  /** Resolves when it is known of all partitions where they begin. */
  async located(): Promise<void> {
    for (;;) {
      if ([...this.#parts.values()].every((part) => part.position !== undefined)) return;
      const asked = this.#starts ??= this.#find();
      let starts: ReadonlyMap<number, bigint>;
      try {
        starts = await asked;
      } catch (error) {
        if (this.#starts === asked) this.#starts = undefined;
        throw error;
      }
      if (this.#starts !== asked) continue;
      for (const part of this.#parts.values()) part.position ??= starts.get(part.partition);
      if ([...this.#parts.values()].every((part) => part.position !== undefined)) return;
      this.#starts = undefined;
      await pause(this.#context.clock, BEAT_MS);
    }
  }

  async #find(): Promise<ReadonlyMap<number, bigint>> {
    const { admin } = this.#context;
    const [ends, committed] = await Promise.all([
      this.#ends(),
      admin.call(
        "asking where the group stands",
        (client) => client.fetchOffsets({ groupId: this.#group, topics: [this.#topic] }),
      ),
    ]);
    const starts = new Map(ends.map(({ partition, low }) => [partition, BigInt(low)]));
    for (const { partition, offset } of committed[0]?.partitions ?? []) {
      const low = starts.get(partition) ?? 0n;
      if (BigInt(offset) > low) starts.set(partition, BigInt(offset));
    }
    return starts;
  }
}
