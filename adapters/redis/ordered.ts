import { Ownership } from "../../core/ownership/ownership.ts";
import type { FetchRequest, NativeOutcome, Raw } from "../../core/transport.ts";
import { Bell } from "../../core/bell.ts";
import { byPartition } from "./by_partition.ts";
import type { RedisContext, RedisNative } from "./context.ts";
import { isReply, refusal } from "./errors.ts";
import { OrderedPartition } from "./ordered_partition.ts";
import { RedisMemberStore, RedisOwnerStore } from "./owner_store.ts";
import { StreamWatch } from "./stream_watch.ts";
import type { Subscription } from "./subscription.ts";
import { tidy } from "./tidy.ts";
import type { Topic } from "./topic_book.ts";

/** How often a member that waits for a partition tries to get it. One small script a partition each time. */
const POLL_MS = 400;
/** How long others have to take what was given back before we seek it again. */
const REST_MS = 2 * POLL_MS;

/**
 * One topic and group with `ordered: true`: reads the partitions this member owns, stands by for those it waits for.
 *
 * A fetch reads every owned partition that may have something, all in one go; results are handed back in the order in which
 * the reads were sent. With nothing to read it waits for the streams to grow, for ownership to change, or for its time to end.
 */
export class OrderedSubscription implements Subscription {
  readonly #context: RedisContext;
  readonly #topic: Topic;
  readonly #group: string;
  readonly #parts: readonly OrderedPartition[];
  readonly #ownership: Ownership;
  readonly #watch: StreamWatch;
  readonly #bell = new Bell();
  readonly #lags: number[] = [];
  #started = false;
  #stopped = false;
  #turn = 0;
  #tail: Promise<unknown> = Promise.resolve();
  #broken: unknown;
  #strangersTold = false;

