/**
 * Contracts of what only durable stores hold: the deferred list and the marks of suspects. A store without them leaves the
 * members out, and options that need them are refused by name.
 *
 * @module
 */
import type { ReceiptKey } from "./receipt_key.ts";

/** An event set aside for its subject, with its receipt, in one unit. */
export interface DeferredEvent {
  /** Order within its key. */
  readonly seq: number;
  /** Snapshot key, or consumer and subject: events of one key run in order. */
  readonly key: string;
  readonly topic: string;
  /** Structured CloudEvents text. */
  readonly envelope: string;
  /** `machine`: it asked for it · `missing`: no starter yet · `parked`: its subject has a dead letter · `waiting`: a long retry. */
  readonly why: "machine" | "missing" | "parked" | "waiting";
  readonly failures: number;
  /** Wall clock ms. */
  readonly at: number;
}

/** The deferred list: one durable table; each event of it later runs in its own unit, before its subject's next message. */
export interface Deferred {
  /** Events of keys that became due, in order within each key. */
  due(limit: number): Promise<readonly DeferredEvent[]>;
  /** How many wait for a key. */
  count(key: string): Promise<number>;
  /** Makes the events of a parked key due. */
  release(key: string): Promise<number>;
  /** Removes those older than `before` (wall clock ms); answers them, for the dead letters. */
  expire(before: number): Promise<readonly DeferredEvent[]>;
}

/** Start marks of deliveries that may be repeats; what a process that died left behind. */
export interface Suspects {
  /** Marks a start; answers how many deaths while running alone are counted against it. */
  mark(key: ReceiptKey, process: string, alone: boolean): Promise<number>;
  clear(key: ReceiptKey): Promise<void>;
  /** Marks of other processes. */
  left(process: string): Promise<readonly ReceiptKey[]>;
}
