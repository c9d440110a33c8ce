/**
 * What the memory store holds apart from outbox and timers, each table bounded.
 *
 * @module
 */
import { ownText } from "../own_text.ts";
import { BoundedMap } from "./bounded_map.ts";
import type { DeadLetter, FailureCount, ReceiptKey, Snapshot } from "./contract.ts";
import { ReceiptTable } from "./memory_receipts.ts";

/** Consumer, source and id as one text that keeps no message alive; the lengths keep `a|b` + `c` apart from `a` + `b|c`. */
export function fullKey(key: ReceiptKey): string {
  return ownText(`${key.consumer.length}:${key.consumer}${key.source.length}:${key.source}${key.id}`);
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

/** A letter that keeps no message alive of which its attributes were cut. */
function withoutMessage(letter: DeadLetter): DeadLetter {
  const { source, eventId, type, subject } = letter;
  return {
    ...letter,
    ...(source === undefined ? {} : { source: ownText(source) }),
    ...(eventId === undefined ? {} : { eventId: ownText(eventId) }),
    ...(type === undefined ? {} : { type: ownText(type) }),
    ...(subject === undefined ? {} : { subject: ownText(subject) }),
  };
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
    this.rows.set(letter.id, letter.body === undefined ? withoutMessage(letter) : letter);
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
