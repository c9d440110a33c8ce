import { BrokerUnavailableError, ClosedError, type EdaError, isEdaError } from "../errors.ts";
import { Backoff, type Clock, withDeadline } from "../clock.ts";
import type { Transport, TransportEvents } from "../transport.ts";

/** Whether a failure may pass: the broker is at fault, and what it refused it may take later. */
export function mayPass(error: unknown): boolean {
  return !isEdaError(error) || error.retriable || BROKER_FAULTS.has(error.code);
}

/** Codes of errors that say something about the broker; all others are the caller's and never change health. */
const BROKER_FAULTS: ReadonlySet<string> = new Set([
  "authentication-failed",
  "broker-unavailable",
  "client-missing",
  "outcome-unknown",
  "server-unsupported",
]);

/**
 * Opens the transport, gives every call a deadline, and knows whether the broker answers.
 *
 * `idle` -(first call)-> `opening` -> `open`; any broker fault: `open` -> `down` (health says so once) -(next call)->
 * `opening` -> `open` (health heals once). A call past its deadline destroys the connections first.
 */
export class Connection {
  readonly #transport: Transport;
  readonly #events: TransportEvents;
  readonly #clock: Clock;
  readonly #connectTimeoutMs: number;
  readonly #onHealth: (ok: boolean, error?: EdaError) => void;
  readonly #backoff: Backoff;
  #opening: Promise<void> | undefined;
  #open = false;
  #healthy: boolean | undefined;
  #everOpen = false;
  #notBefore = 0;
  #closed = false;

  constructor(
    transport: Transport,
    events: TransportEvents,
    clock: Clock,
    connectTimeoutMs: number,
    onHealth: (ok: boolean, error?: EdaError) => void,
  ) {
    this.#transport = transport;
    this.#events = events;
    this.#clock = clock;
    this.#connectTimeoutMs = connectTimeoutMs;
    this.#onHealth = onHealth;
    this.#backoff = new Backoff(clock, 50, 1_000);
  }

  /** Whether it was open at least once; before that a failure to open is the caller's to know. */
  get everOpen(): boolean {
    return this.#everOpen;
  }

  /** Whether calls go straight to the transport. */
  get isOpen(): boolean {
    return this.#open;
  }

  /** How long to wait before another try makes sense, milliseconds; 0 = now. */
  get retryInMs(): number {
    return Math.max(0, this.#notBefore - this.#clock.monotonic());
  }

  /** Opens if it is not open; callers share one attempt. Once closed, it stays so. */
  ensure(): Promise<void> {
    if (this.#closed) return Promise.reject(closed());
    if (this.#open) return Promise.resolve();
    this.#opening ??= this.#connect().finally(() => this.#opening = undefined);
    return this.#opening;
  }

  async #connect(): Promise<void> {
    try {
      await withDeadline(
        this.#clock,
        this.#connectTimeoutMs,
        this.#transport.open(this.#events),
        () => this.#late("connecting", false),
      );
      if (this.#closed) {
        this.#transport.reset("closed while connecting");
        throw closed();
      }
      this.#open = true;
      this.#everOpen = true;
    } catch (error) {
      throw this.fail(error);
    }
  }

  /**
   * Runs one broker call: opens first, gives it `deadlineMs`, and learns health from how it ends. `faultIn` finds a broker
   * fault in a value that did arrive (outcomes per message).
   */
  async call<T>(
    name: string,
    deadlineMs: number,
    run: () => Promise<T>,
    faultIn?: (value: T) => unknown,
  ): Promise<T> {
    if (!this.#open || this.#closed) await this.ensure();
    try {
      const value = await withDeadline(this.#clock, deadlineMs, run(), () => this.#late(name, true));
      const fault = faultIn?.(value);
      if (fault === undefined) this.succeed();
      else this.fail(fault);
      return value;
    } catch (error) {
      throw this.fail(error);
    }
  }

  /** `sent` = the broker may have what the call sent: `details.deadline` tells that apart from never having got so far. */
  #late(name: string, sent: boolean): Error {
    this.#open = false;
    this.#transport.reset(`${name} did not settle in time`);
    return new BrokerUnavailableError(`${name} did not settle within its deadline; the connection was replaced`, {
      details: sent ? { deadline: true } : {},
    });
  }

  /** The broker answered. */
  succeed(): void {
    if (this.#healthy === true || this.#closed) return;
    this.#healthy = true;
    this.#backoff.reset();
    this.#notBefore = 0;
    this.#onHealth(true);
  }

  /** A call failed; answers the error to pass on. */
  fail(cause: unknown): EdaError {
    const error = isEdaError(cause) ? cause : new BrokerUnavailableError("a broker call failed; see cause", { cause });
    if (!BROKER_FAULTS.has(error.code)) return error;
    this.#open = false;
    this.#notBefore = this.#clock.monotonic() + this.#backoff.next();
    if (this.#healthy !== false && !this.#closed) {
      this.#healthy = false;
      this.#onHealth(false, error);
    }
    return error;
  }

  /** No health is told any more, and nothing is opened again. */
  close(): void {
    this.#closed = true;
  }
}

function closed(): ClosedError {
  return new ClosedError("the broker is closed; make a new one");
}
