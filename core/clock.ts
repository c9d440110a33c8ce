/**
 * The one source of time, timers, randomness and turns. Nothing else in `core/`, `workers/` or `adapters/` calls `Date.now`,
 * `setTimeout`, `Math.random` or `setImmediate`, so that a test can drive all of it with a virtual clock.
 *
 * @module
 */

/** A running timer; opaque. */
export interface Timer {
  /** Stops it. Calling it again, or after it fired, does nothing. */
  cancel(): void;
}

/** Time, timers, randomness and turns. */
export interface Clock {
  /** Wall clock, milliseconds since 1970. For stamps only: it jumps. */
  now(): number;
  /** Monotonic milliseconds, for every duration and deadline. */
  monotonic(): number;
  /** A number in [0, 1). */
  random(): number;
  /** Runs `run` after `delayMs` (below 0, and NaN: 0; delays over 2^31 - 1 ms do not fire early). */
  timer(delayMs: number, run: () => void): Timer;
  /** Runs `run` in a later turn of the event loop, after pending I/O had its chance. */
  turn(run: () => void): void;
}

/** The longest delay that `setTimeout` takes; a longer one fires at once there. */
const MAX_DELAY = 2 ** 31 - 1;

class SystemTimer implements Timer {
  #handle: ReturnType<typeof setTimeout> | undefined;

  constructor(delayMs: number, run: () => void) {
    this.#arm(delayMs, run);
  }

  #arm(delayMs: number, run: () => void): void {
    const step = delayMs > 0 ? Math.min(delayMs, MAX_DELAY) : 0;
    this.#handle = setTimeout(() => {
      if (delayMs > MAX_DELAY) return this.#arm(delayMs - step, run);
      this.#handle = undefined;
      run();
    }, step);
  }

  cancel(): void {
    if (this.#handle !== undefined) clearTimeout(this.#handle);
    this.#handle = undefined;
  }
}

type Immediate = (run: () => void) => unknown;
const immediate: Immediate = (globalThis as { setImmediate?: Immediate }).setImmediate ??
  ((run) => setTimeout(run, 0));

/** The real clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  random: () => Math.random(),
  timer: (delayMs, run) => new SystemTimer(delayMs, run),
  turn: (run) => {
    immediate(run);
  },
};

/** A timer that runs once at a time: set again while it runs, it stays as it is. */
export class Alarm {
  readonly #clock: Clock;
  #timer: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether it runs. */
  get isSet(): boolean {
    return this.#timer !== undefined;
  }

  /** Runs `run` after `delayMs`, unless it runs already. */
  set(delayMs: number, run: () => void): void {
    this.#timer ??= this.#clock.timer(delayMs, () => {
      this.#timer = undefined;
      run();
    });
  }

  /** Stops it. */
  cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}

/** Resolves after `delayMs`, or at once when `signal` aborts; tells which with `true` (time is up) or `false`. */
export function pause(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve(false);
    const stop = () => {
      timer.cancel();
      resolve(false);
    };
    const timer = clock.timer(delayMs, () => {
      signal?.removeEventListener("abort", stop);
      resolve(true);
    });
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** Settles like `work`, or rejects with `late()` after `ms`; the timer never outlives the call. */
export function withDeadline<T>(clock: Clock, ms: number, work: Promise<T>, late: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = clock.timer(ms, () => reject(late()));
    work.then((value) => {
      timer.cancel();
      resolve(value);
    }, (error) => {
      timer.cancel();
      reject(error);
    });
  });
}

/** Exponential backoff with half jitter, starting anew after {@link Backoff.reset}. */
export class Backoff {
  readonly #clock: Clock;
  readonly #baseMs: number;
  readonly #capMs: number;
  #failures = 0;

  constructor(clock: Clock, baseMs: number, capMs: number) {
    this.#clock = clock;
    this.#baseMs = baseMs;
    this.#capMs = capMs;
  }

  /** Failures since the last reset. */
  get failures(): number {
    return this.#failures;
  }

  /** The next wait in milliseconds; counts one failure. */
  next(): number {
    const ceiling = Math.min(this.#capMs, this.#baseMs * 2 ** this.#failures++);
    return Math.max(1, Math.round(ceiling * (0.5 + this.#clock.random() / 2)));
  }

  /** Forgets the failures. */
  reset(): void {
    this.#failures = 0;
  }
}
