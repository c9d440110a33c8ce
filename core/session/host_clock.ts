import type { Clock } from "../clock.ts";

/**
 * Our clock's moments on the host's clock. The two run alike and began at different times; a message that took long tells less
 * about the difference than one that was fast, and never too little.
 */
export class HostClock {
  readonly #clock: Clock;
  /** How far our clock is ahead of the host's, at most. */
  #ahead = Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** What the host sent at that moment of its clock arrived; `undefined` = it did not say. */
  isAt(at: number | undefined): void {
    if (at !== undefined) this.#ahead = Math.min(this.#ahead, this.#clock.monotonic() - at);
  }

  /** A moment of our clock on the host's clock, or a little before it; `undefined` = the host did not tell its own. */
  of(at: number): number | undefined {
    return this.#ahead === Infinity ? undefined : at - this.#ahead;
  }
}
