import type { Raw } from "../../core/transport.ts";
import type { RedisContext } from "./context.ts";
import { isReply, refusal, replies } from "./errors.ts";
import { fencedRead } from "./fenced_read.ts";
import { Holdings } from "./holdings.ts";
import type { PartitionKeys } from "./keys.ts";
import { ReadSize } from "./read_size.ts";
import { CLAIM, GROUP_STATE } from "./scripts/reading.ts";
import { type Entry, readClaimed } from "./wire.ts";

/** What a partition tells its subscription. */
export interface PartitionEvents {
  /** The server refused because the partition is not ours: ask it; `undefined` = it did not answer. */
  doubt(partition: number): Promise<boolean | undefined>;
  /** The group is gone. */
  groupLost(partition: number): void;
  /** Entries are pending under names that never owned the partition: another kind of client reads in our group. */
  strangers(partition: number): void;
  /** There may be something to read, or nothing held any more. */
  changed(partition: number): void;
}

type ClaimMode = "takeover" | "lost" | "strangers";

/**
 * One partition while this member owns it. Hands out entries in the order of their ids, once each in an epoch.
 *
 * ```text
 * off    begin(epoch)                        -> claim (takeover, from the first pending entry)
 * claim  a page was full                     -> claim (the next page)
 * claim  a page was not full                 -> live
 * live   a reply was lost, or the server counts more pending entries of ours than we hold
 *                                            -> claim (lost: what is pending under our name and not held)
 * live   entries of strangers came due       -> claim (strangers)
 * any    end()                               -> off
 * ```
 *
 * In `claim` one read at a time is on its way; in `live` several may be, and their replies come in order.
 */
export class OrderedPartition {
  readonly partition: number;
  readonly keys: PartitionKeys;
  readonly #context: RedisContext;
  readonly #group: string;
  readonly #events: PartitionEvents;
  readonly #size = new ReadSize();
  /** When it was last read, in its subscription's count of reads. */
  turn = 0;
  /** What was handed out and not settled. */
  readonly holdings: Holdings;
  #epoch: number | undefined;
  #token = "";
  #phase: "off" | "claim" | "live" = "off";
  #mode: ClaimMode = "takeover";
  #from = "-";
  #hot = false;
  /** Counts wakes, so that one that comes while a read is on its way is not forgotten over its result. */
  #wakes = 0;
  #seenWakes = 0;
  #refused = false;
  #reading = 0;
  /** What reads on their way may bring. */
  #asked = 0;
  #strangersAt = Infinity;
  #delivered = "0-0";

  constructor(context: RedisContext, group: string, partition: number, keys: PartitionKeys, events: PartitionEvents) {
    this.#context = context;
    this.#group = group;
    this.partition = partition;
    this.keys = keys;
    this.#events = events;
    this.holdings = new Holdings(context, group, keys, {
      refused: () => this.#doubt(),
      changed: () => events.changed(partition),
      missing: () => this.wake(),
    });
  }

  /** Reads on their way. */
  get reading(): number {
    return this.#reading;
  }

  /** How many more messages it may hand out before it holds `share` unsettled. */
  room(share: number): number {
    return share - this.holdings.open - this.#asked;
  }

  /** Everything the group was delivered so far, as far as we know: what to wait behind. */
  get delivered(): string {
    return this.#delivered;
  }

