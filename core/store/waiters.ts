/**
 * Waiting for a change in this process.
 *
 * @module
 */
import type { Clock, Timer } from "../clock.ts";

interface Waiter {
  readonly done: () => void;
  readonly arm: () => void;
}

/** Those who wait until something may have changed. */
export class Waiters {
  readonly #clock: Clock;
  readonly #nextChange: () => number;
  readonly #waiting = new Set<Waiter>();

  /** @param nextChange When something changes by itself, monotonic ms; `Infinity` = nothing will. */
  constructor(clock: Clock, nextChange: () => number) {
    this.#clock = clock;
    this.#nextChange = nextChange;
  }

  /** Resolves at {@link wake}, when something changed by itself, after `ms`, or when `signal` aborts. */
  wait(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    const end = this.#clock.monotonic() + ms;
    return new Promise((resolve) => {
      let timer: Timer | undefined;
      const done = (): void => {
        timer?.cancel();
        signal.removeEventListener("abort", done);
        this.#waiting.delete(waiter);
        resolve();
      };
      const arm = (): void => {
        timer?.cancel();
        timer = this.#clock.timer(Math.min(end, this.#nextChange()) - this.#clock.monotonic(), done);
      };
      const waiter = { done, arm };
      this.#waiting.add(waiter);
      signal.addEventListener("abort", done, { once: true });
      arm();
    });
  }

  /** Something changed. */
  wake(): void {
    for (const { done } of [...this.#waiting]) done();
  }

  /** The next change by itself may come sooner now. */
  look(): void {
    for (const { arm } of this.#waiting) arm();
  }
}
