/**
 * Chance that repeats: everything in a simulated run follows from its seed.
 *
 * @module
 */

/** Mixes a 32-bit state (the finish of MurmurHash3). */
function mix(h: number): number {
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** A number in [0, 1) that follows from its arguments alone. */
export function chance(seed: number, ...keys: readonly number[]): number {
  let h = mix(seed + 0x9e3779b9);
  for (const key of keys) h = mix(Math.imul(h ^ key, 0x01000193) + 0x9e3779b9);
  return h / 2 ** 32;
}

/**
 * A stream of numbers. Each part of a run has one of its own, so that a run in which one part does less stays the same
 * elsewhere: that is what makes a failing run shrink.
 */
export class Dice {
  readonly #seed: number;
  #at = 0;

  constructor(seed: number, part: number) {
    this.#seed = mix(seed ^ Math.imul(part + 1, 0x9e3779b1));
  }

  /** A number in [0, 1). */
  next(): number {
    return chance(this.#seed, this.#at++);
  }

  /** A whole number from 0 to `below` - 1. */
  below(below: number): number {
    return Math.floor(this.next() * below);
  }

  /** One of these. */
  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!;
  }

  /** Whether something of that probability happens. */
  hit(probability: number): boolean {
    return this.next() < probability;
  }
}
