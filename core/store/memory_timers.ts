/**
 * The timers of the memory store, sorted by when they are due.
 *
 * @module
 */
import { ownText } from "../own_text.ts";
import type { TimerRow, Timers } from "./contract.ts";

/** A text for owner and id. */
function keyOf(owner: string, id: string): string {
  return `${owner.length}:${owner}${id}`;
}

/** Timers in memory. */
export class MemoryTimers implements Timers {
  readonly #rows = new Map<string, TimerRow>();
  /** Sorted by `dueAt`; equal ones in the order they were set. */
  readonly #byTime: TimerRow[] = [];
  readonly #guard: () => void;

  /** @param guard Throws once the store is closed. */
  constructor(guard: () => void) {
    this.#guard = guard;
  }

  due(now: number, limit: number): Promise<readonly TimerRow[]> {
    return this.#answer(() => {
      let end = 0;
      while (end < limit && end < this.#byTime.length && this.#byTime[end]!.dueAt <= now) end++;
      return this.#byTime.slice(0, end);
    });
  }

  next(): Promise<number | undefined> {
    return this.#answer(() => this.#byTime[0]?.dueAt);
  }

  get(owner: string, id: string): TimerRow | undefined {
    return this.#rows.get(keyOf(owner, id));
  }

  set(given: TimerRow): void {
    // Its owner names a subject that was cut from a message.
    const row = { ...given, owner: ownText(given.owner), id: ownText(given.id) };
    this.delete(row.owner, row.id);
    this.#rows.set(keyOf(row.owner, row.id), row);
    this.#byTime.splice(this.#after(row.dueAt), 0, row);
  }

  delete(owner: string, id: string): boolean {
    const key = keyOf(owner, id);
    const row = this.#rows.get(key);
    if (row === undefined) return false;
    this.#rows.delete(key);
    let at = this.#after(row.dueAt) - 1;
    while (this.#byTime[at] !== row) at--;
    this.#byTime.splice(at, 1);
    return true;
  }

  /** The place behind the last row due at `dueAt` or before. */
  #after(dueAt: number): number {
    let low = 0;
    let high = this.#byTime.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#byTime[middle]!.dueAt <= dueAt) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // deno-lint-ignore require-await
  async #answer<T>(read: () => T): Promise<T> {
    this.#guard();
    return read();
  }
}
