/**
 * How long a lane waits before it tries again.
 *
 * @module
 */
import type { Clock } from "../clock.ts";

/** Waits before another attempt. */
export interface RetryOptions {
  /** Ceiling of the first wait, 1 to 3,600,000 ms. Default 200. */
  readonly baseMs?: number;
  /** How the ceiling grows, 1 to 10. Default 2. */
  readonly factor?: number;
  /** Ceiling of every wait, 1 to 3,600,000 ms. Default 30,000. */
  readonly capMs?: number;
}

/** Exponential backoff with full jitter: a wait is drawn evenly from 0 to its ceiling, so that what failed together does not return together. */
export class RetryPolicy {
  readonly #clock: Clock;
  readonly #baseMs: number;
  readonly #factor: number;
  readonly #capMs: number;

  constructor(clock: Clock, options: Required<RetryOptions>) {
    this.#clock = clock;
    this.#baseMs = options.baseMs;
    this.#factor = options.factor;
    this.#capMs = options.capMs;
  }

  /** Milliseconds to wait after the n-th failure in a row, n from 1; at least 1. */
  delay(failures: number): number {
    const ceiling = Math.min(this.#capMs, this.#baseMs * this.#factor ** (failures - 1));
    return Math.max(1, Math.round(ceiling * this.#clock.random()));
  }
}
