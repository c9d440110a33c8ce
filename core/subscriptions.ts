import { Backoff, type Clock, type Timer } from "./clock.ts";
import type { Capabilities, SubscribeOptions, TopicHealth } from "./contract.ts";
import type { HeldDelivery } from "./delivery.ts";
import { BrokerUnavailableError, type EdaError, EnvelopeCorruptError, isEdaError } from "./errors.ts";
import type { SessionClient } from "./session_client.ts";
import type { ToHost, ToSession } from "./session/messages.ts";
import { DeliveryStream } from "./stream.ts";
import { Subscription, type SubscriptionHost } from "./subscription.ts";

/** What the subscriptions of a broker need of it. */
export interface SubscriptionsOptions {
  readonly clock: Clock;
  readonly client: SessionClient;
  settleFailed(topic: string, group: string, count: number, why: string): void;
  dropped(topic: string, reason: string): void;
  connected(capabilities: Capabilities): void;
  /** Checks a delivery against its topic's schema: `undefined` = passed. Rejects with why not. */
  validate(topic: string, delivery: HeldDelivery): undefined | Promise<void>;
  /** Records a delivery that its schema refused; answers whether the record is written. */
  record(subscription: Subscription, delivery: HeldDelivery, error: EdaError): Promise<boolean>;
}

/** All subscriptions of one broker object, by topic and group; starts them, and again in a new session. */
export class Subscriptions implements SubscriptionHost {
  readonly clock: Clock;
  readonly #options: SubscriptionsOptions;
  readonly #client: SessionClient;
  readonly #byKey = new Map<string, Subscription>();
  readonly #bySub = new Map<number, Subscription>();
  readonly #starting = new Map<Subscription, Promise<void>>();
  readonly #timers = new Set<Timer>();
  #nextSub = 1;
  #closed = false;

  constructor(options: SubscriptionsOptions) {
    this.clock = options.clock;
    this.#options = options;
    this.#client = options.client;
  }

  /** A reader of a topic and group. */
  open(topic: string, group: string, prefetch: number, options: SubscribeOptions): DeliveryStream {
    return new DeliveryStream(this.clock, options, {
      join: () => this.#closed ? undefined : this.#join(topic, group, prefetch),
      start: (subscription) => this.#start(subscription),
    });
  }

  #join(topic: string, group: string, prefetch: number): Subscription {
    const key = `${group}\0${topic}`;
    let subscription = this.#byKey.get(key);
    if (subscription === undefined) {
      subscription = new Subscription(this, this.#nextSub++, topic, group, prefetch);
      this.#byKey.set(key, subscription);
      this.#bySub.set(subscription.sub, subscription);
    }
    return subscription;
  }

