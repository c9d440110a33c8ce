/**
 * What a store is to the dispatcher. A {@link Store} makes a {@link Unit} atomic: snapshot, inbox receipt, outbox rows,
 * timers and dead letter of one envelope are all there or none.
 *
 * @module
 */
import type { Envelope, EnvelopeInit } from "../envelope.ts";
import type { Deferred, Suspects } from "./deferred.ts";
import type { ReceiptKey } from "./receipt_key.ts";

export type { Deferred, DeferredEvent, Suspects } from "./deferred.ts";
export type { ReceiptKey } from "./receipt_key.ts";

/** Proof that an event was handled. */
export interface Receipt extends ReceiptKey {
  /** Hash of the wire data; the same id with another fingerprint is an `idempotency_mismatch`. */
  readonly fingerprint: string;
  /** Wall clock ms. */
  readonly at: number;
  /** Set where the receipt stands for a dead letter: its id. */
  readonly deadLetter?: string;
}

/** Persisted state of one machine instance. */
export interface Snapshot {
  /** Machine id + instance key, see `adapters/xstate`. */
  readonly key: string;
  /** JSON text. */
  readonly value: string;
  /** 1 on the first save, then + 1. */
  readonly version: number;
  /** Machine id and version it was written by. */
  readonly machine: string;
  readonly machineVersion: string;
}

/** A durable timer: an event to be published later. */
export interface TimerRow {
  /** Unique with `owner`. */
  readonly id: string;
  /** Snapshot key for `after` delays of a machine, or the consumer for `ctx.schedule`. */
  readonly owner: string;
  /** Wall clock ms. */
  readonly dueAt: number;
  /** Where it goes when due: published on `topic`, or `undefined`: sent to the machine instance `owner`. */
  readonly topic?: string;
  /** Structured CloudEvents text. */
  readonly envelope: string;
}

/** A row of the outbox. */
export interface OutboxRow {
  /** Order of insertion. */
  readonly seq: number;
  readonly topic: string;
  readonly subject?: string;
  /** Structured CloudEvents text, sent as it is at every attempt. */
  readonly envelope: string;
  readonly attempts: number;
}

/** Why an event was given up. */
export type DeadLetterReason =
  | "max_attempts"
  | "corrupt"
  | "invalid"
  | "unknown_event"
  | "instance_done"
  | "idempotency_mismatch"
  | "unhandled"
  | "no_instance"
  | "snapshot_incompatible";

/** A dead letter. */
export interface DeadLetter {
  /** Fresh UUIDv7. */
  readonly id: string;
  readonly reason: DeadLetterReason;
  readonly consumer: string;
  readonly topic: string;
  /** Wall clock ms of the first and last failure. */
  readonly firstFailedAt: number;
  readonly lastFailedAt: number;
  readonly failures: number;
  /** Name, code and message (cut to 1,000 characters, secrets masked) of the last error and its causes. */
  readonly errors: readonly { readonly name: string; readonly code?: string; readonly message: string }[];
  /** Attributes; absent for a corrupt message. */
  readonly source?: string;
  readonly eventId?: string;
  readonly type?: string;
  readonly subject?: string;
  /** Redacted view for listing. */
  readonly redacted: string;
  /** The intact text, for replay; absent with `keepBodies: false`. */
  readonly body?: string;
  /** Corrupt messages: size, hash and, if kept, base64 of the exact bytes. */
  readonly bytes?: number;
  readonly sha256?: string;
  readonly bodyBase64?: string;
  readonly replays: number;
  /** Wall clock ms of the replay that settled it. */
  readonly resolvedAt?: number;
}

/** The failure count of one event, the dispatcher's own. */
export interface FailureCount {
  readonly failures: number;
  readonly firstFailedAt: number;
}

/**
 * Whether a unit may still commit. An `AbortSignal` fits. Stores look at it once, right before they commit: a handler that
 * ran out of time or lost its delivery ends by itself (its work rejects), so there is nothing to listen for.
 */
export interface Fence {
  readonly aborted: boolean;
}

