/**
 * A queue that is cheap at both ends however long it grows.
 *
 * @module
 */

/** First in, first out. `Array.shift` moves every element once an array is large; this moves each at most once. */
export class Fifo<T> {
  #items: (T | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  /** The first one, left in place. */
  peek(): T | undefined {
    return this.#items[this.#head];
  }

  shift(): T | undefined {
    if (this.#head >= this.#items.length) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head++] = undefined;
    if (this.#head === this.#items.length) {
      this.#items.length = 0;
      this.#head = 0;
    } else if (this.#head >= 64 && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** Keeps those for which `keep` answers true, in order; answers what went. */
  filter(keep: (item: T) => boolean): T[] {
    const kept: T[] = [];
    const gone: T[] = [];
    for (const item of this) (keep(item) ? kept : gone).push(item);
    this.#items = kept;
    this.#head = 0;
    return gone;
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let at = this.#head; at < this.#items.length; at++) yield this.#items[at] as T;
  }
}
