/**
 * A map that forgets its oldest entries.
 *
 * @module
 */

/**
 * Keeps at least its newest `keep` entries and at most twice that: when the young half is full the old half is dropped. To
 * delete the oldest entry one by one would make a `Map` walk over its own holes.
 */
export class BoundedMap<V> {
  readonly #keep: number;
  #young = new Map<string, V>();
  #old = new Map<string, V>();

  constructor(keep: number) {
    this.#keep = keep;
  }

  get(key: string): V | undefined {
    return this.#young.get(key) ?? this.#old.get(key);
  }

  set(key: string, value: V): void {
    // One in the old half may stay: the young one hides it.
    this.#young.set(key, value);
    if (this.#young.size < this.#keep) return;
    this.#old = this.#young;
    this.#young = new Map();
  }

  delete(key: string): void {
    this.#young.delete(key);
    this.#old.delete(key);
  }

  /** Removes what `expired` answers true for; answers how many. */
  purge(expired: (value: V) => boolean): number {
    let removed = 0;
    for (const half of [this.#young, this.#old]) {
      for (const [key, value] of half) {
        if (!expired(value)) continue;
        half.delete(key);
        removed++;
      }
    }
    return removed;
  }
}
