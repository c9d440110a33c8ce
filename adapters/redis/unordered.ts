import { withDeadline } from "../../core/clock.ts";
import type { FetchRequest, NativeOutcome, Raw } from "../../core/transport.ts";
import { byPartition } from "./by_partition.ts";
import type { Connection } from "./connection.ts";
import type { RedisContext, RedisNative } from "./context.ts";
import { isReply, refusal, replies } from "./errors.ts";
import type { PartitionKeys } from "./keys.ts";
import { ReadSize } from "./read_size.ts";
import { GROUP, GROUP_STATE } from "./scripts/reading.ts";
import { Shard } from "./shard.ts";
import type { Subscription } from "./subscription.ts";
import { tidy } from "./tidy.ts";
import type { Topic } from "./topic_book.ts";
import { Unblock } from "./unblock.ts";
import { readEntries } from "./wire.ts";

/** Added to twice the block time: a server may start its clock again when another client was woken first. */
const GRACE_MS = 1_000;
/** How often what others left behind is looked for, at most. */
const RECLAIM_MS = 1_000;
/** How long a blocked read may take to end when it is told to. */
const QUIET_MS = 500;
const LAG_MS = 10_000;

/**
 * One topic and group with `ordered: false`: competes for messages with everybody in the group.
 *
 * A fetch first takes back what replies lost, then, once a second, what others left idle; then it reads new entries without
 * waiting; and only then it blocks, on a connection of its own. A read that fails may have been carried out: what it was
 * delivered is found under our name at the next fetch.
 */
export class UnorderedSubscription implements Subscription {
  readonly #context: RedisContext;
  readonly #topic: Topic;
  readonly #group: string;
  readonly #shards: readonly Shard[];
  readonly #blocking: Connection;
  readonly #size = new ReadSize();
  readonly #fetches = new Set<Promise<unknown>>();
  readonly #stopping = new AbortController();
  #started: Promise<void> | undefined;
  #ready = false;
  #turn = 0;
  #reading = 0;
  #reclaimAt = 0;
  #lagAt = 0;
  #state: "active" | undefined;