  /** Whether a read may bring something that no wait would tell of. */
  get hot(): boolean {
    if (this.#phase === "off" || this.#refused) return false;
    if (this.#phase === "claim") return this.#reading === 0;
    return this.#hot || this.#strangersDue;
  }

  /** Whether there is nothing to do but wait for the stream to grow. */
  get cold(): boolean {
    return this.#phase === "live" && !this.#hot && !this.#refused;
  }

  /** Whether it is ours and may be read at all. */
  get readable(): boolean {
    return this.#phase === "live" ? !this.#refused : this.hot;
  }

  get #strangersDue(): boolean {
    return this.#reading === 0 && this.#context.clock.monotonic() >= this.#strangersAt;
  }

  /** It became ours; the group had delivered up to `delivered`. */
  begin(epoch: number, token: string, delivered: string): void {
    this.end();
    this.#epoch = epoch;
    this.#token = token;
    this.holdings.begin(token);
    this.#delivered = delivered;
    this.#phase = "claim";
    this.#mode = "takeover";
    this.#from = "-";
    this.#hot = true;
  }

  /** It is ours no more: what was handed out is lost. */
  end(): void {
    this.#epoch = undefined;
    this.#phase = "off";
    this.holdings.end();
    this.#strangersAt = Infinity;
    this.#refused = false;
  }

  /** The server confirmed that it is still ours. */
  confirmed(): void {
    this.#refused = false;
  }

  /** The stream may have grown. */
  wake(): void {
    this.#hot = true;
    this.#wakes++;
  }

  /**
   * The server counts `pending` entries under our name, and `strangers` under names that never owned the partition. What is
   * ours and not held was delivered into a lost reply; what is theirs comes due one day.
   */
  counted(pending: number, strangers: number): void {
    if (pending < 0) return this.#events.groupLost(this.partition);
    if (strangers > 0) {
      this.#events.strangers(this.partition);
      if (this.#strangersAt === Infinity) this.#strangersAt = this.#context.clock.monotonic();
    }
    if (this.#phase === "live" && this.#reading === 0 && pending > this.holdings.size) this.#recover();
  }

  /** Reads the next messages in order, at most `max`, without waiting. */
  async read(max: number): Promise<Raw[]> {
    const epoch = this.#epoch;
    if (epoch === undefined) return [];
    if (this.#phase === "live" && this.#strangersDue) this.#claimFrom("strangers", "-");
    this.#reading++;
    this.#asked += max;
    try {
      return await (this.#phase === "claim" ? this.#claim(epoch, max) : this.#readNew(epoch, max));
    } catch (error) {
      if (this.#epoch === epoch) this.#recover();
      throw isReply(error) ? refusal("XREADGROUP", error) : error;
    } finally {
      this.#reading--;
      this.#asked -= max;
      this.#events.changed(this.partition);
    }
  }

  async #readNew(epoch: number, max: number): Promise<Raw[]> {
    const count = this.#size.limit(max);
    const wakes = this.#wakes;
    let entries: Entry[] | undefined;
    try {
      entries = await fencedRead(this.#context, this.keys, this.#group, this.#token, count);
    } catch (error) {
      return this.#groupLost(epoch, error);
    }
    // Not ours any more: what came is pending under our name, where the next owner finds it.
    if (this.#epoch !== epoch) return [];
    if (entries === undefined) return this.#refuse();
    this.#hot = entries.length >= count || this.#wakes !== wakes;
    const woken = wakes !== this.#seenWakes;
    this.#seenWakes = wakes;
    if (entries.length > 0) this.#delivered = entries[entries.length - 1]!.id;
    else if (woken) await this.#lookUpDelivered(epoch);
    return this.#handOut(epoch, entries);
  }

  /** Nothing to read where the group is gone; any other error is passed on. */
  #groupLost(epoch: number, error: unknown): Raw[] {
    if (!replies(error, "NOGROUP")) throw error;
    if (this.#epoch === epoch) {
      this.#refused = true;
      this.#events.groupLost(this.partition);
    }
    return [];
  }

  /** Woken and nothing there: another kind of client took it, and a wait behind the old id would end at once, again and again. */
  async #lookUpDelivered(epoch: number): Promise<void> {
    const state = await this.#context.main.run(GROUP_STATE, [this.keys.stream], [this.#group]) as
      | [string, number]
      | null;
    if (state !== null && this.#epoch === epoch) this.#delivered = state[0];
  }

  async #claim(epoch: number, max: number): Promise<Raw[]> {
    const { main, consumer, options, clock } = this.#context;
    const mode = this.#mode;
    const count = this.#size.limit(max);
    let reply: unknown;
    try {
      reply = await main.run(
        CLAIM,
        [this.keys.stream, this.keys.owner, this.keys.owners],
        [
          this.#token,
          this.#group,
          consumer,
          this.#from,
          String(count),
          String(options.minIdleMs),
          mode,
          ...this.holdings.ids(),
        ],
        { bytes: true },
      );
    } catch (error) {
      return this.#groupLost(epoch, error);
    }
    if (this.#epoch !== epoch) return [];
    const claimed = readClaimed(reply);
    if (claimed === undefined) return this.#refuse();
    if (claimed.strangers > 0) {
      this.#strangersAt = Math.min(this.#strangersAt, clock.monotonic() + Math.max(10, claimed.dueInMs));
      this.#events.strangers(this.partition);
    }
    if (claimed.lookedAt >= count) {
      this.#from = `(${claimed.lastId}`;
    } else {
      this.#phase = "live";
      this.#hot = true;
    }
    return this.#handOut(epoch, claimed.entries);
  }

  #refuse(): Raw[] {
    void this.#doubt();
    return [];
  }

  #doubt(): Promise<boolean | undefined> {
    this.#refused = true;
    return this.#events.doubt(this.partition);
  }

  #recover(): void {
    // A takeover that is not finished finds lost entries on its way: they are behind the page it asks for again.
    if (this.#phase !== "claim" || this.#mode !== "takeover") this.#claimFrom("lost", "-");
    this.#events.changed(this.partition);
  }

  #claimFrom(mode: ClaimMode, from: string): void {
    // What interrupts a look at strangers makes it start anew.
    const again = mode === "lost" && this.#phase === "claim" && this.#mode === "strangers";
    this.#strangersAt = again ? this.#context.clock.monotonic() : mode === "strangers" ? Infinity : this.#strangersAt;
    this.#phase = "claim";
    this.#mode = mode;
    this.#from = from;
  }

  #handOut(epoch: number, entries: readonly Entry[]): Raw[] {
    this.#size.learn(entries);
    return this.holdings.take(entries, this.partition, epoch);
  }
}