  #start(subscription: Subscription): Promise<void> {
    if (subscription.begun) return Promise.resolve();
    let starting = this.#starting.get(subscription);
    if (starting === undefined) {
      starting = this.#subscribe(subscription).finally(() => this.#starting.delete(subscription));
      this.#starting.set(subscription, starting);
    }
    return starting;
  }

  async #subscribe(subscription: Subscription): Promise<void> {
    const { topic, group, prefetch } = subscription;
    await this.#client.start();
    if (!this.#isOurs(subscription)) throw new BrokerUnavailableError("the subscription was left before it began");
    const sub = subscription.sub;
    const at = this.clock.monotonic();
    const answer = await this.call((call) => ({ k: "subscribe", call, sub, topic, group, prefetch, at }));
    subscription.begun = true;
    this.#options.connected(answer as Capabilities);
  }

  /** A message about one subscription; messages of an earlier session name numbers that are gone. */
  receive(message: Extract<ToHost, { readonly sub: number }>): void {
    const subscription = this.#bySub.get(message.sub);
    if (subscription === undefined) return;
    switch (message.k) {
      case "deliver":
        return subscription.deliver(message);
      case "lease":
        return subscription.lease(message.until);
      case "lost":
        return subscription.lost(message.ids, message.why);
      case "settle-failed":
        return subscription.settleFailed(message.ids, message.why);
      case "failed":
        return this.abandon(subscription, message.error as Error);
      case "topic":
        subscription.state = message.state;
        return;
      case "lag":
        subscription.lag = message.count;
        return;
    }
  }

  /** The subscription behind a number. */
  find(sub: number): Subscription | undefined {
    return this.#bySub.get(sub);
  }

  /** The session died: what was handed out is lost. */
  down(why: string): void {
    this.#bySub.clear();
    for (const subscription of this.#byKey.values()) {
      subscription.restart(this.#nextSub++, why);
      this.#bySub.set(subscription.sub, subscription);
    }
  }

  /** A new session stands: consumption goes on. */
  up(): void {
    for (const subscription of this.#byKey.values()) this.#again(subscription, new Backoff(this.clock, 100, 1_000));
  }

  /** Whether it was not left: a session would read for nobody. */
  #isOurs(subscription: Subscription): boolean {
    return this.#bySub.get(subscription.sub) === subscription;
  }

  #again(subscription: Subscription, backoff: Backoff): void {
    if (!this.#isOurs(subscription)) return;
    const sub = subscription.sub;
    this.#start(subscription).catch((error) => {
      if (this.#closed || subscription.sub !== sub || !this.#isOurs(subscription)) return;
      if (isEdaError(error) && !error.retriable) return this.#remove(subscription, error);
      const timer = this.clock.timer(backoff.next(), () => {
        this.#timers.delete(timer);
        this.#again(subscription, backoff);
      });
      this.#timers.add(timer);
    });
  }

  #remove(subscription: Subscription, error?: Error): void {
    this.#byKey.delete(`${subscription.group}\0${subscription.topic}`);
    this.#bySub.delete(subscription.sub);
    subscription.end(error);
    this.#client.rest();
  }

  post(message: ToSession): void {
    this.#client.post(message);
  }

  call(message: (call: number) => ToSession): Promise<unknown> {
    return this.#client.call(message);
  }

  expired(sub: number, id: number): boolean {
    return this.#client.expired(sub, id);
  }

  settleFailed(subscription: Subscription, count: number, why: string): void {
    this.#options.settleFailed(subscription.topic, subscription.group, count, why);
  }

  dropped(subscription: Subscription, _delivery: HeldDelivery, reason: string): void {
    this.#options.dropped(subscription.topic, reason);
  }

  admit(subscription: Subscription, delivery: HeldDelivery): undefined | Promise<boolean> {
    const checked = this.#options.validate(subscription.topic, delivery);
    // One that was put back or lost meanwhile is asked about again.
    return checked?.then(
      () => true,
      (cause) => delivery.state === "open" ? this.#refused(subscription, delivery, cause) : false,
    );
  }

  async #refused(subscription: Subscription, delivery: HeldDelivery, cause: unknown): Promise<boolean> {
    const error = isEdaError(cause) ? cause : new EnvelopeCorruptError("schema", "the topic's schema threw", { cause });
    if (await this.#options.record(subscription, delivery, error)) {
      await subscription.settle(delivery, "drop", undefined);
    } else {
      await subscription.retry(delivery, { delayMs: 1_000 });
    }
    return false;
  }

  abandon(subscription: Subscription, error?: Error): void {
    const sub = subscription.sub;
    this.#remove(subscription, error);
    if (this.#client.isUp) this.call((call) => ({ k: "unsubscribe", call, sub })).catch(() => {});
  }

  /** How many there are. */
  get size(): number {
    return this.#byKey.size;
  }

  /** Handed out and not settled, over all. */
  get handedOut(): number {
    let count = 0;
    for (const subscription of this.#byKey.values()) count += subscription.handedOut;
    return count;
  }

  /** Sends all settles collected. */
  flush(): void {
    for (const subscription of this.#byKey.values()) subscription.flush();
  }

  /** Ends all readers and timers. */
  end(): void {
    this.#closed = true;
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
    for (const subscription of [...this.#byKey.values()]) this.#remove(subscription);
  }

  /** How each stands. */
  health(): TopicHealth[] {
    return [...this.#byKey.values()].map((subscription) => subscription.health());
  }
}
