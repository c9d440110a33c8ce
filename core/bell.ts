import type { Clock } from "./clock.ts";

/** Wakes all who wait, for any reason worth another look. */
export class Bell {
  readonly #waiting = new Set<() => void>();

  /** Wakes all who wait now. */
  ring(): void {
    for (const wake of [...this.#waiting]) wake();
  }

  /** Resolves at the next ring, after `ms`, or on abort. */
  wait(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        timer.cancel();
        this.#waiting.delete(done);
        signal.removeEventListener("abort", done);
        resolve();
      };
      const timer = clock.timer(ms, done);
      this.#waiting.add(done);
      signal.addEventListener("abort", done, { once: true });
      if (signal.aborted) done();
    });
  }
}
