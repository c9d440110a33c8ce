import { Fifo } from "../../core/fifo.ts";

/** One record that was handed out: the handle by which it is settled. */
export interface Tracked {
  readonly offset: bigint;
  settled: boolean;
}

/**
 * What of one partition was handed out, and how far it may be committed.
 *
 * Kafka keeps one number a partition and group: where reading begins again. So only a prefix can be committed: everything up
 * to the first record that is not settled. "The next one" is the next one that was received, not the next number: compaction
 * and transactions leave holes.
 */
export class OffsetTracker {
  /** From the first unsettled one on. */
  readonly #entries = new Fifo<Tracked>();
  #unsettled = 0;
  #last: bigint | undefined;
  #commit: bigint | undefined;

  /** How many were handed out and are not settled. */
  get unsettled(): number {
    return this.#unsettled;
  }

  /** How many were handed out since the first unsettled one, that one included. */
  get span(): number {
    return this.#entries.length;
  }

  /** What to commit: one past the last settled record before the first unsettled one. Undefined while that one is the first. */
  get commit(): bigint | undefined {
    return this.#commit;
  }

  /** The oldest record that is not settled; undefined = all are. */
  get oldest(): bigint | undefined {
    return this.#entries.peek()?.offset;
  }

  /**
   * Takes note of a record that is handed out.
   *
   * @returns undefined for one at or before the last one: it came again, and is tracked already.
   */
  track(offset: bigint): Tracked | undefined {
    if (this.#last !== undefined && offset <= this.#last) return undefined;
    this.#last = offset;
    const entry: Tracked = { offset, settled: false };
    this.#entries.push(entry);
    this.#unsettled++;
    return entry;
  }

  /** Settles a record; one that was settled before stays so. */
  settle(entry: Tracked): void {
    if (entry.settled) return;
    entry.settled = true;
    this.#unsettled--;
    for (let first = this.#entries.peek(); first?.settled; first = this.#entries.peek()) {
      this.#commit = first.offset + 1n;
      this.#entries.shift();
    }
  }
}
