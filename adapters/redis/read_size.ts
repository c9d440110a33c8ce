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

  /** These came. */
  learn(entries: readonly { readonly body: string | Uint8Array | null }[]): void {
    if (entries.length === 0) return;
    let size = 0;
    for (const { body } of entries) size += body === null ? 0 : body.length;
    const average = size / entries.length;
    // Upwards at once, downwards slowly: what was large once may come again.
    this.#average = average > this.#average ? average : this.#average * 0.75 + average * 0.25;
  }
}
