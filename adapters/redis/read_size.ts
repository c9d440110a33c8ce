/** One read should not bring more than about this. */
const MAX_BYTES = 16 * 1024 * 1024;

/** Keeps a read's size in bytes within bounds, learning from the bodies that came. */
export class ReadSize {
  /** Until something came, bodies are taken for large. */
  #average = 64 * 1024;

  /** How many messages to ask for, at most `max`. */
  limit(max: number): number {
    return Math.max(1, Math.min(max, Math.floor(MAX_BYTES / Math.max(1, this.#average))));
  }

  /** `count` bodies came with `bytes` in all. */
  learn(count: number, bytes: number): void {
    if (count === 0) return;
    const average = bytes / count;
    // Upwards at once, downwards slowly: what was large once may come again.
    this.#average = average > this.#average ? average : this.#average * 0.75 + average * 0.25;
  }
}
