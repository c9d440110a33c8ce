/**
 * How long the dispatcher may keep the event loop to itself.
 *
 * @module
 */
import type { Clock } from "../clock.ts";

/** Work goes on for this long before timers and I/O get their turn. */
const BUDGET_MS = 4;

/** Counts the time since the last turn; looks at the clock only at every 16th question. */
export class Budget {
  readonly #clock: Clock;
  #asked = 0;
  #turnAt = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether a turn is due. */
  spent(): boolean {
    return (++this.#asked & 15) === 0 && this.#clock.monotonic() - this.#turnAt > BUDGET_MS;
  }

  /** Calls `run` in a later turn and counts anew from there. */
  turn(run: () => void): void {
    this.#clock.turn(() => {
      this.#turnAt = this.#clock.monotonic();
      run();
    });
  }

  /** Resolves in a later turn. */
  pause(): Promise<void> {
    return new Promise((resolve) => this.turn(resolve));
  }
}
