import { Bell } from "../../core/bell.ts";
import type { Timer } from "../../core/clock.ts";
import { Ownership } from "../../core/ownership/ownership.ts";
import type { FetchRequest, NativeOutcome, Raw } from "../../core/transport.ts";
import type { NatsContext, NatsNative } from "./context.ts";
import { refusal } from "./errors.ts";
import { NatsMembers } from "./members.ts";
import { OrderedPartition } from "./ordered_partition.ts";
import { NatsOwnerStore } from "./owner_store.ts";
import { ACK, settle, TERM } from "./settles.ts";
import type { Subscription } from "./subscription.ts";
import type { Topic } from "./topic_book.ts";

/** How often a member that waits for a partition looks at its record. */
const POLL_MS = 400;
/** How long others have to take what was given back before we seek it again. */
const REST_MS = 2 * POLL_MS;
/** How often it is looked at how far behind the group is. */
const LAG_MS = 10_000;

/**
 * One topic and group with `ordered: true`: reads the partitions this member owns, stands by for those it waits for.
 *
 * Each owned partition has at most one pull that waits at the server; what it brings stays with the partition until a fetch
 * hands it out, so that a pull may outlast the fetch that began it.
 */
export class OrderedSubscription implements Subscription {
  readonly #context: NatsContext;
  readonly #topic: Topic;
  readonly #group: string;
  readonly #parts: readonly OrderedPartition[];
  readonly #store: NatsOwnerStore;
  readonly #ownership: Ownership;
  readonly #bell = new Bell();
  readonly #lags: number[] = [];
  /** Of fetches that wait. */
  readonly #waits = new Set<AbortSignal>();
  #lagAt = 0;
  #keeping: Timer | undefined;
  #started = false;
  #stopped = false;
  #turn = 0;
  #broken: unknown;

