import type { NativeOutcome, Raw } from "../../core/transport.ts";
import type { RedisContext, RedisNative } from "./context.ts";
import { isReply, refusal } from "./errors.ts";
import { Held } from "./held.ts";
import type { PartitionKeys } from "./keys.ts";
import { CLAIM } from "./scripts/reading.ts";
import { ACK, RELEASE, SETTLE_MINE } from "./scripts/settling.ts";
import { type Entry, isOlder, readClaimed } from "./wire.ts";

/** Ids that one script takes; more would not fit the stack of `unpack`. */
const MAX_IDS = 1_000;
/** How often the floor is saved along with acks. */
const FLOOR_MS = 1_000;

type Mode = "lost" | "mine" | "idle";

/** One stream of a topic that is read with `ordered: false`: what we hold of it, and how it is claimed and settled. */
export class Shard {
  readonly partition: number;
  readonly keys: PartitionKeys;
  /** Replies were lost: entries may be pending under our name that nobody saw. */
  lost = false;
  /** Entries may be pending under our name from before this process. */
  mine = false;
  /** It is time to look for what others left idle. */
  idle = false;
  readonly #context: RedisContext;
  readonly #group: string;
  readonly #held = new Held();
  #mode: Mode | undefined;
  #from = "-";
  #floorAt = 0;
  /** A look at pending entries that is on its way. */
  #claiming: Promise<unknown> | undefined;

  constructor(context: RedisContext, group: string, partition: number, keys: PartitionKeys) {
    this.#context = context;
    this.#group = group;
    this.partition = partition;
    this.keys = keys;
  }

  /** Whether pending entries should be looked at before new ones are read. */
  get pending(): boolean {
    return this.#mode !== undefined || this.lost || this.mine || this.idle;
  }

  /** Claims the next pending entries that are due, at most `max`; a full page goes on at the next call. */
  claim(max: number): Promise<Raw[]> {
    const work = this.#claim(max);
    const done = work.then(() => {}, () => {}).finally(() => {
      if (this.#claiming === done) this.#claiming = undefined;
    });
    this.#claiming = done;
    return work;
  }

  async #claim(max: number): Promise<Raw[]> {
    const { main, consumer, options, clock } = this.#context;
    if (this.lost && this.#mode !== "lost") this.#begin("lost");
    else if (this.#mode === undefined) this.#begin(this.mine ? "mine" : "idle");
    const mode = this.#mode!;
    const count = Math.min(max, MAX_IDS);
    const sentAt = clock.monotonic();
    const reply = await main.run(
      CLAIM,
      [this.keys.stream, this.keys.owner, this.keys.owners],
      [
        ...["", this.#group, consumer, this.#from, String(count), String(options.minIdleMs), mode],
        ...this.#held.ids(sentAt - options.minIdleMs),
      ],
      { bytes: true },
    );
    const { lookedAt, lastId, entries } = readClaimed(reply)!;
    if (lookedAt >= count) {
      this.#from = `(${lastId}`;
    } else {
      this[mode] = false;
      this.#mode = undefined;
    }
    return this.take(entries, sentAt);
  }

  #begin(mode: Mode): void {
    this.#mode = mode;
    this.#from = "-";
  }

  /** Makes entries read at `sentAt` ours, and answers them as they are handed out. */
  take(entries: readonly Entry[], sentAt: number): Raw[] {
    return this.#held.take(entries, this.partition, 0, sentAt, this.#context.options.minIdleMs);
  }

  /**
   * Settles. In the first half of a confirmed window nobody else can have claimed the entry, so XACK will do; later the entry
   * must still be pending under our name.
   */
  async ack(natives: readonly RedisNative[]): Promise<readonly NativeOutcome[]> {
    const { clock, options, main } = this.#context;
    const safe = clock.monotonic() - options.minIdleMs / 2;
    const floor = clock.monotonic() - this.#floorAt >= FLOOR_MS;
    if (floor) this.#floorAt = clock.monotonic();
    const outcomes = await this.#inChunks(natives, async (some) => {
      const ids = some.map((native) => native.id);
      if (some.some((native) => native.heldSince < safe)) return await this.#settle(floor ? "ack+floor" : "ack", ids);
      const reply = await main.run(
        ACK,
        [this.keys.stream, this.keys.owner, this.keys.floor],
        ["", this.#group, floor ? "1" : "0", ...ids],
      );
      if (Array.isArray(reply)) return reply.map((done) => done === 1);
      return ids.map(() => (reply as number) > 0);
    });
    return outcomes.map((done, at): NativeOutcome => {
      const native = natives[at]!;
      this.#held.letGo(native);
      return done || native.doubtful ? "settled" : "stale";
    });
  }

  /** Begins another window for what is still ours. */
  async extend(natives: readonly RedisNative[]): Promise<readonly NativeOutcome[]> {
    const sentAt = this.#context.clock.monotonic();
    const outcomes = await this.#inChunks(
      natives,
      (some) => this.#settle("extend", some.map((native) => native.id)),
      false,
    );
    return outcomes.map((done, at): NativeOutcome => {
      const native = natives[at]!;
      if (done) native.heldSince = sentAt;
      else this.#held.letGo(native);
      return done ? "settled" : "stale";
    });
  }