  constructor(context: RedisContext, topic: Topic, group: string) {
    this.#context = context;
    this.#topic = topic;
    this.#group = group;
    this.#shards = topic.keys.streams.map((_, partition) =>
      new Shard(context, group, partition, topic.keys.partition(partition, group))
    );
    this.#blocking = context.openBlocking();
  }

  get #keys(): PartitionKeys[] {
    return this.#shards.map((shard) => shard.keys);
  }

  fetch(request: FetchRequest): Promise<readonly Raw[]> {
    const work = this.#fetch(request);
    const done = work.then(() => {}, () => {}).finally(() => this.#fetches.delete(done));
    this.#fetches.add(done);
    return work;
  }

  async #fetch(request: FetchRequest): Promise<readonly Raw[]> {
    const { clock, main, topics, options } = this.#context;
    if (!main.live) await main.ready();
    if (!this.#topic.checked) await topics.check(this.#topic, main);
    await this.#start();
    // The session counts a message's lease from when it asked, so the wait must be short against it.
    const until = clock.monotonic() + Math.min(request.waitMs, options.minIdleMs / 4);
    for (;;) {
      if (this.#stopping.signal.aborted || request.signal.aborted) return [];
      const raws = await this.#guarded(() => this.#ready ? this.#look(request.max) : this.#create());
      if (raws.length > 0) return raws;
      const left = until - clock.monotonic();
      if (left < 1) return [];
      const news = await this.#guarded(() => this.#block(request, left));
      if (news.length > 0) return news;
    }
  }

  /** Runs one reading step; where it failed, entries may have been delivered into the void. */
  async #guarded(step: () => Promise<Raw[]>): Promise<Raw[]> {
    this.#reading++;
    try {
      return await step();
    } catch (error) {
      if (replies(error, "NOGROUP")) {
        this.#ready = false;
        return [];
      }
      for (const shard of this.#shards) shard.lost = true;
      throw isReply(error) ? refusal("XREADGROUP", error) : error;
    } finally {
      this.#reading--;
    }
  }

  /** Once, before anything is read. */
  #start(): Promise<void> {
    return this.#started ??= (async () => {
      const { options, events } = this.#context;
      await this.#create(true);
      for (const shard of this.#shards) shard.mine = options.consumer !== undefined;
      void tidy(this.#context, this.#group, this.#keys, false);
      if (this.#state === undefined) events.topic(this.#topic.name, this.#group, this.#state = "active");
    })().catch((error) => {
      this.#started = undefined;
      throw isReply(error) ? refusal(GROUP.name, error) : error;
    });
  }

  /** Creates the groups that are missing; those that had been there are told of as lost. */
  async #create(first = false): Promise<Raw[]> {
    const { main, events } = this.#context;
    const made = await Promise.all(this.#shards.map((shard) => {
      const { stream, floor } = shard.keys;
      return main.run(GROUP, [stream, floor], [this.#group]) as Promise<[0 | 1, string]>;
    }));
    this.#ready = true;
    if (!first && made.some(([created]) => created === 1)) {
      events.signal("group-lost", this.#topic.name, { group: this.#group });
    }
    return [];
  }

  async #look(max: number): Promise<Raw[]> {
    const { clock, options, main } = this.#context;
    // Its own reads in flight look like lost ones: a look at what is pending must be alone.
    if (this.#reading === 1) {
      if (this.#shards.some((shard) => shard.lost) && !this.#blocking.live) await this.#blocking.ready();
      const now = clock.monotonic();
      const due = now >= this.#reclaimAt;
      if (due) {
        this.#reclaimAt = now + Math.min(RECLAIM_MS, options.minIdleMs / 4);
        for (const shard of this.#shards) {
          shard.idle = true;
          this.#context.trimmer.poke(main, this.#topic.name, shard.keys.stream);
        }
        this.#tellLag(now);
      }
      const waiting = this.#shards.filter((shard) => shard.pending);
      if (waiting.length > 0) {
        const each = Math.max(1, Math.floor(max / waiting.length));
        const found = await Promise.all(waiting.slice(0, max).map((shard) => shard.claim(each)));
        const raws = found.flat();
        if (raws.length > 0) return raws;
      }
    }
    return await this.#readNew(main, max, undefined);
  }

  /** One XREADGROUP over the streams; with `blockMs` it waits at the server. */
  async #readNew(connection: Connection, max: number, blockMs: number | undefined): Promise<Raw[]> {
    const { clock, consumer } = this.#context;
    const limit = this.#size.limit(max);
    const first = this.#turn++ % this.#shards.length;
    const shards = [...this.#shards.slice(first), ...this.#shards.slice(0, first)].slice(0, limit);
    const count = Math.max(1, Math.floor(limit / shards.length));
    const sentAt = clock.monotonic();
    const reply = await connection.call("XREADGROUP", [
      ...["GROUP", this.#group, consumer, "COUNT", String(count)],
      ...(blockMs === undefined ? [] : ["BLOCK", String(blockMs)]),
      "STREAMS",
      ...shards.map((shard) => shard.keys.stream),
      ...shards.map(() => ">"),
    ], { bytes: true, ...(blockMs === undefined ? {} : { deadlineMs: 2 * blockMs + GRACE_MS }) });
    const raws: Raw[] = [];
    for (const { stream, entries } of readEntries(reply)) {
      const shard = shards.find((one) => one.keys.stream === stream);
      if (shard !== undefined) raws.push(...shard.take(entries, sentAt));
      this.#size.learn(entries);
    }
    return raws;
  }

  /** Waits at the server; an abort ends the wait, and what came by then is handed out all the same. */
  async #block(request: FetchRequest, left: number): Promise<Raw[]> {
    const { options, clock } = this.#context;
    if (!this.#blocking.live) await this.#blocking.ready();
    // What others give back is not announced: it is time to look for it now and then.
    const due = this.#reclaimAt - clock.monotonic();
    const blockMs = Math.max(1, Math.floor(Math.min(left, options.blockMs, due)));
    const read = this.#readNew(this.#blocking, request.max, blockMs);
    const end = new Unblock(this.#context, this.#blocking, [request.signal, this.#stopping.signal]);
    try {
      return await read;
    } catch (error) {
      if (replies(error, "UNBLOCKED")) return [];
      throw error;
    } finally {
      end.over();
    }
  }

  #tellLag(now: number): void {
    if (now < this.#lagAt) return;
    this.#lagAt = now + LAG_MS;
    const { main, events } = this.#context;
    Promise.all(this.#keys.map(({ stream }) => main.run(GROUP_STATE, [stream], [this.#group]))).then((states) => {
      const lags = states.map((state) => (state as [string, number] | null)?.[1] ?? -1);
      if (lags.some((lag) => lag < 0)) return;
      events.lag(this.#topic.name, this.#group, lags.reduce((sum, lag) => sum + lag, 0));
    }, () => {});
  }

  ack(natives: readonly RedisNative[]): Promise<readonly NativeOutcome[]> {
    return this.#each(natives, (shard, ours) => shard.ack(ours));
  }

  extend(natives: readonly RedisNative[]): Promise<readonly NativeOutcome[]> {
    return this.#each(natives, (shard, ours) => shard.extend(ours));
  }

  release(natives: readonly RedisNative[]): Promise<readonly NativeOutcome[]> {
    return this.#each(natives, (shard, ours) => shard.release(ours));
  }

  #each(
    natives: readonly RedisNative[],
    run: (shard: Shard, natives: readonly RedisNative[]) => Promise<readonly NativeOutcome[]>,
  ): Promise<readonly NativeOutcome[]> {
    if (this.#shards.length === 1) return run(this.#shards[0]!, natives);
    return byPartition(natives, (partition) => {
      const shard = this.#shards[partition]!;
      return { settle: (ours) => run(shard, ours), doubt: (ours) => shard.doubt(ours) };
    });
  }

  reset(why: string): void {
    this.#blocking.reset(why);
  }

  async stop(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    const { clock, main } = this.#context;
    const { id } = this.#blocking;
    this.#stopping.abort();
    let quiet = false;
    await withDeadline(clock, QUIET_MS, Promise.all([...this.#fetches]), () => new Error("still reading"))
      .then(() => quiet = true, () => {});
    await this.#blocking.close();
    if (this.#started === undefined) return;
    // A read that could not be ended might still be served, to nobody.
    if (!quiet && id !== undefined) await main.call("CLIENT", ["KILL", "ID", id]).catch(() => {});
    await Promise.all(this.#shards.map((shard) => shard.releaseAll().catch(() => {})));
    await tidy(this.#context, this.#group, this.#keys, true);
  }
}
