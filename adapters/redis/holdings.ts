import type { NativeOutcome, Raw } from "../../core/transport.ts";
import type { PartitionSettler } from "./by_partition.ts";
import type { RedisContext, RedisNative } from "./context.ts";
import { isReply, refusal, unsent } from "./errors.ts";
import { Held } from "./held.ts";
import type { PartitionKeys } from "./keys.ts";
import { ACK, RELEASE } from "./scripts/settling.ts";
import type { Entry } from "./wire.ts";

/** What settling tells its partition. */
export interface HoldingsEvents {
  /** The server refused because the partition is not ours: asks it whether that is so; `undefined` = it did not answer. */
  refused(): Promise<boolean | undefined>;
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
  readonly #held = new Held();
  #token = "";
  #settling = 0;
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

  /** The same without those whose acknowledgement is on its way: at the server they are gone before the next read. */
  get open(): number {
    return this.#held.size - this.#settling;
  }

  /** The ids held. */
  ids(): string[] {
    return this.#held.ids();
  }

  /** An epoch begins, under this token. */
  begin(token: string): void {
    this.end();
    this.#token = token;
  }

  /** The epoch is over. */
  end(): void {
    this.#held.clear();
    this.#settling = 0;
    this.#token = "";
  }

  /** Takes entries of one reply in, and answers them as they are handed out. */
  take(entries: readonly Entry[], partition: number, epoch: number): Raw[] {
    return this.#held.take(entries, partition, epoch, 0);
  }

  /** Settles natives of the present epoch. */
  async settle(natives: readonly RedisNative[]): Promise<NativeOutcome[]> {
    if (natives.length <= MAX_IDS) return await this.#ackSome(natives);
    const chunks: Promise<NativeOutcome[]>[] = [];
    for (let at = 0; at < natives.length; at += MAX_IDS) chunks.push(this.#ackSome(natives.slice(at, at + MAX_IDS)));
    return (await Promise.all(chunks)).flat();
  }

  async #ackSome(natives: readonly RedisNative[]): Promise<NativeOutcome[]> {
    const token = this.#token;
    this.#settling += natives.length;
    this.#events.changed();
    let reply: unknown;
    try {
      reply = await this.#ack(natives);
      if (reply === -1 && await this.#still(token)) reply = await this.#ack(natives);
    } catch (error) {
      this.doubt(natives);
      throw isReply(error) ? refusal(ACK.name, error) : error;
    } finally {
      if (this.#token === token) this.#settling -= natives.length;
    }
    const outcomes = this.#outcomes(natives, reply);
    if (this.#token === token) {
      if (reply !== natives.length) this.#events.missing();
      this.#events.changed();
    }
    return outcomes;
  }

  #ack(natives: readonly RedisNative[]): Promise<unknown> {
    const { main, clock } = this.#context;
    const now = clock.monotonic();
    const floor = now - this.#floorAt >= FLOOR_MS;
    if (floor) this.#floorAt = now;
    const { stream, owner, floor: floorKey } = this.#keys;
    const args = [this.#token, this.#group, floor ? "1" : "0"];
    for (const { id } of natives) args.push(id);
    return main.run(ACK, [stream, owner, floorKey], args);
  }

  /**
   * Whether a partition that the server called another's is ours after all: a key that ran out is given back to us where
   * nobody else had it since, and then what was refused may be said again.
   */
  async #still(token: string): Promise<boolean> {
    if (this.#token !== token) return false;
    const ours = await this.#events.refused();
    if (ours === undefined) throw unsent("whether the partition is still ours could not be asked");
    return ours && this.#token === token;
  }

  #outcomes(natives: readonly RedisNative[], reply: unknown): NativeOutcome[] {
    const all = reply === natives.length;
    return natives.map((native, at) => {
      this.#held.letGo(native);
      if (reply === -1) return "stale";
      // Of many at once only the sum is known. We own the partition, so what was not pending was settled by hand.
      const pending = all || (Array.isArray(reply) ? reply[at] === 1 : (reply as number) > 0);
      return pending || native.doubtful ? "settled" : "stale";
    });
  }

  /** These are settled, but the caller will be told of a failure and ask again. */
  doubt(natives: readonly RedisNative[]): void {
    for (const native of natives) native.doubtful = true;
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
