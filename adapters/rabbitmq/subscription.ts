import { Bell } from "../../core/bell.ts";
import type { Timer } from "../../core/clock.ts";
import { BrokerUnavailableError, type EdaError, InvalidOptionError } from "../../core/errors.ts";
import { scoreOf } from "../../core/ownership/rendezvous.ts";
import type { FetchRequest, NativeOutcome, Raw } from "../../core/transport.ts";
import { byConsumer } from "./by_consumer.ts";
import { Consumer, type RabbitNative } from "./consumer.ts";
import type { RabbitContext } from "./context.ts";
import { HoldKeeper } from "./hold_keeper.ts";
import { channelFailure, replyCode, unsent } from "./errors.ts";

/** How long others have to take what was given back before we consume it again. */
const REST_MS = 800;
/** How long an empty answer waits for a message that the queue says it has. */
const LOOK_MS = 250;
/** How often the queues are asked what they hold, and the same while nothing is ours. */
const CENSUS_MS = 10_000;
const STANDBY_CENSUS_MS = 2_000;

/**
 * One topic and group: a consumer a partition.
 *
 * Ordered, each queue has a single active consumer: the server gives its messages to one consumer at a time, and to the next
 * when that one's channel ends. With several partitions the consumers have priorities, from which current servers choose;
 * the one that has to make room for another gets no more messages, and the other gets them when it has settled those it has.
 */
export class Subscription {
  readonly #context: RabbitContext;
  readonly #topic: string;
  readonly #group: string;
  readonly #consumers: (Consumer | undefined)[];
  /** Until when a partition is left to others. */
  readonly #restUntil: number[];
  readonly #bell = new Bell();
  readonly #keeper: HoldKeeper;
  #starting: Promise<void> | undefined;
  /** Why consuming ended, for the next fetch to report; of a lost connection no more once there is a new one. */
  #failure: { readonly error: EdaError; readonly connection: boolean } | undefined;
  #stopped = false;
  #turn = 0;
  #censusAt = 0;
  #alone = false;
  #told: "active" | "standby" | undefined;
  #watch: Timer | undefined;

