import type { Clock, Timer } from "./clock.ts";
import type { Delivery, SubscribeOptions } from "./contract.ts";
import type { HeldDelivery } from "./delivery.ts";
import type { Reader, Subscription } from "./subscription.ts";

type Result = IteratorResult<Delivery, undefined>;
const DONE: Result = { done: true, value: undefined };

/** How long a reader may be served without giving the event loop a turn. */
const YIELD_MS = 4;
/** Deliveries between two looks at the clock, at most: a look costs about as much as handing one out. */
const STEP = 16;
/** Where a delivery takes longer than this, the clock is looked at after each. */
const SLOW_MS = 0.1;

interface Waiter {
  resolve(result: Result): void;
  reject(error: unknown): void;
}

/**
 * One reader of a subscription. Hand-written rather than a generator: half the cost a message, and breaking out never waits
 * for a message to come.
 */
export class DeliveryStream implements AsyncIterableIterator<Delivery>, Reader {
  readonly #subscription: Subscription;
  readonly #clock: Clock;
  readonly #idleMs: number | undefined;
  readonly #signal: AbortSignal | undefined;
  readonly #waiters: Waiter[] = [];
  readonly #start: () => Promise<void>;
  #started: Promise<void> | true | undefined;
  #idle: Timer | undefined;
  #probing = false;
  #fetched = false;
  #ended = false;
  #error: Error | undefined;
  #served = 0;
  #turnAt = 0;
  #lookedAt = 0;
  #sinceLook = 0;
  #step = 1;

  constructor(subscription: Subscription, clock: Clock, options: SubscribeOptions, start: () => Promise<void>) {
    this.#subscription = subscription;
    this.#clock = clock;
    this.#idleMs = options.idleMs;
    this.#signal = options.signal;
    this.#start = start;
    if (this.#signal?.aborted) this.#ended = true;
    else {
      subscription.attach(this);
      this.#signal?.addEventListener("abort", this.#abort, { once: true });
    }
  }

  readonly #abort = (): void => this.end();

  /** Whether a reader waits. */
  get waiting(): boolean {
    return this.#waiters.length > 0;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Result> {
    if (this.#ended) return this.#finish();
    if (this.#started !== true) return this.#begin();
    this.#served++;
    if (++this.#sinceLook >= this.#step && this.#mustYield()) return this.#yield();
    return this.#take();
  }

  /** Whether the event loop is due a turn. That a reader had to wait is none: in process, all of it may be microtasks. */
  #mustYield(): boolean {
    const now = this.#clock.monotonic();
    const slow = now - this.#lookedAt > this.#sinceLook * SLOW_MS;
    this.#step = slow ? 1 : Math.min(STEP, this.#step * 2);
    this.#sinceLook = 0;
    this.#lookedAt = now;
    return now - this.#turnAt > YIELD_MS;
  }

  #take(): Promise<Result> {
    if (this.#waiters.length > 0) return this.#wait();
    const delivery = this.#subscription.take();
    if (delivery === undefined) return this.#wait();
    if (delivery instanceof Promise) {
      const waiting = this.#wait();
      this.giveLater(delivery);
      return waiting;
    }
    return Promise.resolve({ done: false, value: delivery });
  }

  #begin(): Promise<Result> {
    this.#started ??= this.#start().then(() => {
      this.#started = true;
      this.#turnAt = this.#clock.monotonic();
      // Those who asked meanwhile are served in the order in which they asked.
      for (const { resolve, reject } of this.#waiters.splice(0)) this.#take().then(resolve, reject);
    }, (error) => this.end(error));
    return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }));
  }

  #yield(): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#clock.turn(() => {
        this.#turnAt = this.#clock.monotonic();
        if (this.#ended) this.#finish().then(resolve, reject);
        else this.#take().then(resolve, reject);
      });
    });
  }

  #wait(): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiters.push({ resolve, reject });
      if (this.#idleMs === 0) this.#probe();
      else if (this.#idleMs !== undefined && this.#idle === undefined) {
        this.#idle = this.#clock.timer(this.#idleMs, () => {
          this.#idle = undefined;
          if (this.#fetched) this.end();
          else this.#probe();
        });
      }
    });
  }

  /** Ends the stream if a read that starts now brings nothing, and nothing came while the answer was on its way. */
  #probe(): void {
    if (this.#probing) return;
    this.#probing = true;
    this.#served = 0;
    this.#subscription.probe().then((answer) => {
      this.#probing = false;
      this.#fetched = true;
      if (!this.waiting || this.#ended) return;
      if (answer === "more" || this.#served > 0) this.#probe();
      else this.end();
    }, (error) => {
      this.#probing = false;
      this.end(error);
    });
  }

  /** Hands one to the longest waiter. */
  give(delivery: HeldDelivery): void {
    this.#idle?.cancel();
    this.#idle = undefined;
    this.#fetched = true;
    this.#served++;
    const waiter = this.#waiters.shift();
    if (waiter === undefined) this.#subscription.putBack(delivery);
    else waiter.resolve({ done: false, value: delivery });
  }

  /** Hands one over once its schema has answered; a refused one makes room for the next. */
  giveLater(delivery: Promise<HeldDelivery | undefined>): void {
    const waiter = this.#waiters.shift();
    delivery.then((ready) => {
      if (ready !== undefined && ready.state === "open") {
        if (waiter !== undefined && !this.#ended) waiter.resolve({ done: false, value: ready });
        else this.#subscription.putBack(ready);
      } else if (waiter !== undefined) {
        if (this.#ended) this.#finish().then(waiter.resolve, waiter.reject);
        else this.#take().then(waiter.resolve, waiter.reject);
      }
    });
  }

  /** Ends it: waiters get the error once, then the end. */
  end(error?: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.#idle?.cancel();
    this.#idle = undefined;
    this.#signal?.removeEventListener("abort", this.#abort);
    this.#subscription.detach(this);
    for (const waiter of this.#waiters.splice(0)) this.#finish().then(waiter.resolve, waiter.reject);
  }

  #finish(): Promise<Result> {
    const error = this.#error;
    this.#error = undefined;
    return error === undefined ? Promise.resolve(DONE) : Promise.reject(error);
  }

  return(): Promise<Result> {
    this.end();
    return Promise.resolve(DONE);
  }
}
