import type { Clock } from "../core/clock.ts";
import { Fifo } from "../core/fifo.ts";

/** How long what came may be handled without giving the event loop a turn, milliseconds. */
const BUDGET_MS = 1.5;

/**
 * Handles what comes in order, for 1.5 ms a turn of the event loop; what is left waits for the next turn. Needed because some
 * runtimes hand out a port's messages for as long as there are any, and a worker that answers as fast as it is asked then
 * keeps the host's timers and sockets waiting.
 */
export class TurnBudget<Item> {
  readonly #clock: Clock;
  readonly #handle: (item: Item) => void;
  readonly #waiting = new Fifo<Item>();
  /** When the first of this turn was handled. */
  #since: number | undefined;

  constructor(clock: Clock, handle: (item: Item) => void) {
    this.#clock = clock;
    this.#handle = handle;
  }

  /** Handles it now, or in a later turn. */
  push(item: Item): void {
    if (this.#waiting.length > 0 || this.#isSpent()) this.#waiting.push(item);
    else this.#handle(item);
  }

  #isSpent(): boolean {
    const now = this.#clock.monotonic();
    if (this.#since !== undefined) return now - this.#since > BUDGET_MS;
    this.#since = now;
    this.#clock.turn(() => this.#turn());
    return false;
  }

  #turn(): void {
    this.#since = undefined;
    while (this.#waiting.length > 0 && !this.#isSpent()) this.#next();
  }

  #next(): void {
    this.#handle(this.#waiting.shift()!);
  }

  /** Handles all that waits, at once. */
  drain(): void {
    while (this.#waiting.length > 0) this.#next();
  }
}
