import { withDeadline } from "../../core/clock.ts";
import { Fifo } from "../../core/fifo.ts";
import type { NativeOutcome, Raw } from "../../core/transport.ts";
import type { ChannelSlice, MessageSlice, QueueCounts, TagSlice } from "./client.ts";
import type { RabbitContext } from "./context.ts";
import { unsent } from "./errors.ts";
import type { ConsumerPlan } from "./plan.ts";
import { SettleBurst } from "./settle_burst.ts";
import { bodyOf, deliveriesOf } from "./wire.ts";

/** The handle of one delivered message. */
export interface RabbitNative {
  readonly consumer: Consumer;
  readonly tag: number;
  /** When it arrived, monotonic ms. */
  readonly since: number;
  /** Handed out to the session. */
  handed: boolean;
  /** A frame that settles it was written. */
  settled: boolean;
}

/** What a consumer tells its subscription. */
export interface ConsumerEvents {
  /** Something arrived. */
  arrived(consumer: Consumer): void;
  /** The first message arrived: the queue gives its messages to us. */
  began(consumer: Consumer): void;
  /** It ended otherwise than by {@link Consumer.close}; all its messages are another's. */
  lost(consumer: Consumer, error: unknown, cancelled: boolean): void;
}

/** How long the goodbyes of a channel may take. */
const CLOSE_MS = 1_000;

/**
 * One consumer on a channel of its own: closing the channel gives all its messages back at once and in their place, and a
 * channel that the server closes takes nobody else's messages with it. Every handle belongs to its consumer, so a settle that
 * comes late reaches no channel, and the server never sees a tag that it does not know.
 */
export class Consumer {
  readonly plan: ConsumerPlan;
  readonly epoch: number;
  readonly #context: RabbitContext;
  readonly #events: ConsumerEvents;
  #channel: ChannelSlice | undefined;
  /** Delivered and not settled, in the order of their tags; settled ones stay until those before them are. */
  readonly #open = new Fifo<RabbitNative>();
  readonly #buffer = new Fifo<Raw>();
  #unsettled = 0;
  #began = false;
  #behind = false;
  #ended = false;
  readonly #burst: SettleBurst;
  #running: Promise<boolean> | undefined;
  #next: Promise<boolean> | undefined;

  private constructor(context: RabbitContext, plan: ConsumerPlan, events: ConsumerEvents) {
    this.#context = context;
    this.plan = plan;
    this.#events = events;
    this.epoch = context.nextEpoch();
    this.#burst = new SettleBurst(context.clock);
  }

  /** Begins to consume. Rejects with the client's error where the server refuses. */
  static async open(context: RabbitContext, plan: ConsumerPlan, events: ConsumerEvents): Promise<Consumer> {
    const consumer = new Consumer(context, plan, events);
    await consumer.#start();
    return consumer;
  }

