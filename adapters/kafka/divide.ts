/** One member that reads a topic. */
export interface Reader {
  readonly memberId: string;
  /** The process or worker that it is a part of. */
  readonly instance: string;
  /** What it says that it has now. */
  readonly claims: readonly number[];
}

/**
 * Who reads which partition of one topic: nobody has more than one partition more than another; a partition stays where it is
 * unless that takes a move; a free one goes to who has fewest of the topic, then to whose instance has fewest of all.
 *
 * @param totals Partitions by instance, over the topics that were divided before; this one's are added.
 */
export function divide(
  topic: string,
  count: number,
  readers: readonly Reader[],
  totals: Map<string, number>,
): Map<string, number[]> {
  const free = new Set(Array.from({ length: count }, (_, partition) => partition));
  const least = Math.floor(count / readers.length);
  /** How many readers have one more than the least. */
  let larger = count % readers.length;
  const shares = new Map<string, number[]>(readers.map(({ memberId }) => [memberId, []]));
  const claimed = new Map<number, number>();
  for (const { claims } of readers) for (const one of new Set(claims)) claimed.set(one, (claimed.get(one) ?? 0) + 1);
  // Those who have most keep first, so that a larger share stays with who has it.
  for (const { memberId, claims } of [...readers].sort((a, b) => b.claims.length - a.claims.length || order(a, b))) {
    const share = shares.get(memberId)!;
    // What two say that they have, one of them has lost.
    for (const partition of new Set(claims)) {
      if (claimed.get(partition) !== 1 || !free.has(partition)) continue;
      if (share.length > least || share.length === least && larger === 0) break;
      if (share.length === least) larger--;
      share.push(partition);
      free.delete(partition);
    }
  }
  const load = ({ instance }: Reader): number => totals.get(instance) ?? 0;
  const size = ({ memberId }: Reader): number => shares.get(memberId)!.length;
  for (const reader of readers) totals.set(reader.instance, load(reader) + size(reader));
  for (const partition of free) {
    const next = [...readers].sort((a, b) =>
      size(a) - size(b) || load(a) - load(b) || score(topic, b) - score(topic, a) || order(a, b)
    )[0]!;
    shares.get(next.memberId)!.push(partition);
    totals.set(next.instance, load(next) + 1);
  }
  return shares;
}

function order(a: Reader, b: Reader): number {
  return a.memberId < b.memberId ? -1 : 1;
}

/** A number that differs by topic, so that not one reader is the first everywhere (FNV-1a). */
function score(topic: string, { instance }: Reader): number {
  let h = 0x811c9dc5;
  for (const unit of `${topic} ${instance}`) h = Math.imul(h ^ unit.codePointAt(0)!, 0x01000193);
  return (h ^ h >>> 15) >>> 0;
}