  constructor(context: RabbitContext, topic: string, group: string) {
    this.#context = context;
    this.#topic = topic;
    this.#group = group;
    this.#consumers = new Array(context.options.partitions).fill(undefined);
    this.#restUntil = new Array(context.options.partitions).fill(0);
    this.#keeper = new HoldKeeper(
      context.clock,
      context.main,
      () => this.#consumers.filter((consumer) => consumer?.active === true) as Consumer[],
      (consumer, until) => this.#holds(consumer, until),
    );
  }

  /** The next messages; waits for the first of them at most `waitMs`. */
  async fetch(request: FetchRequest): Promise<readonly Raw[]> {
    const { clock } = this.#context;
    const until = clock.monotonic() + request.waitMs;
    for (let look = request.waitMs === 0;; look = false) {
      if (this.#stopped || request.signal.aborted) return [];
      const failure = this.#failure;
      this.#failure = undefined;
      if (failure !== undefined && !(failure.connection && this.#context.main.live)) throw failure.error;
      await this.#start(request.window);
      const raws = this.#take(request.max);
      if (raws.length > 0) return raws;
      if (look) {
        await this.#look(request.signal);
        continue;
      }
      const now = clock.monotonic();
      if (until - now <= 0) return [];
      if (now >= this.#censusAt) void this.#census();
      const rest = Math.min(...this.#restUntil.filter((at) => at > now)) - now;
      await this.#bell.wait(clock, Math.max(1, Math.min(until - now, rest)), request.signal);
    }
  }

  /** Consumes every partition that is not consumed; callers share one attempt. */
  async #start(window: number): Promise<void> {
    if (
      this.#starting === undefined && !this.#consumers.some((consumer, at) => consumer === undefined && this.#due(at))
    ) {
      return;
    }
    await (this.#starting ??= this.#open(window).finally(() => this.#starting = undefined));
  }

  #due(partition: number): boolean {
    return this.#restUntil[partition]! <= this.#context.clock.monotonic();
  }

  async #open(window: number): Promise<void> {
    const { main, options, topology } = this.#context;
    const share = Math.floor(window / options.partitions);
    if (share < 1) {
      throw new InvalidOptionError(`prefetch must be at least the number of partitions, ${options.partitions}`, {
        details: { option: "prefetch" },
      });
    }
    this.#alone = false;
    await main.ready();
    const { queues, counts } = await topology.consuming(this.#topic, this.#group);
    const opened = await Promise.allSettled(queues.map(async (queue, partition) => {
      if (this.#consumers[partition] !== undefined || !this.#due(partition)) return;
      const consumer = await Consumer.open(
        this.#context,
        { queue, partition, share, counts, priority: this.#priority(partition) },
        {
          began: (consumer) => this.#began(consumer),
          arrived: () => this.#bell.ring(),
          lost: (consumer, error, cancelled) => this.#lost(consumer, error, cancelled),
        },
      );
      if (this.#stopped) await consumer.close();
      else this.#consumers[partition] ??= consumer;
    }));
    const failed = opened.find((result) => result.status === "rejected");
    if (failed !== undefined) {
      topology.forgetTopic(this.#topic);
      throw channelFailure("consuming", main.live ? failed.reason : unsent("it was lost", failed.reason));
    }
    this.#arm();
    await this.#census();
  }

  /** Before 4.0 the first consumer owns, whatever its priority; with one partition there is nothing to share out. */
  #priority(partition: number): number | undefined {
    const { main, options, consumer } = this.#context;
    if (!options.ordered || options.partitions === 1 || Number.parseInt(main.version) < 4) return undefined;
    return scoreOf(`${consumer}#${this.#group}#${this.#topic}`, partition) >>> 2;
  }

  #take(max: number): Raw[] {
    const raws: Raw[] = [];
    const { length } = this.#consumers;
    for (let step = 0; step < length && raws.length < max; step++) {
      raws.push(...this.#consumers[(this.#turn + step) % length]?.take(max - raws.length) ?? []);
    }
    this.#turn = (this.#turn + 1) % length;
    return raws;
  }

  /** Resolves when what the queues have ready for us has arrived. */
  async #look(signal: AbortSignal): Promise<void> {
    const { clock } = this.#context;
    const until = clock.monotonic() + LOOK_MS;
    while (!this.#stopped && !signal.aborted) {
      const live = this.#consumers.filter((consumer) => consumer !== undefined);
      const counts = await Promise.all(live.map((consumer) => consumer.look()));
      if (live.some((consumer) => consumer.ready > 0)) return;
      // Ready, and not given to us though there is room: on its way, or another consumer's.
      const waiting = live.some((consumer, at) => (counts[at]?.messageCount ?? 0) > 0 && consumer.hasRoom);
      const left = until - clock.monotonic();
      if (!waiting || left <= 0) return;
      await this.#bell.wait(clock, Math.min(left, 20), signal);
    }
  }

  #began(consumer: Consumer): void {
    if (this.#context.options.ordered) this.#keeper.begin(consumer);
    this.#tellState();
  }

  #holds({ plan, epoch, ended }: Consumer, until: number): void {
    if (!ended) this.#context.events.owned(this.#topic, this.#group, plan.partition, epoch, until);
  }

  #tellState(): void {
    if (this.#stopped) return;
    const isActive = !this.#context.options.ordered || this.#alone ||
      this.#consumers.some((consumer) => consumer?.active === true);
    const state = isActive ? "active" : "standby";
    if (state === this.#told) return;
    this.#told = state;
    this.#context.events.topic(this.#topic, this.#group, state);
  }

  /** How much is behind, and whether we are the only ones. */
  async #census(): Promise<void> {
    const { clock, events } = this.#context;
    this.#censusAt = clock.monotonic() + (this.#told === "standby" ? STANDBY_CENSUS_MS : CENSUS_MS);
    const live = this.#consumers.filter((consumer) => consumer !== undefined);
    const counts = (await Promise.all(live.map((consumer) => consumer.look()))).filter((found) => found !== undefined);
    if (this.#stopped || counts.length < this.#consumers.length) return;
    this.#alone = counts.some((found, at) => found.consumerCount <= 1 && !live[at]!.behind);
    this.#tellState();
    events.lag(this.#topic, this.#group, counts.reduce((sum, found) => sum + found.messageCount, 0));
  }

  #lost(consumer: Consumer, cause: unknown, cancelled: boolean): void {
    const { main, topology } = this.#context;
    const { partition } = consumer.plan;
    if (this.#consumers[partition] === consumer) this.#consumers[partition] = undefined;
    // A queue that is gone has to be made again, and so have its bindings.
    topology.forgetTopic(this.#topic);
    const connection = !cancelled && !main.live;
    const error = cancelled
      ? new BrokerUnavailableError("consuming: the server ended it, the queue was deleted or moved", {
        details: { reason: "cancelled" },
      })
      : connection
      ? unsent("the connection closed", cause)
      : channelFailure("consuming", cause);
    this.#tellLost(consumer, cancelled ? "the server cancelled the consumer" : error.message);
    if (this.#stopped) return;
    if (!connection) {
      const reason = String(error.details["reason"] ?? replyCode(cause) ?? "closed");
      this.#context.events.signal("consumer-lost", this.#topic, { group: this.#group, reason });
    }
    this.#failure ??= { error, connection };
    this.#bell.ring();
  }

  #tellLost(consumer: Consumer, why: string): void {
    const { options, events } = this.#context;
    if (options.ordered) {
      if (consumer.active) events.revoked(this.#topic, this.#group, consumer.plan.partition, why);
      return;
    }
    const natives = consumer.handedOut();
    if (natives.length > 0) events.lost(this.#topic, this.#group, natives, why);
  }

  /** Gives up all that a partition's consumer holds; others have a while to take it first. */
  async #renounce(consumer: Consumer, why: string): Promise<void> {
    const { partition } = consumer.plan;
    if (this.#consumers[partition] !== consumer) return;
    this.#consumers[partition] = undefined;
    this.#restUntil[partition] = this.#context.clock.monotonic() + REST_MS;
    this.#tellLost(consumer, why);
    this.#tellState();
    await consumer.close();
    this.#bell.ring();
  }

  /** Looks after messages that stay unsettled for so long that the server would close the channel. */
  #arm(): void {
    if (this.#stopped || this.#watch !== undefined) return;
    const { clock, options } = this.#context;
    this.#watch = clock.timer(Math.min(60_000, options.consumerTimeoutMs / 20), () => {
      this.#watch = undefined;
      const before = clock.monotonic() - options.consumerTimeoutMs / 2;
      for (const consumer of this.#consumers) {
        if (consumer !== undefined && (consumer.oldest ?? Infinity) < before) this.#tooOld(consumer, before);
      }
      this.#arm();
    });
  }

  #tooOld(consumer: Consumer, before: number): void {
    const why = "a message stayed unsettled for half of consumerTimeoutMs";
    this.#context.events.signal("held-too-long", this.#topic, { group: this.#group });
    if (this.#context.options.ordered) return void this.#renounce(consumer, why);
    const old = consumer.handedOut().filter(({ since }) => since < before);
    if (old.length > 0) this.#context.events.lost(this.#topic, this.#group, old, why);
    for (const native of old) consumer.giveBack(native);
  }

  ack(natives: readonly RabbitNative[]): Promise<readonly NativeOutcome[]> {
    return byConsumer(natives, (consumer, ours) => consumer.ack(ours));
  }

  drop(natives: readonly RabbitNative[]): Promise<readonly NativeOutcome[]> {
    return byConsumer(natives, (consumer, ours) => consumer.drop(ours));
  }

  /** Says which are still ours: those on a channel that the server answers on. */
  extend(natives: readonly RabbitNative[]): Promise<readonly NativeOutcome[]> {
    return byConsumer(natives, async (consumer, ours) => {
      const isOurs = await consumer.confirmed();
      return ours.map(() => isOurs ? "settled" : "stale");
    });
  }

  /** Gives back by ending the consumers: what a consumer holds goes back as a whole and keeps its place. */
  async release(natives: readonly RabbitNative[]): Promise<readonly NativeOutcome[]> {
    const current = ({ consumer }: RabbitNative): boolean => this.#consumers[consumer.plan.partition] === consumer;
    const outcomes = natives.map((native): NativeOutcome => current(native) && !native.settled ? "settled" : "stale");
    const consumers = new Set(natives.filter(current).map(({ consumer }) => consumer));
    await Promise.all([...consumers].map((consumer) => this.#renounce(consumer, "it was given back")));
    return outcomes;
  }

  /** Ends consuming; everything goes back. Never rejects. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#watch?.cancel();
    this.#keeper.stop();
    this.#bell.ring();
    await this.#starting?.catch(() => {});
    await Promise.all(this.#consumers.map((consumer) => consumer?.close()));
  }
}
