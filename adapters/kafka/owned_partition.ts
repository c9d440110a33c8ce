import { Fifo } from "../../core/fifo.ts";
import type { NativeOutcome, Raw } from "../../core/transport.ts";
import { OffsetTracker, type Tracked } from "./offsets.ts";
import { bodyOf, type RecordIn } from "./wire.ts";

/** The handle of one message. */
export interface KafkaNative {
  readonly partition: number;
  /** Of the partition when it was read. */
  readonly epoch: number;
  readonly entry: Tracked;
}

/** From how many bytes on a partition's buffer is full. What one request brings comes on top. */
const BUFFER_BYTES = 1_048_576;

interface Waiter {
  readonly offset: bigint;
  readonly resolve: (outcome: NativeOutcome) => void;
  readonly reject: (error: Error) => void;
}

/** One partition while this member has it: what was fetched and not handed out, what is unsettled, what is committed. */
export class OwnedPartition {
  readonly partition: number;
  readonly epoch: number;
  readonly tracker: OffsetTracker = new OffsetTracker();
  /** The next offset to fetch; undefined until it is known where the group stands. */
  position: bigint | undefined;
  /** One past the newest record, as far as known. */
  end = 0n;
  /** Whether the client was told to fetch nothing of it. */
  paused = false;
  /** Up to where a hole and what is not to be read may reach from the position on. */
  skipsTo: bigint | undefined;
  /** When it was last read from, counted in reads. */
  turn = 0;
  readonly #buffer = new Fifo<RecordIn>();
  #bytes = 0;
  #committed: bigint | undefined;
  #waiters: Waiter[] = [];
  #sending: bigint | undefined;
  #inherited: bigint | undefined;
  #heir: OwnedPartition | undefined;
  #lost = false;

  constructor(partition: number, epoch: number) {
    this.partition = partition;
    this.epoch = epoch;
  }

  /** Whether fetching goes on only when some of it was handed out. */
  get full(): boolean {
    return this.#bytes >= BUFFER_BYTES;
  }

  /** Records that wait to be handed out. */
  get buffered(): number {
    return this.#buffer.length;
  }

  /** Where another member would begin: at the oldest message that is not settled. */
  get restartAt(): bigint | undefined {
    const next = this.#buffer.peek();
    return this.tracker.oldest ?? (next === undefined ? this.position : BigInt(next.offset));
  }

  /** How many records are behind what is settled. */
  get lag(): number {
    const from = this.restartAt;
    return from === undefined || this.end <= from ? 0 : Number(this.end - from);
  }

  /** What is settled and not committed. */
  get toCommit(): bigint | undefined {
    const commit = this.tracker.commit ?? this.#inherited;
    return commit !== undefined && (this.#committed === undefined || commit > this.#committed) ? commit : undefined;
  }

  /** Takes in what a request brought. Records before the position came again, and are left out. */
  push(records: readonly RecordIn[], next: bigint, end: bigint): void {
    for (const record of records) {
      if (this.position !== undefined && BigInt(record.offset) < this.position) continue;
      this.#buffer.push(record);
      this.#bytes += sizeOf(record);
    }
    this.#reached(next, end);
  }

  /** Records from `first` up to `next` were fetched and none of them is to be read. */
  nothingIn(first: bigint, next: bigint, end: bigint): void {
    if (this.position !== undefined && first <= this.position) this.#reached(next, end);
    // Behind a hole. If that was left by compaction, the next batch begins right there.
    else this.skipsTo = next;
  }

  #reached(next: bigint, end: bigint): void {
    if (this.position === undefined || next > this.position) this.position = next;
    if (end > this.end) this.end = end;
  }

  /** How many may be handed out now. */
  room(share: number, maxUncommitted: number): number {
    const { unsettled, span } = this.tracker;
    return Math.min(this.#buffer.length, share - unsettled, maxUncommitted - span);
  }

  /** Hands out the next `count`. */
  take(count: number, maxBytes: number): Raw[] {
    const raws: Raw[] = [];
    const { partition, epoch } = this;
    while (raws.length < count) {
      const record = this.#buffer.shift();
      if (record === undefined) break;
      this.#bytes -= sizeOf(record);
      const entry = this.tracker.track(BigInt(record.offset));
      if (entry === undefined) continue;
      const native: KafkaNative = { partition, epoch, entry };
      raws.push({ body: bodyOf(record, maxBytes), native, partition, epoch, deliveries: 0 });
    }
    return raws;
  }

  /**
   * Settles, and resolves when the server has it. What stands behind an unsettled message cannot be committed before that one
   * is settled, and is settled when it is noted here.
   */
  settle(entries: readonly Tracked[]): Promise<NativeOutcome> {
    for (const entry of entries) this.tracker.settle(entry);
    const { commit } = this.tracker;
    let last: bigint | undefined;
    for (const { offset } of entries) {
      if (commit !== undefined && offset < commit && (last === undefined || offset > last)) last = offset;
    }
    if (last === undefined || this.#committed !== undefined && last < this.#committed) return SETTLED;
    const offset = last;
    return new Promise((resolve, reject) => this.#waiters.push({ offset, resolve, reject }));
  }

  /** The server has everything before `offset`. */
  committed(offset: bigint): void {
    if (this.#committed === undefined || offset > this.#committed) this.#committed = offset;
    this.#wake((waiter) => waiter.offset < offset, (waiter) => waiter.resolve("settled"));
    this.#heir?.committed(offset);
  }

  /** Commits fail for now. */
  commitFailed(error: Error): void {
    this.#wake(() => true, (waiter) => waiter.reject(error));
  }

  /** A commit up to there is on its way; undefined = none is. */
  sending(offset: bigint | undefined): void {
    this.#sending = offset;
    if (this.#lost) this.lose();
    this.#heir?.sending(offset);
  }

  /** Begins where another one is given up that was ours as well: what was settled of that one is committed of this one. */
  inherit(old: OwnedPartition): void {
    this.position = old.restartAt;
    this.#inherited = old.toCommit;
    this.#committed = old.#committed;
    this.#sending = old.#sending;
    old.#heir = this;
    this.#waiters = old.#waiters.splice(0);
  }

  /** It is ours no more. What is in a commit on its way may still be settled by it. */
  lose(): void {
    this.#lost = true;
    const sent = this.#sending;
    this.#wake((waiter) => sent === undefined || waiter.offset >= sent, (waiter) => waiter.resolve("stale"));
  }

  #wake(which: (waiter: Waiter) => boolean, how: (waiter: Waiter) => void): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) {
      if (which(waiter)) how(waiter);
      else this.#waiters.push(waiter);
    }
  }
}

const SETTLED: Promise<NativeOutcome> = Promise.resolve("settled");

function sizeOf({ value }: RecordIn): number {
  return (value?.length ?? 0) + 100;
}
