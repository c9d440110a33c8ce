/**
 * A clock that only moves when a test says so.
 *
 * @module
 */
import { type Clock, systemClock, type Timer } from "../../core/clock.ts";

interface Armed extends Timer {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

/** Time, timers and randomness under the control of a test. Turns are real ones, and counted, so that a test can wait for them. */
export class VirtualClock implements Clock {
  /** What {@link random} answers: a number, or one a call. */
  randomness: number | (() => number) = 0.5;
  readonly #startWall: number;
  #now = 0;
  #order = 0;
  #turns = 0;
  readonly #timers = new Set<Armed>();

  /** @param startWall Wall clock ms at monotonic 0. */
  constructor(startWall: number = Date.UTC(2030, 0, 1)) {
    this.#startWall = startWall;
  }

  now(): number {
    return this.#startWall + this.#now;
  }

  monotonic(): number {
    return this.#now;
  }

  random(): number {
    return typeof this.randomness === "number" ? this.randomness : this.randomness();
  }

  timer(delayMs: number, run: () => void): Timer {
    const timer: Armed = {
      at: this.#now + Math.max(0, delayMs),
      order: this.#order++,
      run,
      cancel: () => void this.#timers.delete(timer),
    };
    this.#timers.add(timer);
    return timer;
  }

  turn(run: () => void): void {
    this.#turns++;
    systemClock.turn(() => {
      this.#turns--;
      run();
    });
  }

  /** How many timers are armed. */
  get armed(): number {
    return this.#timers.size;
  }

  /** Milliseconds until the next timer is due; undefined = none is armed. */
  get nextIn(): number | undefined {
    const next = this.#next();
    return next === undefined ? undefined : next.at - this.#now;
  }

  /** Lets everything run that needs no time to pass. */
  async flush(): Promise<void> {
    for (let quiet = 0; quiet < 3; quiet++) {
      await new Promise<void>((resolve) => systemClock.turn(resolve));
      if (this.#turns > 0) quiet = -1;
    }
  }

  /** Moves on by `ms`; each timer due meanwhile fires at its own moment, and what follows from it runs before the next. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await this.flush();
    for (let next = this.#next(); next !== undefined && next.at <= end; next = this.#next()) {
      this.#now = Math.max(this.#now, next.at);
      this.#timers.delete(next);
      next.run();
      await this.flush();
    }
    this.#now = end;
  }

  /** Moves on by `ms` at once, as when the machine slept; then each timer that is due fires. */
  async jump(ms: number): Promise<void> {
    await this.flush();
    this.#now += ms;
    await this.advance(0);
  }

  /** Time that goes by while code runs: no timer fires over it. */
  pass(ms: number): void {
    this.#now += ms;
  }

  /** As {@link advance}, timer by timer, until `done` answers true; fails after `limitMs`. */
  async advanceUntil(done: () => boolean, limitMs = 3_600_000): Promise<void> {
    const end = this.#now + limitMs;
    await this.flush();
    while (!done()) {
      const step = this.nextIn;
      if (step === undefined || this.#now + step > end) {
        throw new Error("The condition did not come true in virtual time");
      }
      await this.advance(step);
    }
  }

  #next(): Armed | undefined {
    let first: Armed | undefined;
    for (const timer of this.#timers) {
      if (first === undefined || timer.at < first.at || (timer.at === first.at && timer.order < first.order)) {
        first = timer;
      }
    }
    return first;
  }
}
