/**
 * Who should own which partition, computed alike by every member from the list of members alone.
 *
 * @module
 */

/** A 32-bit hash that spreads near-equal texts (FNV-1a, finished as in MurmurHash3). */
function hash(text: string): number {
  let h = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) h = Math.imul(h ^ text.charCodeAt(at), 0x01000193);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** How much a member is to own a partition: of several, the one with the highest score. A whole number from 0 to 2^32 - 1. */
export function scoreOf(member: string, partition: number): number {
  return hash(`${member}#${partition}`);
}

/**
 * The partitions that `self` should own: rendezvous hashing, where no member gets more than its even share rounded up. When
 * a member joins or leaves, few partitions move. Where members see different lists for a moment, the lease decides.
 */
export function shareOf(self: string, members: readonly string[], partitions: number): ReadonlySet<number> {
  const names = [...new Set([...members, self])].sort();
  const cap = Math.ceil(partitions / names.length);
  const load = new Map<string, number>();
  const mine = new Set<number>();
  for (let partition = 0; partition < partitions; partition++) {
    let best: string | undefined;
    let highest = -1;
    for (const name of names) {
      if ((load.get(name) ?? 0) >= cap) continue;
      const score = scoreOf(name, partition);
      if (score > highest) [best, highest] = [name, score];
    }
    if (best === undefined) continue;
    load.set(best, (load.get(best) ?? 0) + 1);
    if (best === self) mine.add(partition);
  }
  return mine;
}
