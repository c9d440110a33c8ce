/**
 * The time limit of handlers: one timer for all of them, since all have the same limit and so end in the order they began.
 *
 * @module
 */
import type { Clock, Timer } from "../clock.ts";

/** Something with a time limit. The links are for {@link Deadlines} only. */
export interface Limited {
  /** Its time is up. Called at most once, and never after {@link Deadlines.remove}. */
  expire(): void;
  deadline: number;
  earlier: Limited | undefined;
  later: Limited | undefined;
}

/** A list of what runs, the oldest first; adding and removing cost the same however long it is. */
export class Deadlines {
  readonly #clock: Clock;
  readonly #limitMs: number;
  #first: Limited | undefined;
  #last: Limited | undefined;
  #timer: Timer | undefined;

  constructor(clock: Clock, limitMs: number) {
    this.#clock = clock;
    this.#limitMs = limitMs;
  }

  add(entry: Limited): void {
    entry.deadline = this.#clock.monotonic() + this.#limitMs;
    entry.earlier = this.#last;
    entry.later = undefined;
    if (this.#last === undefined) this.#first = entry;
    else this.#last.later = entry;
    this.#last = entry;
    this.#timer ??= this.#clock.timer(this.#limitMs, () => this.#look());
  }

  /** Takes one out; nothing happens if it is not in. */
  remove(entry: Limited): void {
    const { earlier, later } = entry;
    if (earlier === undefined && this.#first !== entry) return;
    if (earlier === undefined) this.#first = later;
    else earlier.later = later;
    if (later === undefined) this.#last = earlier;
    else later.earlier = earlier;
    entry.earlier = entry.later = undefined;
  }

  /** Ends the timer if nothing runs; it would keep the process alive. */
  rest(): void {
    if (this.#first !== undefined) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #look(): void {
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    for (let entry = this.#first; entry !== undefined && entry.deadline <= now; entry = this.#first) {
      this.remove(entry);
      entry.expire();
    }
    const first = this.#first;
    if (first !== undefined) this.#timer ??= this.#clock.timer(first.deadline - now, () => this.#look());
  }
}
