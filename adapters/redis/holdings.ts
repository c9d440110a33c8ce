import type { NativeOutcome } from "../../core/transport.ts";
import type { PartitionSettler } from "./by_partition.ts";
import type { RedisContext, RedisNative } from "./context.ts";
import { isReply, refusal } from "./errors.ts";
import type { PartitionKeys } from "./keys.ts";
import { ACK, RELEASE } from "./scripts/settling.ts";

/** What settling tells its partition. */
export interface HoldingsEvents {
  /** The server refused because the partition is not ours. */
  refused(): void;
  /** Less is held. */
  changed(): void;
  /** Something we held was not pending any more. */
  missing(): void;
}

/** How often the floor is saved along with acks. */
const FLOOR_MS = 1_000;
/** Ids that one script takes; more would not fit the stack of `unpack`. */
const MAX_IDS = 1_000;

/** What was handed out of an owned partition in the present epoch and is not settled, and how it is settled. */
export class Holdings implements PartitionSettler {
  readonly #context: RedisContext;
  readonly #group: string;
  readonly #keys: PartitionKeys;
  readonly #events: HoldingsEvents;
  readonly #held = new Set<string>();
  /** Settled perhaps: the answer was lost, or the entry is gone. That they are not pending is no surprise then. */
  readonly #doubtful = new Set<string>();
  #token = "";
  #floorAt = 0;

  constructor(context: RedisContext, group: string, keys: PartitionKeys, events: HoldingsEvents) {
    this.#context = context;
    this.#group = group;
    this.#keys = keys;
    this.#events = events;
  }

  get size(): number {
    return this.#held.size;
  }

  /** The ids held. */
  ids(): Iterable<string> {
    return this.#held;
  }

  /** An epoch begins, under this token. */
  begin(token: string): void {
    this.end();
    this.#token = token;
  }

  /** The epoch is over. */
  end(): void {
    this.#held.clear();
    this.#doubtful.clear();
    this.#token = "";
  }

  /** One was handed out; `gone` = its entry is no longer in the stream, and perhaps no longer pending. */
  add(id: string, gone: boolean): void {
    this.#held.add(id);
    if (gone) this.#doubtful.add(id);
  }

  /** Settles natives of the present epoch. */
  async settle(natives: readonly RedisNative[]): Promise<NativeOutcome[]> {
    const ids = natives.map((native) => native.id);
    if (ids.length <= MAX_IDS) return await this.#ackSome(ids);
    const chunks: Promise<NativeOutcome[]>[] = [];
    for (let at = 0; at < ids.length; at += MAX_IDS) chunks.push(this.#ackSome(ids.slice(at, at + MAX_IDS)));
    return (await Promise.all(chunks)).flat();
  }

  async #ackSome(ids: readonly string[]): Promise<NativeOutcome[]> {
    const { main, clock } = this.#context;
    const now = clock.monotonic();
    const floor = now - this.#floorAt >= FLOOR_MS;
    if (floor) this.#floorAt = now;
    const { stream, owner, floor: floorKey } = this.#keys;
    const token = this.#token;
    let reply: unknown;
    try {
      reply = await main.run(ACK, [stream, owner, floorKey], [token, this.#group, floor ? "1" : "0", ...ids]);
    } catch (error) {
      if (this.#token === token) { for (const id of ids) this.#doubtful.add(id); }
      throw isReply(error) ? refusal(ACK.name, error) : error;
    }
    if (reply === -1) {
      if (this.#token === token) this.#events.refused();
      return ids.map(() => "stale");
    }
    const all = reply === ids.length;
    const outcomes = ids.map((id, at): NativeOutcome => {
      // Of many at once only the sum is known. We own the partition, so what was not pending was settled by hand.
      const pending = all || (Array.isArray(reply) ? reply[at] === 1 : (reply as number) > 0);
      return pending || this.#doubtful.has(id) ? "settled" : "stale";
    });
    if (this.#token !== token) return outcomes;
    for (const id of ids) {
      this.#held.delete(id);
      this.#doubtful.delete(id);
    }
    if (!all) this.#events.missing();
    this.#events.changed();
    return outcomes;
  }

  /** These are settled, but the caller will be told of a failure and ask again. */
  doubt(natives: readonly RedisNative[]): void {
    for (const { id } of natives) this.#doubtful.add(id);
  }

  /** Takes the deliveries of natives that are given back out of the count. They stay pending for the next owner. */
  async release(natives: readonly RedisNative[]): Promise<void> {
    const { main, consumer } = this.#context;
    const { stream, owner } = this.#keys;
    for (let at = 0; at < natives.length; at += MAX_IDS) {
      const ids = natives.slice(at, at + MAX_IDS).map((native) => native.id);
      await main.run(RELEASE, [stream, owner], [this.#token, this.#group, consumer, "", ...ids]);
    }
  }
}
