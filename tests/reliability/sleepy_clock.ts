import { type Clock, systemClock, type Timer } from "../../core/clock.ts";

/**
 * The clock of a machine that can be suspended: meanwhile its monotonic time stands still and no timer fires; its wall clock is
 * right again when it wakes, and may be set to anything.
 */
export class SleepyClock implements Clock {
  /** Added to the wall clock, milliseconds. */
  wallOffset = 0;
  #asleepSince: number | undefined;
  #slept = 0;
  readonly #waiting = new Set<() => void>();

  now(): number {
    return systemClock.now() + this.wallOffset;
  }

  monotonic(): number {
    return (this.#asleepSince ?? systemClock.monotonic()) - this.#slept;
  }

  random(): number {
    return systemClock.random();
  }

  turn(run: () => void): void {
    systemClock.turn(run);
  }

  timer(delayMs: number, run: () => void): Timer {
    const due = this.monotonic() + delayMs;
    let real: Timer | undefined;
    const wait = (): void => {
      this.#waiting.delete(wait);
      if (this.#asleepSince !== undefined) return void this.#waiting.add(wait);
      const left = due - this.monotonic();
      if (left <= 0) run();
      else real = systemClock.timer(left, wait);
    };
    real = systemClock.timer(delayMs, wait);
    return {
      cancel: () => {
        real?.cancel();
        this.#waiting.delete(wait);
      },
    };
  }

  /** Suspends the machine. */
  sleep(): void {
    this.#asleepSince ??= systemClock.monotonic();
  }

  /** It goes on. */
  wake(): void {
    if (this.#asleepSince === undefined) return;
    this.#slept += systemClock.monotonic() - this.#asleepSince;
    this.#asleepSince = undefined;
    for (const wait of [...this.#waiting]) wait();
  }
}
