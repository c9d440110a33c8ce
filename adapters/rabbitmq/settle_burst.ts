import { type Clock, pause } from "../../core/clock.ts";

/** So many settles in one go, and so long. */
const MANY = 16;
const MANY_MS = 150;

/**
 * Settles written one after another on a channel. A server keeps back what exceeds some commands on their way to a quorum
 * queue, and forgets it when the channel ends before they are carried out: so a burst is waited for.
 */
export class SettleBurst {
  readonly #clock: Clock;
  #until = 0;
  #frames = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** So many frames were written. */
  wrote(frames: number): void {
    const now = this.#clock.monotonic();
    this.#frames = now < this.#until ? this.#frames + frames : frames;
    this.#until = now + MANY_MS;
  }

  /** Resolves when what was written is carried out, as far as can be known. */
  async over(): Promise<void> {
    const left = this.#until - this.#clock.monotonic();
    if (this.#frames > MANY && left > 0) await pause(this.#clock, left);
  }
}
