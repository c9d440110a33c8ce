import { Calls } from "./calls.ts";
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
}

/** The host's end of the line: starts the link on first use, numbers calls, matches answers. */
export class SessionClient implements LinkSink {
  readonly calls: Calls = new Calls();
  readonly #factory: LinkFactory;
  readonly #events: ClientEvents;
  #link: Link | undefined;
  #starting: Promise<void> | undefined;
  #up = false;
  #down: EdaError | undefined;
  #wake: (() => void)[] = [];
  #ended = false;

  constructor(factory: LinkFactory, events: ClientEvents) {
    this.#factory = factory;
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

  /** Whether it was ever used. */
  get started(): boolean {
    return this.#link !== undefined;
  }

  /** Starts the session, once; a start that failed may be tried again. While one is down, waits for the next. */
  start(): Promise<void> {
    if (this.#ended) return Promise.reject(closed());
    if (this.#down !== undefined) return new Promise((resolve) => this.#wake.push(resolve));
    this.#starting ??= this.#begin().catch((error) => {
      this.#starting = undefined;
      throw error;
    });
    return this.#starting;
  }

  async #begin(): Promise<void> {
    const link = this.#factory();
    this.#link = link;
    try {
      await link.start(this);
      this.#up = true;
    } catch (cause) {
      this.#link = undefined;
      throw isEdaError(cause) ? cause : new WorkerStartError("the worker could not be started; see cause", { cause });
    }
  }

  /** Sends; dropped while the session is down. */
  post(message: ToSession): void {
    if (this.#up) this.#link?.post(message);
  }

  /** Sends and waits for the answer. */
  async call(message: (call: number) => ToSession): Promise<unknown> {
    if (!this.#up) await this.start();
    if (!this.#up) throw closed();
    return this.calls.make((call) => this.#link?.post(message(call)));
  }

  /** See {@link Link.expired}. */
  expired(sub: number, id: number): boolean {
    return this.#link?.expired?.(sub, id) ?? false;
  }

  receive(message: ToHost): void {
    if (message.k === "answer") this.calls.answer(message.call, message.value, message.error);
    else this.#events.receive(message);
  }

  down(error: Error): void {
    this.#up = false;
    if (this.#ended) return;
    this.#down = error as EdaError;
    this.#events.down(this.#down);
  }

  up(): void {
    if (this.#ended) return;
    this.#up = true;
    this.#down = undefined;
    for (const wake of this.#wake.splice(0)) wake();
    this.#events.up();
  }

  /** No new calls; those that wait fail. */
  refuse(): void {
    this.#ended = true;
  }

  /** Ends the link. */
  async end(deadlineMs: number): Promise<boolean> {
    this.#ended = true;
    this.calls.end();
    this.#up = false;
    for (const wake of this.#wake.splice(0)) wake();
    const { terminated } = await this.#link?.end(deadlineMs) ?? { terminated: false };
    return terminated;
  }
}

/** What every call after `close` gets. */
export function closed(): ClosedError {
  return new ClosedError("the broker is closed; make a new one");
}