/** One atomic change, collected while a handler runs and applied by {@link Store.transact}. */
export interface Unit<Tx = undefined> {
  /** In `mode: "transaction"`, the database transaction; else undefined. */
  readonly tx: Tx;
  /** What the unit read: the snapshot of its key, or undefined. */
  readonly snapshot: Snapshot | undefined;
  /** What the unit read: the receipt, or undefined. A receipt older than {@link UnitKey.receiptsFrom} counts as none. */
  readonly receipt: Receipt | undefined;
  /** What the unit read: the timer, or undefined where it fired or was deleted meanwhile. */
  readonly timer: TimerRow | undefined;
  /** Writes the snapshot, version + 1. Once a unit. */
  saveSnapshot(value: string, machine: string, machineVersion: string): void;
  deleteSnapshot(): void;
  /**
   * Writes the receipt. One that the unit did not see makes the commit fail as a conflict; the one it saw, and one older
   * than {@link UnitKey.receiptsFrom}, is replaced.
   */
  addReceipt(receipt: Receipt): void;
  /** Adds an outbox row. */
  addOutbox(topic: string, envelope: string, subject: string | undefined): void;
  /** Adds or replaces a timer. Timer writes of a unit take effect in the order made. */
  setTimer(row: TimerRow): void;
  deleteTimer(owner: string, id: string): void;
  /** Adds a dead letter, or replaces the one with its id. */
  addDeadLetter(letter: DeadLetter): void;
  clearFailures(key: ReceiptKey): void;
}

/** What a unit is about: it is read when the unit starts, and must not have changed when it commits. */
export interface UnitKey {
  /** The inbox receipt to read and guard. */
  readonly receipt?: ReceiptKey;
  /** Receipts before this moment (wall clock ms) have expired, whether or not they were purged. Default: none has. */
  readonly receiptsFrom?: number;
  /**
   * The snapshot to read and guard. Guarded also where the unit writes none: a decision to do nothing stands on what was
   * read. A snapshot that was deleted and made anew in between is a change, though its version may be the same.
   */
  readonly snapshot?: string;
  /** The timer to read and guard. */
  readonly timer?: { readonly owner: string; readonly id: string };
}

/** The inbox: receipts. */
export interface Inbox {
  get(key: ReceiptKey): Promise<Receipt | undefined>;
  /** Removes receipts older than `before` (wall clock ms); answers how many. */
  purge(before: number): Promise<number>;
}

