import type { Clock, Timer } from "./clock.ts";
import type { AckOptions, RetryOptions, SettleOutcome, TopicHealth } from "./contract.ts";
import { type DeliveryOwner, HeldDelivery, type Item } from "./delivery.ts";
import { BrokerUnavailableError, InvalidOptionError } from "./errors.ts";
import { ReadyQueue } from "./ready_queue.ts";
import { forEachId, RangeBuilder, type Ranges, type ToHost, type ToSession } from "./session/messages.ts";

/** What a subscription needs of its broker. */
export interface SubscriptionHost {
  readonly clock: Clock;
  post(message: ToSession): void;
  /** Posts what `message` makes of a fresh call number and waits for the answer. */
  call(message: (call: number) => ToSession): Promise<unknown>;
  expired(sub: number, id: number): boolean;
  settleFailed(subscription: Subscription, count: number, why: string): void;
  dropped(subscription: Subscription, delivery: HeldDelivery, reason: string): void;
  /** Checks against the topic's schema; `undefined` = hand it out, a promise where the schema is asynchronous. */
  admit(subscription: Subscription, delivery: HeldDelivery): undefined | Promise<boolean>;
  /** Nobody reads it and nothing is handed out: leave. */
  abandon(subscription: Subscription): void;
}

/** A delivery whose schema is being asked. */
export interface Admission {
  readonly delivery: HeldDelivery;
  /** Whether it may go out. Never rejects. */
  readonly admitted: Promise<boolean>;
}

/** A reader of a subscription, as the subscription sees it. */
export interface Reader {
  /** Whether it waits for a delivery. */
  readonly waiting: boolean;
  /** Hands one over. */
  give(delivery: HeldDelivery): void;
  /** Hands one over once its schema has answered. */
  giveLater(admission: Admission): void;
  /** Ends it, with an error or without. */
  end(error?: Error): void;
}

/** Longest `retry` delay; longer waits belong to a timer of the store. */
const MAX_RETRY_MS = 60_000;
/** How long a subscription without a reader keeps its partitions. */
const LINGER_MS = 5_000;

/**
 * The host's ledger of one topic and group: what waits, what is held back, what is handed out. Settles once, knows what is
 * stale, and sends settles in batches: at half the window, when nothing is left to hand out, or in the next turn.
 */
export class Subscription implements DeliveryOwner {
  readonly topic: string;
  readonly group: string;
  readonly prefetch: number;
  /** Number of the subscription in its session; a new one after each restart of the session. */
  sub: number;
  state: TopicHealth["state"] = "starting";
  /** Whether the session has it. */
  begun = false;
  lag: number | undefined;
  readonly #host: SubscriptionHost;
  readonly #ready: ReadyQueue;
  readonly #handed = new Map<number, HeldDelivery>();
  readonly #streams = new Set<Reader>();
  readonly #acks = new RangeBuilder();
  readonly #drops = new RangeBuilder();
  #goodUntil = Infinity;
  #flushing = false;
  #linger: Timer | undefined;

  constructor(host: SubscriptionHost, sub: number, topic: string, group: string, prefetch: number) {
    this.#host = host;
    this.sub = sub;
    this.topic = topic;
    this.group = group;
    this.prefetch = prefetch;
    this.#ready = new ReadyQueue(host.clock, () => this.#offer());
  }

  /** Unsettled here: waiting, held and handed out. */
  get unsettled(): number {
    return this.#ready.size + this.#handed.size;
  }

  /** Handed out and not settled. */
  get handedOut(): number {
    return this.#handed.size;
  }

  /** A reader joins. */
  attach(stream: Reader): void {
    this.#stay();
    this.#streams.add(stream);
  }

