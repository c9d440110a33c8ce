/** How long less than a quarter may stay free before it is read all the same. */
const SMALL_MS = 50;

/** Where a pump stands when it looks whether to read. */
export interface Standing {
  readonly prefetch: number;
  /** Partitions owned; 0 where nobody owns partitions. */
  readonly partitions: number;
  /** What may still be held: unsettled messages and what reads in flight may bring never exceed `prefetch`. */
  readonly free: number;
  readonly reads: number;
  /** Whether the last read brought as many as it asked for. */
  readonly backlog: boolean;
  /** Whether somebody waits for an answer. */
  readonly probing: boolean;
  /** Whether less than a quarter was free for a while. */
  readonly small: boolean;
}

/**
 * How many messages to ask for now, 0 for none; `laterMs`: look again then.
 *
 * A read starts when a quarter of one partition's share is free, or less for a while: a consumer that holds most of its window
 * may wait for the rest. One read waits for messages; while the topic has more than a read takes, a second one is in flight.
 */
export function nextRead(s: Standing): { readonly max: number; readonly laterMs?: number } {
  const quarter = Math.max(1, Math.ceil(s.prefetch / 4 / Math.max(1, s.partitions)));
  const isEnough = s.free >= quarter;
  if (s.free < 1 || (s.reads > 0 && (s.reads > 1 || !s.backlog || !isEnough))) return { max: 0 };
  if (!isEnough && !s.probing && !s.small) return { max: 0, laterMs: SMALL_MS };
  return { max: s.backlog ? Math.min(s.free, Math.max(quarter, s.prefetch >> 1)) : s.free };
}
