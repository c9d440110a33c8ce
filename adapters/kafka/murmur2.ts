/**
 * The hash by which Kafka's own producers choose a partition, so that a subject is in the same one whoever publishes it.
 *
 * @module
 */

const M = 0x5bd1e995;

/** MurmurHash2 of bytes with Kafka's seed, as a signed 32-bit number. */
export function murmur2(bytes: Uint8Array): number {
  const length = bytes.length;
  let h = 0x9747b28c ^ length;
  const whole = length & ~3;
  for (let at = 0; at < whole; at += 4) {
    let k = bytes[at]! | bytes[at + 1]! << 8 | bytes[at + 2]! << 16 | bytes[at + 3]! << 24;
    k = Math.imul(k, M);
    k ^= k >>> 24;
    h = Math.imul(h, M) ^ Math.imul(k, M);
  }
  const rest = length & 3;
  if (rest > 2) h ^= bytes[whole + 2]! << 16;
  if (rest > 1) h ^= bytes[whole + 1]! << 8;
  if (rest > 0) h = Math.imul(h ^ bytes[whole]!, M);
  h ^= h >>> 13;
  h = Math.imul(h, M);
  return h ^ h >>> 15;
}

/** The partition, 0-based, of a key among `count`. */
export function partitionOf(key: Uint8Array, count: number): number {
  return count === 1 ? 0 : (murmur2(key) & 0x7fffffff) % count;
}