  #stay(): void {
    this.#linger?.cancel();
    this.#linger = undefined;
  }

  /** A reader leaves; what it was handed stays settleable, what it was not goes to the next one. */
  detach(stream: Reader): void {
    if (this.#streams.delete(stream)) this.#mayLeave();
  }

  #mayLeave(): void {
    if (this.#streams.size > 0 || this.#handed.size > 0 || this.#linger !== undefined) return;
    this.#linger = this.#host.clock.timer(LINGER_MS, () => {
      this.#linger = undefined;
      if (this.#streams.size === 0 && this.#handed.size === 0) this.#host.abandon(this);
    });
  }

  /** A batch arrived. */
  deliver(message: Extract<ToHost, { k: "deliver" }>): void {
    this.#ready.push(message.base, message.texts, message.dataAt, message.attempts);
    this.#offer();
  }

  /** What was delivered may be handed out until then. */
  lease(until: number): void {
    this.#goodUntil = until;
    this.#offer();
  }

  #offer(): void {
    for (const stream of this.#streams) {
      while (stream.waiting) {
        const delivery = this.take();
        if (delivery === undefined) return;
        if (delivery instanceof HeldDelivery) stream.give(delivery);
        else stream.giveLater(delivery);
      }
    }
  }

  /** The next delivery for a reader, or undefined. */
  take(): HeldDelivery | Admission | undefined {
    // Past it we were frozen, or our worker was: whether all is still ours is about to be told.
    const ours = this.#goodUntil === Infinity || this.#host.clock.monotonic() < this.#goodUntil;
    let item = ours ? this.#ready.take() : undefined;
    // A message may have a lease of its own, which ran out while this thread stood still.
    while (item !== undefined && this.#host.expired(this.sub, item.id)) item = this.#ready.take();
    if (item === undefined) {
      this.flush();
      return undefined;
    }
    const delivery = new HeldDelivery(this, item);
    this.#handed.set(item.id, delivery);
    const admitted = this.#host.admit(this, delivery);
    return admitted === undefined ? delivery : { delivery, admitted };
  }

  /** Puts back what a reader took and ended before getting. */
  putBack(delivery: HeldDelivery): void {
    if (delivery.state !== "open") return;
    this.#handed.delete(delivery.id);
    delivery.state = "settled";
    this.#ready.hold(delivery, 0);
    if (this.#handed.size === 0) this.#mayLeave();
  }

  settle(delivery: HeldDelivery, kind: "ack" | "drop", options: AckOptions | undefined): Promise<SettleOutcome> {
    const refused = this.#refuse(delivery);
    if (refused !== undefined) return Promise.resolve(refused);
    delivery.state = "settled";
    this.#handed.delete(delivery.id);
    if (this.#handed.size === 0) this.#mayLeave();
    if (options?.confirm === true) {
      this.flush();
      const ranges = [delivery.id, delivery.id];
      const sub = this.sub;
      return this.#host.call((call) => ({
        k: "settle",
        sub,
        call,
        ...(kind === "ack" ? { acks: ranges } : { drops: ranges }),
      })) as Promise<SettleOutcome>;
    }
    (kind === "ack" ? this.#acks : this.#drops).add(delivery.id);
    if (this.#acks.count + this.#drops.count >= Math.max(1, this.prefetch >> 1)) this.flush();
    else if (!this.#flushing) {
      this.#flushing = true;
      this.#host.clock.turn(() => {
        this.#flushing = false;
        this.flush();
      });
    }
    return ACCEPTED;
  }

  #refuse(delivery: HeldDelivery): SettleOutcome | undefined {
    if (delivery.state === "settled") return "already";
    if (delivery.state === "open" && this.#host.expired(this.sub, delivery.id)) {
      this.#handed.delete(delivery.id);
      delivery.lose(new BrokerUnavailableError("the lease of this delivery ran out"));
    }
    return delivery.state === "lost" ? "stale" : undefined;
  }

  retry(delivery: HeldDelivery, options: RetryOptions | undefined): Promise<SettleOutcome> {
    const delayMs = options?.delayMs ?? 0;
    if (!(delayMs >= 0 && delayMs <= MAX_RETRY_MS)) {
      return Promise.reject(
        new InvalidOptionError(
          `delayMs must be a number from 0 to ${MAX_RETRY_MS.toLocaleString("en")}; wait longer with ctx.schedule`,
        ),
      );
    }
    const refused = this.#refuse(delivery);
    if (refused !== undefined) return Promise.resolve(refused);
    delivery.state = "settled";
    this.#handed.delete(delivery.id);
    const again: Item = { ...identity(delivery), attempt: delivery.attempt + 1 };
    this.#ready.hold(again, delayMs);
    if (this.#handed.size === 0) this.#mayLeave();
    return ACCEPTED;
  }

  dropped(delivery: HeldDelivery, reason: string): void {
    if (delivery.state === "open") this.#host.dropped(this, delivery, reason);
  }

  /** Sends the settles collected so far. */
  flush(): void {
    if (this.#acks.count + this.#drops.count === 0) return;
    const acks = this.#acks.count > 0 ? { acks: this.#acks.take() } : {};
    const drops = this.#drops.count > 0 ? { drops: this.#drops.take() } : {};
    this.#host.post({ k: "settle", sub: this.sub, ...acks, ...drops });
  }

  /** These are no longer ours. */
  lost(ids: Ranges, why: string): void {
    this.#ready.remove(ids);
    const reason = new BrokerUnavailableError(`the delivery was lost: ${why}`);
    forEachId(ids, (id) => {
      this.#handed.get(id)?.lose(reason);
      this.#handed.delete(id);
    });
    if (this.#handed.size === 0) this.#mayLeave();
  }

  /** These settles did not take effect. */
  settleFailed(ids: Ranges, why: string): void {
    let count = 0;
    forEachId(ids, () => void count++);
    this.#host.settleFailed(this, count, why);
  }

  /** The session is gone: everything here is lost. `sub` numbers the subscription in the next one. */
  restart(sub: number, why: string): void {
    this.#acks.take();
    this.#drops.take();
    this.#loseAll(why);
    this.sub = sub;
    this.state = "starting";
    this.begun = false;
    this.#mayLeave();
  }

  #loseAll(why: string): void {
    this.#ready.clear();
    const reason = new BrokerUnavailableError(`the delivery was lost: ${why}`);
    for (const delivery of this.#handed.values()) delivery.lose(reason);
    this.#handed.clear();
    this.#goodUntil = Infinity;
  }

  /** Asks the session for a read that starts now; resolves to "more" or "empty". */
  probe(): Promise<unknown> {
    const sub = this.sub;
    return this.#host.call((call) => ({ k: "probe", call, sub }));
  }

  /** Ends every reader, with an error or without, and all timers. */
  end(error?: Error): void {
    for (const stream of [...this.#streams]) stream.end(error);
    this.#stay();
    this.flush();
    this.#loseAll("the subscription ended");
  }

  /** How it stands. */
  health(): TopicHealth {
    return {
      topic: this.topic,
      group: this.group,
      state: this.state,
      unsettled: this.unsettled,
      ...(this.lag === undefined ? {} : { lag: this.lag }),
    };
  }
}

const ACCEPTED: Promise<SettleOutcome> = Promise.resolve("accepted");

function identity(item: Item): Omit<Item, "attempt"> {
  return { id: item.id, text: item.text, dataAt: item.dataAt };
}