  /** Lets others have these at once, uncounted. */
  async release(natives: readonly RedisNative[]): Promise<readonly NativeOutcome[]> {
    const ours = await this.#notAgain(natives);
    const given = [...ours];
    const done = await this.#inChunks(given, (some) => this.#giveBack(some.map((native) => native.id)), false);
    const back = new Set(given.filter((_, at) => done[at]));
    return natives.map((native): NativeOutcome => {
      if (ours.has(native)) this.#held.letGo(native);
      return back.has(native) ? "settled" : "stale";
    });
  }

  /**
   * Those of them that are not ours by another hold. Their own lease ran out unnoticed by the server, which may have given the
   * entry to us a second time since, or this moment: to give it back then would take it out of the hands that have it now.
   */
  async #notAgain(natives: readonly RedisNative[]): Promise<ReadonlySet<RedisNative>> {
    if (natives.every((native) => native.batch !== undefined)) return new Set(natives);
    await this.#claiming;
    const held = new Set(this.#held.ids());
    return new Set(natives.filter((native) => native.batch !== undefined || !held.has(native.id)));
  }

  /** Lets others have everything that is pending under our name, seen or not. */
  async releaseAll(): Promise<void> {
    await this.#giveBack([]);
    this.#held.clear();
  }

  async #giveBack(ids: readonly string[]): Promise<boolean[]> {
    const { main, consumer, options } = this.#context;
    const reply = await main.run(
      RELEASE,
      [this.keys.stream, this.keys.owner],
      ["", this.#group, consumer, String(options.minIdleMs), ...ids],
    );
    return (reply as number[]).map((done) => done === 1);
  }

  async #settle(what: "ack" | "ack+floor" | "extend", ids: readonly string[]): Promise<boolean[]> {
    const { main, consumer } = this.#context;
    let lowest = ids[0]!;
    let highest = lowest;
    for (const id of ids) {
      if (isOlder(id, lowest)) lowest = id;
      else if (isOlder(highest, id)) highest = id;
    }
    const reply = await main.run(
      SETTLE_MINE,
      [this.keys.stream, this.keys.floor],
      [this.#group, consumer, what, lowest, highest, ...ids],
    );
    return (reply as number[]).map((done) => done === 1);
  }

  async #inChunks(
    natives: readonly RedisNative[],
    run: (some: readonly RedisNative[]) => Promise<boolean[]>,
    settles = true,
  ): Promise<boolean[]> {
    try {
      if (natives.length <= MAX_IDS) return natives.length === 0 ? [] : await run(natives);
      const out: boolean[] = [];
      for (let at = 0; at < natives.length; at += MAX_IDS) out.push(...await run(natives.slice(at, at + MAX_IDS)));
      return out;
    } catch (error) {
      if (settles) this.doubt(natives);
      throw isReply(error) ? refusal("settling", error) : error;
    }
  }

  /** These may be settled, but the caller is told of a failure and will ask again. */
  doubt(natives: readonly RedisNative[]): void {
    for (const native of natives) native.doubtful = true;
  }
}
