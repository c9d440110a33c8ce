import type { Clock, Timer } from "./clock.ts";
import type { Delivery, SubscribeOptions } from "./contract.ts";
import { HeldDelivery } from "./delivery.ts";
import type { Admission, Reader, Subscription } from "./subscription.ts";

type Result = IteratorResult<Delivery, undefined>;
const DONE: Result = { done: true, value: undefined };

/** How long a reader may be served without giving the event loop a turn. */
const YIELD_MS = 2.5;
/** Deliveries between two looks at the clock, at most: a look costs about as much as handing one out. */
const STEP = 16;
/** Where a delivery takes longer than this, the clock is looked at after each. */
const SLOW_MS = 0.1;

interface Waiter {
  resolve(result: Result): void;
  reject(error: unknown): void;
}

/** A delivery whose schema is being asked, and who gets it. */
interface Asked {
  readonly delivery: HeldDelivery;
  readonly waiter: Waiter;
}

/** What a stream needs of the broker's subscriptions. */
export interface StreamSource {
  /** The subscription to read, made if it is not there; undefined = the broker is closed. */
  join(): Subscription | undefined;
  /** Resolves when the subscription stands. */
  start(subscription: Subscription): Promise<void>;
}

/**
 * One reader of a subscription. Hand-written rather than a generator: half the cost a message, and breaking out never waits
 * for a message to come. Until it is read it is nobody's reader and holds nothing.
 */
export class DeliveryStream implements AsyncIterableIterator<Delivery>, Reader {
  readonly #clock: Clock;
  readonly #idleMs: number | undefined;
  readonly #signal: AbortSignal | undefined;
  readonly #source: StreamSource;
  readonly #waiters: Waiter[] = [];
  /** In the order in which they were taken. */
  readonly #asked = new Set<Asked>();
  #subscription: Subscription | undefined;
  #started = false;
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
  #watching = false;

  constructor(clock: Clock, options: SubscribeOptions, source: StreamSource) {
    this.#clock = clock;
    this.#idleMs = options.idleMs;
    this.#signal = options.signal;
    this.#source = source;
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
    if (!this.#started) return this.#begin();
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
    if (now - this.#turnAt > YIELD_MS) return true;
    if (!this.#watching) {
      // The loop may turn by itself, between two batches: then none is due.
      this.#watching = true;
      this.#clock.turn(() => this.#turned());
    }
    return false;
  }

  #turned(): void {
    this.#watching = false;
    this.#turnAt = this.#clock.monotonic();
  }

  #take(): Promise<Result> {
    const taken = this.#waiters.length > 0 ? undefined : this.#subscription?.take();
    if (taken instanceof HeldDelivery) return Promise.resolve({ done: false, value: taken });
    return new Promise((resolve, reject) => {
      this.#waiters.push({ resolve, reject });
      if (taken !== undefined) this.giveLater(taken);
      else this.#watchIdle();
    });
  }

  #begin(): Promise<Result> {
    if (this.#subscription === undefined) {
      const subscription = this.#signal?.aborted ? undefined : this.#source.join();
      if (subscription === undefined) {
        this.end();
        return this.#finish();
      }
      this.#subscription = subscription;
      subscription.attach(this);
      this.#signal?.addEventListener("abort", this.#abort, { once: true });
      this.#source.start(subscription).then(() => {
        this.#started = true;
        this.#turnAt = this.#clock.monotonic();
        // Those who asked meanwhile are served in the order in which they asked.
        for (const { resolve, reject } of this.#waiters.splice(0)) this.#take().then(resolve, reject);
      }, (error) => this.end(error));
    }
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

  /** Looks after the end of a stream that waits: asks for what is ready, or counts the time. */
  #watchIdle(): void {
    if (this.#idleMs === 0) this.#probe();
    else if (this.#idleMs !== undefined && this.#idle === undefined) {
      this.#idle = this.#clock.timer(this.#idleMs, () => {
        this.#idle = undefined;
        if (this.#asked.size > 0) return;
        if (this.#fetched) this.end();
        else this.#probe();
      });
    }
  }

  /** Ends the stream if a read that starts now brings nothing, and nothing came while the answer was on its way. */
  #probe(): void {
    if (this.#probing || this.#subscription === undefined) return;
    this.#probing = true;
    this.#served = 0;
    this.#subscription.probe().then((answer) => {
      this.#probing = false;
      this.#fetched = true;
      if (!this.waiting || this.#ended || this.#asked.size > 0) return;
      if (answer === "more" || this.#served > 0) this.#probe();
      else this.end();
    }, (error) => {
      this.#probing = false;
      this.end(error);
    });
  }

  /** Something came: what is waited for now is the next. */
  #came(): Waiter | undefined {
    this.#idle?.cancel();
    this.#idle = undefined;
    this.#fetched = true;
    this.#served++;
    return this.#waiters.shift();
  }

  /** Hands one to the longest waiter. */
  give(delivery: HeldDelivery): void {
    const waiter = this.#came();
    if (waiter === undefined) return this.#subscription?.putBack(delivery);
    waiter.resolve({ done: false, value: delivery });
    if (this.waiting) this.#watchIdle();
  }

  /** Hands one over once its schema has answered; a refused one makes room for the next. */
  giveLater({ delivery, admitted }: Admission): void {
    const waiter = this.#came();
    if (waiter === undefined) return this.#subscription?.putBack(delivery);
    const asked = { delivery, waiter };
    this.#asked.add(asked);
    void admitted.then((ok) => {
      // Not there any more: the stream has ended, and put it back.
      if (!this.#asked.delete(asked)) return;
      if (ok && delivery.state === "open") waiter.resolve({ done: false, value: delivery });
      else this.#take().then(waiter.resolve, waiter.reject);
      if (this.waiting) this.#watchIdle();
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
    const asked = [...this.#asked];
    this.#asked.clear();
    const waiters = [...asked.map(({ waiter }) => waiter), ...this.#waiters.splice(0)];
    for (const waiter of waiters) this.#finish().then(waiter.resolve, waiter.reject);
    this.#subscription?.detach(this);
    for (const { delivery } of asked) this.#subscription?.putBack(delivery);
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
