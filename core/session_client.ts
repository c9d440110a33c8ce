import { Calls } from "./calls.ts";
import { type Clock, type Timer, withDeadline } from "./clock.ts";
import { ClosedError, type EdaError, isEdaError, WorkerStartError } from "./errors.ts";
import type { Link, LinkFactory, LinkSink } from "./link.ts";
import type { ToHost, ToSession } from "./session/messages.ts";

/** What follows from what the session says. */
export interface ClientEvents {
  /** Everything but answers to calls. */
  receive(message: ToHost): void;
  /** The session died; `error` says how. */
  down(error: EdaError): void;
  /** A new one stands after that. */
  up(): void;
  /** Whether anything is in flight or subscribed; asked only where an idle session is to end. */
  busy(): boolean;
}

/** How a {@link SessionClient} is made. */
export interface ClientOptions {
  readonly clock: Clock;
  readonly factory: LinkFactory;
  /** false = a session with nothing to do is ended, and with it what keeps the process alive; the next call starts another. */
  readonly keepAlive: boolean;
}

interface Waiter {
  resolve(): void;
  reject(error: Error): void;
}

/** How long a session has nothing to do before it is ended, where it is not to be kept. */
const REST_MS = 200;
/** How long an idle session may take to close, and its thread to end. */
const END_MS = 2_000;

/** The host's end of the line: starts the link on first use, numbers calls, matches answers. */
export class SessionClient {
  readonly calls: Calls = new Calls();
  readonly #options: ClientOptions;
  readonly #events: ClientEvents;
  #link: Link | undefined;
  #starting: Promise<void> | undefined;
  #up = false;
  #down: EdaError | undefined;
  #waiters: Waiter[] = [];
  #ended = false;
  #resting: Promise<void> | undefined;
  #rest: Timer | undefined;
  #restedAt = 0;

  constructor(options: ClientOptions, events: ClientEvents) {
    this.#options = options;
    this.#events = events;
  }

  /** Whether messages reach a session now. */
  get isUp(): boolean {
    return this.#up;
  }

  /** Why there is no session now although there was one; a new one is coming. */
  get downBy(): EdaError | undefined {
    return this.#down;
  }

  /** Starts the session, once; a start that failed may be tried again. While one is down, waits for the next. */
  start(): Promise<void> {
    if (this.#ended) return Promise.reject(closed());
    if (this.#down !== undefined) return this.#successor();
    this.#starting ??= this.#begin().catch((error) => {
      this.#starting = undefined;
      throw error;
    });
    return this.#starting;
  }

  async #begin(): Promise<void> {
    await this.#resting;
    if (this.#ended) throw closed();
    const link = this.#link = this.#options.factory();
    try {
      await link.start(this.#sink(link));
    } catch (cause) {
      if (this.#link === link) this.#link = undefined;
      throw isEdaError(cause) ? cause : new WorkerStartError("the worker could not be started; see cause", { cause });
    }
    if (this.#ended) throw closed();
    if (this.#link !== link) return await this.start();
    // It may have died in the moment in which it stood; then the next one is waited for.
    if (this.#down !== undefined) return await this.#successor();
    this.#up = true;
  }

  #successor(): Promise<void> {
    return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }));
  }

  /** A link that was left says nothing any more, but for answers. */
  #sink(link: Link): LinkSink {
    const ours = (): boolean => this.#link === link && !this.#ended;
    return {
      receive: (message) => this.#receive(message),
      down: (error) => ours() ? this.#lost(error as EdaError) : this.calls.fail(error as EdaError),
      up: () => ours() ? this.#restored() : undefined,
    };
  }

  #receive(message: ToHost): void {
    if (message.k === "answer") this.calls.answer(message.call, message.value, message.error);
    else this.#events.receive(message);
    if (message.k === "answer" || message.k === "published") this.rest();
  }

  #lost(error: EdaError): void {
    this.#up = false;
    this.#down = error;
    this.#events.down(error);
    if (this.#options.keepAlive || this.#events.busy()) return;
    // Nobody waits for its successor; the next call starts one.
    const link = this.#link;
    this.#forget();
    this.#resting = link?.end(END_MS).then(() => {});
  }

  #restored(): void {
    this.#up = true;
    this.#down = undefined;
    for (const waiter of this.#waiters.splice(0)) waiter.resolve();
    this.#events.up();
    this.rest();
  }

  #forget(): void {
    this.#link = undefined;
    this.#starting = undefined;
    this.#up = false;
    this.#down = undefined;
  }

  /** Sends; dropped while the session is down. */
  post(message: ToSession): void {
    if (this.#up) this.#link?.post(message);
  }

  /** Sends and waits for the answer. */
  async call(message: (call: number) => ToSession): Promise<unknown> {
    if (!this.#up) await this.start();
    if (!this.#up) throw closed();
    return await this.calls.make((call) => this.#link?.post(message(call)));
  }

  /** See {@link Link.expired}. */
  expired(sub: number, id: number): boolean {
    return this.#link?.expired?.(sub, id) ?? false;
  }

  /** Something came to its end: where the session is not to be kept, it may be the last thing. */
  rest(): void {
    if (this.#options.keepAlive) return;
    const { clock } = this.#options;
    this.#restedAt = clock.monotonic();
    if (this.#rest !== undefined || !this.#up || this.#events.busy()) return;
    this.#rest = clock.timer(REST_MS, () => this.#mayRest());
  }

  #mayRest(): void {
    this.#rest = undefined;
    if (!this.#up || this.#events.busy()) return;
    const { clock } = this.#options;
    const left = this.#restedAt + REST_MS - clock.monotonic();
    if (left > 0) this.#rest = clock.timer(left, () => this.#mayRest());
    else this.#resting = this.#leave();
  }

  /** Ends a session that has nothing to do. */
  async #leave(): Promise<void> {
    const link = this.#link!;
    this.#forget();
    const late = (): Error => new Error("closing took too long");
    const answer = this.calls.make((call) => link.post({ k: "close", call, drainMs: 0 }));
    await withDeadline(this.#options.clock, END_MS, answer, late).catch(() => {});
    await link.end(END_MS);
  }

  /** Ends the link and refuses every call to come; answers whether force was needed. */
  async end(deadlineMs: number): Promise<boolean> {
    this.#ended = true;
    this.#up = false;
    this.#rest?.cancel();
    this.calls.end();
    for (const waiter of this.#waiters.splice(0)) waiter.reject(closed());
    await this.#resting;
    const { terminated } = await this.#link?.end(deadlineMs) ?? { terminated: false };
    return terminated;
  }
}

/** What every call after `close` gets. */
export function closed(): ClosedError {
  return new ClosedError("the broker is closed; make a new one");
}