  constructor(context: NatsContext, topic: Topic, group: string) {
    this.#context = context;
    this.#topic = topic;
    this.#group = group;
    const { clock, options } = context;
    const { stream, partitions } = topic.names;
    this.#store = new NatsOwnerStore(context, topic, group, {
      snapshot: (partition, epoch) => this.#parts[partition]!.snapshot(epoch),
    });
    this.#parts = Array.from(
      { length: partitions },
      (_, partition) =>
        new OrderedPartition(context, stream, partition, {
          again: (at, epoch) => this.#again(at, epoch),
          over: (at, why) => this.#ownership.renounce(at, why),
          changed: (at) => this.#changed(at),
        }),
    );
    this.#ownership = new Ownership(
      clock,
      this.#store,
      new NatsMembers(context, topic.names.members(options.bucket, group)),
      partitions,
      { leaseMs: options.ownerLeaseMs, pollMs: Math.min(POLL_MS, options.ownerLeaseMs / 3) },
      {
        owned: (partition, epoch, leaseUntil) => {
          this.#parts[partition]!.begin(epoch, this.#store.begun(partition));
          context.events.owned(topic.name, group, partition, epoch, leaseUntil);
          this.#bell.ring();
        },
        renewed: (partition, epoch, leaseUntil) => {
          context.events.owned(topic.name, group, partition, epoch, leaseUntil);
          this.#tellLag();
        },
        lost: (partition, _epoch, why) => {
          this.#parts[partition]!.end();
          delete this.#lags[partition];
          context.events.revoked(topic.name, group, partition, why);
          this.#bell.ring();
        },
        surplus: (partition) => {
          void this.#parts[partition]!.cancel();
          this.#changed(partition);
        },
        failed: (_, error) => this.#fail(error),
        state: (state) => context.events.topic(topic.name, group, state),
      },
    );
  }

  /** The fetch that waits, or the next one, reports it. */
  #fail(error: unknown): void {
    if (this.#stopped) return;
    this.#broken = error;
    this.#bell.ring();
  }

  async #again(partition: number, epoch: number): ReturnType<NatsOwnerStore["again"]> {
    const begun = await this.#store.again(partition, epoch);
    if (begun !== undefined) {
      this.#context.events.signal("durable-renewed", this.#topic.name, { group: this.#group, partition });
    }
    return begun;
  }

  async fetch(request: FetchRequest): Promise<readonly Raw[]> {
    const { clock, main, topics, api } = this.#context;
    const until = clock.monotonic() + request.waitMs;
    if (!main.live) await main.ready();
    if (!this.#topic.checked) await topics.check(this.#topic, api);
    this.#broken = undefined;
    this.#start();
    await this.#ownership.decided();
    if (request.waitMs === 0) return await this.#look(request);
    this.#waits.add(request.signal);
    try {
      return await this.#wait(request, until);
    } finally {
      this.#waits.delete(request.signal);
    }
  }

  async #wait(request: FetchRequest, until: number): Promise<Raw[]> {
    const { clock } = this.#context;
    for (;;) {
      if (this.#stopped) return [];
      if (this.#broken !== undefined) throw this.#broken;
      const raws = this.#take(request.max);
      if (raws.length > 0) return raws;
      const left = until - clock.monotonic();
      if (left <= 0) return [];
      for (const { part, count } of this.#askable(request, false)) {
        part.pull(count, Math.max(1, Math.floor(left))).catch((error) => this.#fail(error));
      }
      await this.#bell.wait(clock, left, request.signal);
      if (request.signal.aborted) {
        await Promise.all(this.#parts.map((part) => part.cancel()));
        return this.#take(request.max);
      }
    }
  }

  /** What is ready at the server now, without waiting for more. */
  async #look(request: FetchRequest): Promise<Raw[]> {
    if (this.#broken !== undefined) throw this.#broken;
    // What waits at the server has room that is needed to ask again, unless a fetch is there for what it brings.
    const probing = ![...this.#waits].some((signal) => !signal.aborted);
    await Promise.all(this.#parts.map((part) => probing ? part.cancel() : part.left()));
    const before = this.#take(request.max);
    if (before.length > 0) return before;
    const asks = this.#askable(request, true).map(({ part, count }) => part.pull(count, 0));
    const failed = (await Promise.allSettled(asks)).find((result) => result.status === "rejected");
    const raws = this.#take(request.max);
    // What other partitions brought is handed out; the failed one reports again when it is next asked.
    if (failed !== undefined && raws.length === 0) throw failed.reason;
    return raws;
  }

  #start(): void {
    if (this.#started || this.#stopped) return;
    this.#started = true;
    this.#ownership.start();
    this.#keep();
  }

  #keep(): void {
    const { clock, options } = this.#context;
    this.#keeping = clock.timer(options.ackWaitMs / 3, () => {
      for (const partition of this.#ownership.owned) this.#parts[partition]!.keep();
      this.#keep();
    });
  }

  /** Messages that wait here, of the partition first whose turn is longest ago. */
  #take(max: number): Raw[] {
    const raws: Raw[] = [];
    const waiting = this.#parts.filter((part) =>
      part.ready > 0 && this.#ownership.epochOf(part.partition) !== undefined
    );
    for (const part of waiting.sort((a, b) => a.turn - b.turn)) {
      if (raws.length >= max) break;
      part.turn = ++this.#turn;
      raws.push(...part.take(max - raws.length));
    }
    return raws;
  }

  /**
   * Owned partitions to ask, and for how many messages each. Left out are those that hold their share of the window, or nearly:
   * reading a message at a time would cost more than it brings.
   */
  #askable({ window, max }: FetchRequest, more: boolean): { part: OrderedPartition; count: number }[] {
    const owned = this.#ownership.owned;
    const share = Math.max(1, Math.floor(window / Math.max(1, owned.length)));
    const least = more ? 1 : Math.min(Math.ceil(share / 4), max);
    const found: { part: OrderedPartition; count: number }[] = [];
    for (const partition of owned) {
      const part = this.#parts[partition]!;
      if (this.#ownership.isSurplus(partition) || !part.mayPull(more)) continue;
      const room = part.room(share);
      if (room >= least) found.push({ part, count: Math.min(room, max) });
    }
    return found;
  }

  #changed(partition: number): void {
    const part = this.#parts[partition]!;
    if (this.#ownership.isSurplus(partition) && part.idle) this.#ownership.release(partition);
    else this.#bell.ring();
  }

  #tellLag(): void {
    const { clock, api, events } = this.#context;
    if (clock.monotonic() < this.#lagAt) return;
    this.#lagAt = clock.monotonic() + LAG_MS;
    void Promise.all(this.#ownership.owned.map(async (partition) => {
      const name = this.#parts[partition]!.durable;
      const info = await api.consumer(this.#topic.names.stream, name);
      if (info !== undefined) this.#lags[partition] = info.num_pending;
    })).then(() => {
      events.lag(this.#topic.name, this.#group, this.#lags.reduce((sum, lag) => sum + (lag ?? 0), 0));
    }, () => {});
  }

  ack(natives: readonly NatsNative[]): Promise<readonly NativeOutcome[]> {
    return this.#settle(natives, ACK);
  }

  drop(natives: readonly NatsNative[]): Promise<readonly NativeOutcome[]> {
    return this.#settle(natives, TERM);
  }

  async #settle(natives: readonly NatsNative[], what: string): Promise<readonly NativeOutcome[]> {
    const outcomes = new Array<NativeOutcome>(natives.length).fill("stale");
    const parts = new Map<number, number[]>();
    natives.forEach(({ partition, epoch }, at) => {
      if (this.#ownership.epochOf(partition) !== epoch) return;
      const part = parts.get(partition);
      if (part === undefined) parts.set(partition, [at]);
      else part.push(at);
    });
    await Promise.all(Array.from(parts, async ([partition, at]) => {
      const ours = at.map((n) => natives[n]!);
      const answers = await this.#settleOne(partition, ours, what);
      at.forEach((n, index) => outcomes[n] = answers[index]!);
    }));
    return outcomes;
  }

  /** Settles natives of one partition that is ours. */
  async #settleOne(
    partition: number,
    natives: readonly NatsNative[],
    what: string,
  ): Promise<readonly NativeOutcome[]> {
    const part = this.#parts[partition]!;
    const { epoch } = natives[0]!;
    part.settling(natives.length, epoch);
    let outcomes: readonly NativeOutcome[];
    try {
      outcomes = await settle(this.#context.main, natives, what);
    } catch (error) {
      throw refusal("a settle", error);
    } finally {
      part.settling(-natives.length, epoch);
    }
    part.settled(natives.filter((_, at) => outcomes[at] === "settled"), epoch);
    const unheard = natives.filter((_, at) => outcomes[at] !== "settled");
    if (unheard.length === 0) return outcomes;
    // Their durable is gone. While the partition is ours, what counts is our record: it is kept there that they are settled.
    part.suspect();
    if (this.#ownership.epochOf(partition) !== epoch) return outcomes;
    part.settled(unheard, epoch);
    const kept = await this.#ownership.check(partition);
    return kept === true ? natives.map(() => "settled") : outcomes;
  }

  /** Gives partitions up as a whole: one that is given back in part would let later messages pass earlier ones. */
  release(natives: readonly NatsNative[]): Promise<readonly NativeOutcome[]> {
    const outcomes = natives.map(({ partition, epoch }): NativeOutcome =>
      this.#ownership.epochOf(partition) === epoch ? "settled" : "stale"
    );
    const given = new Set(natives.filter((_, at) => outcomes[at] === "settled").map(({ partition }) => partition));
    for (const partition of given) this.#ownership.renounce(partition, "it was given back", REST_MS);
    return Promise.resolve(outcomes);
  }

  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#keeping?.cancel();
    this.#bell.ring();
    await this.#ownership.stop("the subscription ended");
    await Promise.all(this.#parts.map((part) => part.cancel()));
  }
}