  async #start(): Promise<void> {
    let failure: { readonly error: unknown } | undefined;
    let started = false;
    const channel = this.#channel = await this.#context.main.channel(false, (error) => {
      if (started) this.#lost(error, false);
      else failure = { error };
    });
    const { queue, share, priority } = this.plan;
    try {
      await channel.prefetch(share);
      // Some versions count the active consumer alone: who was there before us is seen before us only.
      this.#behind = (await channel.checkQueue(queue)).consumerCount > 0;
      await channel.consume(queue, (message) => this.#deliver(message), {
        noAck: false,
        ...(priority === undefined ? {} : { priority }),
      });
      if (failure !== undefined) throw failure.error;
      started = true;
    } catch (error) {
      this.#ended = true;
      channel.close().catch(() => {});
      throw failure?.error ?? error;
    }
  }

  /** Whether the queue gave us a message, so that it is ours. */
  get active(): boolean {
    return this.#began;
  }

  /** Whether it is over. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Whether others consumed the queue when we came. */
  get behind(): boolean {
    return this.#behind;
  }

  /** How many messages wait to be taken. */
  get ready(): number {
    return this.#buffer.length;
  }

  /** Whether the server may deliver more before something is settled. */
  get hasRoom(): boolean {
    return this.#unsettled < this.plan.share;
  }

  #deliver(message: MessageSlice | null): void {
    if (this.#ended) return;
    if (message === null) return this.#lost(undefined, true);
    const { clock, options } = this.#context;
    const native: RabbitNative = {
      consumer: this,
      tag: message.fields.deliveryTag,
      since: clock.monotonic(),
      handed: false,
      settled: false,
    };
    this.#open.push(native);
    this.#unsettled++;
    const { partition, counts } = this.plan;
    const raw = { body: bodyOf(message), native, partition, deliveries: deliveriesOf(message, counts) };
    this.#buffer.push(options.ordered ? { ...raw, epoch: this.epoch } : { ...raw, ...this.#lease() });
    if (!this.#began) {
      this.#began = true;
      this.#events.began(this);
    }
    this.#events.arrived(this);
  }

  /** Competing: a message is ours while the server hears of us, and it heard of us in the last half of a heartbeat. */
  #lease(): { readonly leaseMs?: number } {
    const { heartbeatMs } = this.#context.main;
    return heartbeatMs === Infinity ? {} : { leaseMs: heartbeatMs / 2 };
  }

  #lost(error: unknown, cancelled: boolean): void {
    if (this.#ended) return;
    this.#ended = true;
    if (cancelled) this.#channel?.close().catch(() => {});
    this.#events.lost(this, error, cancelled);
  }

  /** Takes up to `max` messages, in order. */
  take(max: number): Raw[] {
    const raws: Raw[] = [];
    while (raws.length < max) {
      const raw = this.#buffer.shift();
      if (raw === undefined) break;
      (raw.native as RabbitNative).handed = true;
      raws.push(raw);
    }
    return raws;
  }

  /** What was handed out and is not settled. */
  handedOut(): RabbitNative[] {
    return [...this.#open].filter((native) => native.handed && !native.settled);
  }

  /** When the oldest unsettled message arrived; `undefined` = there is none. */
  get oldest(): number | undefined {
    return this.#open.peek()?.since;
  }

  /**
   * Settles for good. Where all before them are settled too, one frame does for many; every other message has a frame of its
   * own, so that nothing that still runs is ever acknowledged.
   */
  async ack(natives: readonly RabbitNative[]): Promise<NativeOutcome[]> {
    return await this.#settle(natives, (channel, ours) => {
      const before = this.#open.peek()?.tag ?? Infinity;
      const last = ours.reduce((most, { tag }) => tag < before && tag > most ? tag : most, 0);
      if (last > 0) channel.ack(of(last), true);
      let frames = last > 0 ? 1 : 0;
      for (const { tag } of ours) {
        if (tag <= last) continue;
        channel.ack(of(tag), false);
        frames++;
      }
      return frames;
    });
  }

  /** Settles as given up: a frame for each, so that the server looks at each by itself. */
  async drop(natives: readonly RabbitNative[]): Promise<NativeOutcome[]> {
    return await this.#settle(natives, (channel, ours) => {
      for (const { tag } of ours) channel.nack(of(tag), false, false);
      return ours.length;
    });
  }

  /** Puts one back into the queue, for whoever comes first. */
  giveBack(native: RabbitNative): void {
    this.#settle([native], (channel) => {
      channel.nack(of(native.tag), false, true);
      return 1;
    }).catch(() => {});
  }

  async #settle(
    natives: readonly RabbitNative[],
    write: (channel: ChannelSlice, ours: readonly RabbitNative[]) => number,
  ): Promise<NativeOutcome[]> {
    const channel = this.#channel;
    const ours = this.#ended || channel === undefined ? [] : natives.filter((native) => !native.settled);
    if (ours.length === 0) {
      this.#mustBeConnected();
      return natives.map(() => "stale");
    }
    for (const native of ours) native.settled = true;
    this.#unsettled -= ours.length;
    while (this.#open.peek()?.settled === true) this.#open.shift();
    let taken: boolean;
    try {
      this.#burst.wrote(write(channel!, ours));
      taken = await this.#barrier();
    } catch {
      taken = false;
    }
    if (!taken) this.#mustBeConnected();
    if (taken && ours.length === natives.length) return natives.map(() => "settled");
    const settled = new Set(ours);
    return natives.map((native) => taken && settled.has(native) ? "settled" : "stale");
  }

  /** A settle that found no connection says nothing good about the server. */
  #mustBeConnected(): void {
    if (!this.#context.main.live) throw unsent("the connection closed");
  }

  /** Whether the server has read everything that was written before: acknowledgements have no answer of their own. */
  #barrier(): Promise<boolean> {
    if (this.#running === undefined) return this.#ask();
    return this.#next ??= this.#running.then(() => {
      this.#next = undefined;
      return this.#ask();
    });
  }

  #ask(): Promise<boolean> {
    const running = this.#channel!.prefetch(this.plan.share).then(() => true, () => false).finally(() => {
      if (this.#running === running) this.#running = undefined;
    });
    return this.#running = running;
  }

  /** Whether the server answers on the channel, so that what was delivered there is still ours. */
  confirmed(): Promise<boolean> {
    return this.#ended ? Promise.resolve(false) : this.#barrier();
  }

  /**
   * What the queue holds ready, and how many consume it; whatever the queue had assigned to us before has arrived by then.
   * `undefined` = the channel ended.
   */
  async look(): Promise<QueueCounts | undefined> {
    if (this.#ended) return undefined;
    try {
      const counts = await this.#channel!.checkQueue(this.plan.queue);
      // The counts overtake deliveries that wait for their turn in the same process of the server.
      return await this.#barrier() ? counts : undefined;
    } catch {
      return undefined;
    }
  }

  /** Gives everything back and ends. Never rejects. */
  async close(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    const late = (): Error => new Error("the channel was not closed in time");
    const close = async (): Promise<void> => {
      // What was settled before is answered first.
      await (this.#next ?? this.#running);
      await this.#burst.over();
      await this.#channel!.close();
    };
    await withDeadline(this.#context.clock, CLOSE_MS, close(), late).catch(() => {});
  }
}

function of(deliveryTag: number): TagSlice {
  return { fields: { deliveryTag } };
}