/** The outbox, for writers outside a unit and for relays. */
export interface Outbox<Tx = undefined> {
  /** Adds a row in the caller's transaction (`tx`), or in one of its own. */
  add(tx: Tx | undefined, topic: string, message: EnvelopeInit | Envelope): Promise<Envelope>;
  /**
   * Claims up to `limit` rows for `owner` for `leaseMs`, by `seq`: of each (topic, subject) a run from its lowest unsent
   * row, and none while a live lease stands there. Rows without a subject stand alone.
   */
  claim(owner: string, limit: number, leaseMs: number): Promise<readonly OutboxRow[]>;
  /** Sent and confirmed: removes them, if `owner` still holds them. Answers how many it held. */
  settle(owner: string, seqs: readonly number[]): Promise<number>;
  /** Keeps claimed rows for another `leaseMs`, if `owner` still holds them. Answers how many it held. */
  renew(owner: string, seqs: readonly number[], leaseMs: number): Promise<number>;
  /**
   * Gives back unsent rows; with `failed`, sets each of them and, as always, all behind it in its subject aside: for
   * `delayMs`, or with `park` until {@link Outbox.unpark}.
   */
  release(owner: string, seqs: readonly number[], failed?: OutboxFailure): Promise<void>;
  /** Rows not yet sent, parked ones included. */
  pending(): Promise<number>;
  /** Parked rows by `seq`; `limit` 1 to 10,000, default 1,000. */
  parked(limit?: number): Promise<readonly ParkedRow[]>;
  /** Sends parked rows after all (`retry`), or removes them (`discard`). Answers how many were parked. */
  unpark(seqs: readonly number[], how: "retry" | "discard"): Promise<number>;
  /** Resolves when a row may have become claimable, or `ms` passed, or `signal` aborted. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
}

/** Why a row was not sent. */
export interface OutboxFailure {
  /** Name and code of the error, never its text. */
  readonly error: string;
  readonly park: boolean;
  /** Default 0. */
  readonly delayMs?: number;
  /** Whether it counts as an attempt; an absent downstream costs none. Default true. */
  readonly counted?: boolean;
}

/** A row that the downstream refused for good. It blocks only its own topic and subject. */
export interface ParkedRow extends OutboxRow {
  /** Name and code of the last error. */
  readonly error: string;
}

/** Dead letters. */
export interface DeadLetters {
  /** Records one outside a unit (undecodable messages). */
  put(letter: DeadLetter): Promise<void>;
  get(id: string): Promise<DeadLetter | undefined>;
  /** By id (time order); `limit` 1 to 10,000, default 1,000; `after` = the last id of the page before. */
  list(
    options?: { readonly includeResolved?: boolean; readonly limit?: number; readonly after?: string },
  ): Promise<readonly DeadLetter[]>;
  /** Prepares a replay in one unit: counts it, removes failures and the receipt that is this letter's own; answers the intact text. */
  beginReplay(id: string): Promise<{ readonly envelope: string; readonly topic: string; readonly replay: number }>;
  /** Marks it as settled by a replay. */
  resolve(id: string, at: number): Promise<void>;
  /** Removes those whose last failure is older than `before` (wall clock ms; not NaN, not negative); answers how many. */
  purge(before: number): Promise<number>;
}

/** Failure counts: the dispatcher's own, since brokers count also what was given back politely. */
export interface Failures {
  get(key: ReceiptKey): Promise<FailureCount | undefined>;
  /** Adds one; answers the new count. */
  bump(key: ReceiptKey, at: number): Promise<FailureCount>;
  clear(key: ReceiptKey): Promise<void>;
  /** Removes counts whose first failure is older than `before` (wall clock ms); answers how many. */
  purge(before: number): Promise<number>;
}

/** Snapshots, for looking at. Units write them. */
export interface Snapshots {
  get(key: string): Promise<Snapshot | undefined>;
}

/** Timers. */
export interface Timers {
  /** Due rows, earliest first. */
  due(now: number, limit: number): Promise<readonly TimerRow[]>;
  /** When the next one is due; undefined = none. */
  next(): Promise<number | undefined>;
}

/** A store. Errors: `StoreUnavailableError` (transient, never counted), `StoreConflictError` (after its own re-runs). */
export interface Store<Tx = undefined> extends AsyncDisposable {
  /** Whether what it holds outlives the process. */
  readonly durable: boolean;
  /**
   * Runs `work` on what it read under `key` and commits all it asked for, or nothing. A change under `key` by another
   * reloads and runs again, up to 5 times, then `StoreConflictError`. An error of `work` is rethrown as it is, nothing
   * committed. A fence that has aborted when the commit is due: `StoreFencedError`, nothing committed. Every call of the
   * store has a deadline of its own.
   */
  transact<R>(key: UnitKey, work: (unit: Unit<Tx>) => R | Promise<R>, fence?: Fence): Promise<R>;
  /**
   * As {@link transact}, for stores that read and commit synchronously: while `work` answers with no promise, neither does
   * this, and errors are thrown. Only an optimisation.
   */
  transactNow?<R>(key: UnitKey, work: (unit: Unit<Tx>) => R | Promise<R>, fence?: Fence): R | Promise<R>;
  readonly inbox: Inbox;
  readonly outbox: Outbox<Tx>;
  readonly deadLetters: DeadLetters;
  readonly failures: Failures;
  readonly timers: Timers;
  readonly snapshots: Snapshots;
  /** The deferred list, where the store has one: durable stores do. */
  readonly deferred?: Deferred;
  /** Marks of suspects, where the store has them: durable stores do. */
  readonly suspects?: Suspects;
  /** Idempotent. Calls after it reject with `ClosedError`. */
  close(): Promise<void>;
}