  constructor(context: RedisContext, topic: Topic, group: string) {
    this.#context = context;
    this.#topic = topic;
    this.#group = group;
    const { clock, options, main } = context;
    const keys = topic.keys.streams.map((_, partition) => topic.keys.partition(partition, group));
    this.#parts = keys.map((key, partition) =>
      new OrderedPartition(context, group, partition, key, {
        doubt: (at) => this.#ownership.check(at),
        groupLost: (at) => this.#groupLost(at),
        strangers: () => this.#strangers(),
        changed: (at) => this.#changed(at),
      })
    );
    const store = new RedisOwnerStore(context, group, keys, {
      groupLost: () => this.#signal("group-lost"),
      counted: (partition, epoch, pending, lag, strangers) => {
        if (this.#ownership.epochOf(partition) !== epoch) return;
        this.#parts[partition]!.counted(pending, strangers);
        this.#tellLag(partition, lag);
      },
    });
    this.#ownership = new Ownership(
      clock,
      store,
      new RedisMemberStore(context, topic.keys.members(group)),
      keys.length,
      { leaseMs: options.ownerLeaseMs, pollMs: Math.min(POLL_MS, options.ownerLeaseMs / 3) },
      {
        owned: (partition, epoch, leaseUntil) => {
          this.#parts[partition]!.begin(epoch, store.token(epoch), store.delivered(partition));
          this.#broken = undefined;
          this.#context.events.owned(topic.name, group, partition, epoch, leaseUntil);
          this.#bell.ring();
        },
        renewed: (partition, epoch, leaseUntil) => {
          this.#parts[partition]!.confirmed();
          this.#context.events.owned(topic.name, group, partition, epoch, leaseUntil);
          context.trimmer.poke(main, topic.name, keys[partition]!.stream);
          this.#bell.ring();
        },
        lost: (partition, _epoch, why) => {
          this.#parts[partition]!.end();
          delete this.#lags[partition];
          this.#context.events.revoked(topic.name, group, partition, why);
          this.#bell.ring();
        },
        surplus: (partition) => this.#changed(partition),
        failed: (_, error) => this.#fail(isReply(error) ? refusal("taking a partition", error) : error),
        state: (state) => this.#context.events.topic(topic.name, group, state),
      },
    );
    this.#watch = new StreamWatch(context.openBlocking(), main, options.blockMs, {
      news: (streams) => {
        for (const part of this.#parts) if (streams.includes(part.keys.stream)) part.wake();
        this.#bell.ring();
      },
      failed: (error) => this.#fail(error),
    });
  }

  /** The next fetch reports it. */
  #fail(error: unknown): void {
    if (this.#stopped) return;
    this.#broken = error;
    this.#bell.ring();
  }

  async fetch(request: FetchRequest): Promise<readonly Raw[]> {
    const { clock, main, topics } = this.#context;
    const until = clock.monotonic() + request.waitMs;
    if (!main.live) await main.ready();
    if (!this.#topic.checked) await topics.check(this.#topic, main);
    this.#start();
    await this.#ownership.decided();
    for (let look = request.waitMs === 0;; look = false) {
      if (this.#stopped || request.signal.aborted) return [];
      if (this.#broken !== undefined) {
        const error = this.#broken;
        this.#broken = undefined;
        throw error;
      }
      const raws = await this.#read(request, look);
      if (raws.length > 0) return raws;
      if (this.#readables(request, false).length > 0) continue;
      const left = until - clock.monotonic();
      if (left <= 0) return [];
      this.#watchCold();
      await this.#bell.wait(clock, left, request.signal);
    }
  }

  #start(): void {
    if (this.#started || this.#stopped) return;
    this.#started = true;
    this.#ownership.start();
    void tidy(this.#context, this.#group, this.#parts.map((part) => part.keys), false);
  }

  /**
   * Owned partitions to read, the one whose turn is longest ago first; `all` = also those that are thought to have nothing.
   * Left out are those that hold their share of the window, or nearly: reading a message at a time would cost more than it
   * brings.
   */
  #readables({ window, waitMs }: FetchRequest, all: boolean): { part: OrderedPartition; room: number }[] {
    const owned = this.#ownership.owned;
    const share = Math.max(1, Math.floor(window / Math.max(1, owned.length)));
    const least = waitMs === 0 ? 1 : Math.ceil(share / 4);
    const found: { part: OrderedPartition; room: number }[] = [];
    for (const partition of owned) {
      const part = this.#parts[partition]!;
      if (!(all ? part.readable : part.hot) || this.#ownership.isSurplus(partition)) continue;
      const room = part.room(share);
      if (room >= least) found.push({ part, room });
    }
    return found.sort((a, b) => a.part.turn - b.part.turn);
  }

  async #read(request: FetchRequest, look: boolean): Promise<Raw[]> {
    const nobodyElse = this.#parts.every((part) => part.reading === 0);
    let left = request.max;
    const reads: Promise<Raw[]>[] = [];
    for (const { part, room } of this.#readables(request, look && nobodyElse)) {
      if (left < 1) break;
      const count = Math.min(left, room);
      left -= count;
      part.turn = ++this.#turn;
      reads.push(part.read(count));
    }
    if (reads.length === 0) return [];
    const before = this.#tail;
    const results = (async () => {
      const settled = await Promise.allSettled(reads);
      await before;
      return settled;
    })();
    this.#tail = results;
    const raws: Raw[] = [];
    let failure: PromiseRejectedResult | undefined;
    for (const result of await results) {
      if (result.status === "fulfilled") raws.push(...result.value);
      else failure ??= result;
    }
    // What other partitions brought is handed out; the failed one reports again at the next read.
    if (failure !== undefined && raws.length === 0) throw failure.reason;
    return raws;
  }

  #watchCold(): void {
    const wanted = new Map<string, string>();
    for (const part of this.#parts) if (part.cold) wanted.set(part.keys.stream, part.delivered);
    this.#watch.watch(wanted);
  }

  #changed(partition: number): void {
    const part = this.#parts[partition]!;
    if (this.#ownership.isSurplus(partition) && part.holdings.size === 0 && part.reading === 0) {
      this.#ownership.release(partition);
    } else if (part.hot) {
      this.#bell.ring();
    }
  }

  #groupLost(partition: number): void {
    // A new epoch creates the group again; what was handed out in this one is delivered anew.
    this.#ownership.renounce(partition, "the consumer group was lost");
  }

  #strangers(): void {
    if (this.#strangersTold) return;
    this.#strangersTold = true;
    this.#signal("foreign-consumer");
  }

  #signal(name: string): void {
    this.#context.events.signal(name, this.#topic.name, { group: this.#group });
  }

  #tellLag(partition: number, lag: number): void {
    if (lag < 0 || this.#lags[partition] === lag) return;
    this.#lags[partition] = lag;
    const total = this.#lags.reduce((sum, part) => sum + (part ?? 0), 0);
    this.#context.events.lag(this.#topic.name, this.#group, total);
  }

  async ack(natives: readonly RedisNative[]): Promise<readonly NativeOutcome[]> {
    const epochs: (number | undefined)[] = [];
    for (const { partition } of natives) epochs[partition] ??= this.#ownership.epochOf(partition);
    const ours = (native: RedisNative): boolean => epochs[native.partition] === native.epoch;
    if (natives.every(ours)) {
      if (this.#parts.length === 1) return await this.#parts[0]!.holdings.settle(natives);
      return await byPartition(natives, (partition) => this.#parts[partition]!.holdings);
    }
    const at = natives.flatMap((native, n) => ours(native) ? [n] : []);
    const outcomes = new Array<NativeOutcome>(natives.length).fill("stale");
    if (at.length === 0) return outcomes;
    (await this.ack(at.map((n) => natives[n]!))).forEach((outcome, n) => outcomes[at[n]!] = outcome);
    return outcomes;
  }

  /** Gives partitions up as a whole: one that is given back in part would let later messages pass earlier ones. */
  async release(natives: readonly RedisNative[]): Promise<readonly NativeOutcome[]> {
    const outcomes = natives.map(({ partition, epoch }): NativeOutcome =>
      this.#ownership.epochOf(partition) === epoch ? "settled" : "stale"
    );
    const ours = natives.filter((_, at) => outcomes[at] === "settled");
    await Promise.all([...new Set(ours.map((native) => native.partition))].map(async (partition) => {
      const part = this.#parts[partition]!;
      try {
        await part.holdings.release(ours.filter((native) => native.partition === partition));
      } finally {
        this.#ownership.renounce(partition, "it was given back", REST_MS);
      }
    }));
    return outcomes;
  }

  reset(why: string): void {
    this.#watch.reset(why);
  }

  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#bell.ring();
    await Promise.all([this.#watch.close(), this.#ownership.stop("the subscription ended")]);
    if (this.#started) await tidy(this.#context, this.#group, this.#parts.map((part) => part.keys), true);
  }
}
