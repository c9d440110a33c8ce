/**
 * What the memory store holds apart from outbox and timers, each table bounded.
 *
 * @module
 */
import type { DeadLetter, FailureCount, Receipt, ReceiptKey, Snapshot } from "./contract.ts";

/** Consumer, source and id as one text; the lengths keep `a|b` + `c` apart from `a` + `b|c`. */
export function fullKey(key: ReceiptKey): string {
  return `${key.consumer.length}:${key.consumer}${key.source.length}:${key.source}${key.id}`;
}

/**
 * A map that keeps at least its newest `keep` entries and at most twice that: when the young half is full the old half is
 * dropped. Deleting the oldest entry one by one makes a `Map` walk over its own holes.
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

/** A receipt, and others of the same id from other sources. Never changed in place. */
export interface ReceiptEntry {
  readonly receipt: Receipt;
  readonly next: ReceiptEntry | undefined;
}

/** Receipts, a map a consumer. Found by id alone, which is in itself almost unique, so that no key text is built for each. */
export class ReceiptTable {
  readonly #keep: number;
  readonly #consumers = new Map<string, BoundedMap<ReceiptEntry>>();

  constructor(keep: number) {
    this.#keep = keep;
  }

  get(key: ReceiptKey): Receipt | undefined {
    return receiptIn(this.entry(key), key);
  }

  /** All receipts of the id. */
  entry(key: ReceiptKey): ReceiptEntry | undefined {
    return this.#consumers.get(key.consumer)?.get(key.id);
  }

  /** @param before What {@link entry} answers. */
  set(receipt: Receipt, before: ReceiptEntry | undefined): void {
    let table = this.#consumers.get(receipt.consumer);
    if (table === undefined) this.#consumers.set(receipt.consumer, table = new BoundedMap(this.#keep));
    table.set(receipt.id, { receipt, next: without(before, receipt.source) });
  }

  delete(key: ReceiptKey): void {
    const table = this.#consumers.get(key.consumer);
    const rest = without(table?.get(key.id), key.source);
    if (rest === undefined) table?.delete(key.id);
    else table?.set(key.id, rest);
  }

  purge(before: number): number {
    let removed = 0;
    for (const table of this.#consumers.values()) {
      // Kept whole while one of an id is young; such chains are as good as never longer than one.
      removed += table.purge((entry) => entry.receipt.at < before && entry.next === undefined);
    }
    return removed;
  }
}

/** The receipt of the key's source. */
export function receiptIn(entry: ReceiptEntry | undefined, key: ReceiptKey): Receipt | undefined {
  while (entry !== undefined && entry.receipt.source !== key.source) entry = entry.next;
  return entry?.receipt;
}

function without(entry: ReceiptEntry | undefined, source: string): ReceiptEntry | undefined {
  if (entry === undefined) return undefined;
  const next = without(entry.next, source);
  return entry.receipt.source === source ? next : next === entry.next ? entry : { receipt: entry.receipt, next };
}

/** Everything a unit reads and guards, and what a dead letter's replay touches. */
export class Tables {
  readonly receipts: ReceiptTable;
  readonly failures: BoundedMap<FailureCount>;
  readonly snapshots: Map<string, Snapshot> = new Map<string, Snapshot>();
  readonly deadLetters: DeadLetterTable;
  /** Grows with every change of a guarded row, so that a unit that saw none need not compare. */
  changes = 0;

  constructor(keepReceipts: number, keepDeadLetters: number) {
    this.receipts = new ReceiptTable(keepReceipts);
    this.failures = new BoundedMap(keepReceipts);
    this.deadLetters = new DeadLetterTable(keepDeadLetters);
  }

  purgeReceipts(before: number): number {
    this.changes++;
    return this.receipts.purge(before);
  }

  bumpFailures(key: string, at: number): FailureCount {
    const before = this.failures.get(key);
    const count = { failures: (before?.failures ?? 0) + 1, firstFailedAt: before?.firstFailedAt ?? at };
    this.failures.set(key, count);
    return count;
  }

  purgeFailures(before: number): number {
    return this.failures.purge((count) => count.firstFailedAt < before);
  }
}

/** Dead letters by id, the oldest first. Beyond `keep` resolved ones are forgotten first, then the oldest. */
export class DeadLetterTable {
  readonly rows: Map<string, DeadLetter> = new Map<string, DeadLetter>();
  readonly #keep: number;
  /** Unresolved letters that were forgotten to make room. */
  forgotten = 0;

  constructor(keep: number) {
    this.#keep = keep;
  }

  put(letter: DeadLetter): void {
    this.rows.set(letter.id, letter);
    if (this.rows.size > this.#keep) this.#makeRoom();
  }

  /** A tenth at a time, so that a flood does not walk the table for every letter. */
  #makeRoom(): void {
    let room = Math.max(1, Math.floor(this.#keep / 10));
    for (const [id, letter] of this.rows) {
      if (room > 0 && letter.resolvedAt !== undefined && this.rows.delete(id)) room--;
    }
    for (const id of this.rows.keys()) {
      if (room-- <= 0) return;
      this.rows.delete(id);
      this.forgotten++;
    }
  }
}
