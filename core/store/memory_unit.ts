/**
 * The unit of the memory store: reads at once, collects writes, and commits them all or none.
 *
 * @module
 */
import type { DeadLetter, Receipt, ReceiptKey, Snapshot, TimerRow, Unit, UnitKey } from "./contract.ts";
import { ownText } from "../own_text.ts";
import type { MemoryOutbox } from "./memory_outbox.ts";
import { receiptOf, type ReceiptRow, rowOf } from "./memory_receipts.ts";
import { fullKey, type Tables } from "./memory_tables.ts";
import type { MemoryTimers } from "./memory_timers.ts";

/** What a unit works on. */
export interface MemoryState {
  readonly tables: Tables;
  readonly outbox: MemoryOutbox;
  readonly timers: MemoryTimers;
}

interface SnapshotWrite {
  readonly value: string;
  readonly machine: string;
  readonly machineVersion: string;
}

interface OutboxWrite {
  readonly topic: string;
  readonly envelope: string;
  readonly subject: string | undefined;
}

/** One unit. Its writes are kept in the order made, a list a kind, and the lists are only made when needed. */
export class MemoryUnit implements Unit {
  readonly tx = undefined;
  readonly snapshot: Snapshot | undefined;
  readonly receipt: Receipt | undefined;
  readonly timer: TimerRow | undefined;
  readonly #state: MemoryState;
  readonly #key: UnitKey;
  readonly #changes: number;
  /** All rows of the receipt's id. */
  readonly #rows: ReceiptRow | undefined;
  /** The receipt's own row as it stands, expired or not: what the commit compares with. */
  readonly #row: ReceiptRow | undefined;
  #receipt: Receipt | undefined;
  /** `null` = delete. */
  #snapshot: SnapshotWrite | null | undefined;
  #outbox: OutboxWrite[] | undefined;
  #timers: (() => void)[] | undefined;
  #letters: DeadLetter[] | undefined;
  #cleared: ReceiptKey[] | undefined;

  constructor(state: MemoryState, key: UnitKey) {
    const { tables } = state;
    this.#state = state;
    this.#key = key;
    this.#changes = tables.changes;
    if (key.receipt !== undefined) {
      this.#rows = tables.receipts.rows(key.receipt);
      this.#row = this.#rows === undefined ? undefined : rowOf(this.#rows, key.receipt);
      const expired = this.#row !== undefined && this.#row.at < (key.receiptsFrom ?? -Infinity);
      this.receipt = expired ? undefined : receiptOf(this.#row, key.receipt);
    }
    this.snapshot = key.snapshot === undefined ? undefined : tables.snapshots.get(key.snapshot);
    this.timer = key.timer === undefined ? undefined : state.timers.get(key.timer.owner, key.timer.id);
  }

  saveSnapshot(value: string, machine: string, machineVersion: string): void {
    this.#needSnapshotKey();
    this.#snapshot = { value, machine, machineVersion };
  }

  deleteSnapshot(): void {
    this.#needSnapshotKey();
    this.#snapshot = null;
  }

  addReceipt(receipt: Receipt): void {
    const key = this.#key.receipt;
    if (
      key === undefined || key.id !== receipt.id || key.source !== receipt.source || key.consumer !== receipt.consumer
    ) {
      throw new TypeError("A unit writes only the receipt of the key it was opened with");
    }
    this.#receipt = receipt;
  }

  addOutbox(topic: string, envelope: string, subject: string | undefined): void {
    (this.#outbox ??= []).push({ topic, envelope, subject });
  }

  setTimer(row: TimerRow): void {
    (this.#timers ??= []).push(() => this.#state.timers.set(row));
  }

  deleteTimer(owner: string, id: string): void {
    (this.#timers ??= []).push(() => this.#state.timers.delete(owner, id));
  }

  addDeadLetter(letter: DeadLetter): void {
    (this.#letters ??= []).push(letter);
  }

  clearFailures(key: ReceiptKey): void {
    (this.#cleared ??= []).push(key);
  }

  /** Applies the writes; false = something under the key changed meanwhile, and nothing was applied. */
  commit(): boolean {
    const { tables, outbox } = this.#state;
    const alone = tables.changes === this.#changes;
    if (!alone && !this.#unchanged()) return false;
    if (this.#receipt !== undefined) {
      tables.receipts.set(this.#receipt, alone ? this.#rows : tables.receipts.rows(this.#receipt));
      tables.changes++;
    }
    if (this.#snapshot !== undefined) this.#writeSnapshot(this.#snapshot);
    if (this.#timers !== undefined) {
      for (const write of this.#timers) write();
      tables.changes++;
    }
    if (this.#outbox !== undefined) {
      for (const row of this.#outbox) outbox.insert(row.topic, row.envelope, row.subject);
    }
    if (this.#letters !== undefined) { for (const letter of this.#letters) tables.deadLetters.put(letter); }
    if (this.#cleared !== undefined) { for (const key of this.#cleared) tables.failures.delete(fullKey(key)); }
    return true;
  }

  #unchanged(): boolean {
    const { tables, timers } = this.#state;
    const { receipt, snapshot, timer } = this.#key;
    // Rows are never changed in place, so identity tells also a deletion that was followed by a new row.
    return (receipt === undefined || rowOf(tables.receipts.rows(receipt), receipt) === this.#row) &&
      (snapshot === undefined || tables.snapshots.get(snapshot) === this.snapshot) &&
      (timer === undefined || timers.get(timer.owner, timer.id) === this.timer);
  }

  #needSnapshotKey(): string {
    const key = this.#key.snapshot;
    if (key === undefined) {
      throw new TypeError("A unit writes a snapshot only under the snapshot key it was opened with");
    }
    return key;
  }

  #writeSnapshot(write: SnapshotWrite | null): void {
    const key = this.snapshot?.key ?? ownText(this.#needSnapshotKey());
    const { snapshots } = this.#state.tables;
    this.#state.tables.changes++;
    if (write === null) snapshots.delete(key);
    else snapshots.set(key, { key, ...write, version: (this.snapshot?.version ?? 0) + 1 });
  }
}
