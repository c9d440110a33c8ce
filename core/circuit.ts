/**
 * Stops calls to something that is down, and finds out when it is back.
 *
 * @module
 */
import { Backoff, type Clock, type Timer } from "./clock.ts";

/** `closed` = calls go through · `open` = none does · `half-open` = one does, to find out. */
export type CircuitState = "closed" | "open" | "half-open";

/** What a circuit reports and how it waits. */
export interface CircuitOptions {
  readonly clock: Clock;
  /** Failures in a row that open it. */
  readonly threshold: number;
  /** Waits between probes, milliseconds, with jitter. */
  readonly baseMs: number;
  readonly capMs: number;
  /** A probe may start. */
  readonly onProbe: () => void;
  /** It opened or closed. */
  readonly onChange: (state: "open" | "closed") => void;
}

/** A circuit breaker. While it is open nothing may start; then one probe a wait, until one succeeds. */
export class Circuit {
  readonly #options: CircuitOptions;
  readonly #backoff: Backoff;
  #failures = 0;
  #state: CircuitState = "closed";
  #probing = false;
  #timer: Timer | undefined;

  constructor(options: CircuitOptions) {
    this.#options = options;
    this.#backoff = new Backoff(options.clock, options.baseMs, options.capMs);
  }

  get state(): CircuitState {
    return this.#state;
  }

  /** Whether a call may start now. In `half-open` the one that asks first is the probe. */
  allows(): boolean {
    if (this.#state === "closed") return true;
    if (this.#state === "open" || this.#probing) return false;
    this.#probing = true;
    return true;
  }

  /** A call succeeded. */
  succeeded(): void {
    if (this.#failures === 0) return;
    this.#failures = 0;
    this.#backoff.reset();
    if (this.#state === "closed") return;
    this.#become("closed");
    this.#options.onChange("closed");
  }

  /** A call failed because the other side is down. */
  failed(): void {
    this.#failures++;
    if (this.#state === "closed") {
      if (this.#failures < this.#options.threshold) return;
      this.#options.onChange("open");
    } else if (this.#state === "open") return;
    this.#become("open");
    this.#timer = this.#options.clock.timer(this.#backoff.next(), () => {
      this.#become("half-open");
      this.#options.onProbe();
    });
  }

  /** The probe ended without telling: another may go. */
  inconclusive(): void {
    if (this.#state !== "half-open" || !this.#probing) return;
    this.#probing = false;
    this.#options.onProbe();
  }

  /** Ends the timer and forgets what was. */
  reset(): void {
    this.#failures = 0;
    this.#backoff.reset();
    this.#become("closed");
  }

  #become(state: CircuitState): void {
    this.#state = state;
    this.#probing = false;
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
