import type { Clock, Timer } from "../clock.ts";

/** What follows from the host's beats. */
export interface StallEvents {
  /** No beat for too long: the host is assumed hung. */
  stalled(): void;
  /** It beats again after that. */
  resumed(): void;
}

/**
 * Counts how long the host has been silent. Time in which this thread did not run either (a suspended machine, SIGSTOP) does
 * not count: each tick adds at most twice its own interval.
 */
export class StallWatch {
  readonly #clock: Clock;
  readonly #tickMs: number;
  readonly #maxMs: number;
  readonly #events: StallEvents;
  #timer: Timer | undefined;
  #lastTick = 0;
  #silentMs = 0;
  #stalled = false;

  constructor(clock: Clock, tickMs: number, maxMs: number, events: StallEvents) {
    this.#clock = clock;
    this.#tickMs = tickMs;
    this.#maxMs = maxMs;
    this.#events = events;
  }

  /** Whether the host is taken for hung. */
  get stalled(): boolean {
    return this.#stalled;
  }

  /** Starts or ends watching. */
  watch(on: boolean): void {
    if (this.#maxMs === 0 || on === (this.#timer !== undefined)) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    if (!on) return;
    this.#silentMs = 0;
    this.#arm();
  }

  #arm(): void {
    this.#lastTick = this.#clock.monotonic();
    this.#timer = this.#clock.timer(this.#tickMs, () => this.#tick());
  }

  #tick(): void {
    this.#silentMs += Math.min(2 * this.#tickMs, this.#clock.monotonic() - this.#lastTick);
    if (!this.#stalled && this.#silentMs >= this.#maxMs) {
      this.#stalled = true;
      this.#events.stalled();
    }
    this.#arm();
  }

  /** The host gave a sign of life. */
  alive(): void {
    this.#silentMs = 0;
    if (!this.#stalled) return;
    this.#stalled = false;
    this.#events.resumed();
  }
}
