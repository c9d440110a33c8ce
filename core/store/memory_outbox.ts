/**
 * The outbox of the memory store. Rows stand in lines, one a (topic, subject); a line is leased as a whole, so that no two
 * relays ever hold one subject.
 *
 * @module
 */
import type { Clock } from "../clock.ts";
import type { Envelope, EnvelopeInit } from "../envelope.ts";
import { InvalidOptionError } from "../errors.ts";
import { Fifo } from "../fifo.ts";
import { Waiters } from "./waiters.ts";
import type { Outbox, OutboxFailure, OutboxRow, ParkedRow } from "./contract.ts";

interface Row extends OutboxRow {
  readonly line: Line;
  attempts: number;
  error: string;
}

/** The rows of one topic and subject, the lowest first. */
interface Line {
  readonly key: string;
  readonly rows: Row[];
  /** Rows at the head that are claimed; 0 = no lease. */
  claimed: number;
  owner: string;
  leaseUntil: number;
  /** Monotonic ms before which it is not claimed again. */
  notBefore: number;
  parked: boolean;
  /** Whether it stands in the queue of claimable lines. */
  queued: boolean;
}

/** Turns what an outbox writer gives into an envelope and its text. */
export type MakeEnvelope = (message: EnvelopeInit | Envelope) => { readonly envelope: Envelope; readonly text: string };

/** Outbox rows in memory. */
export class MemoryOutbox implements Outbox {
  readonly #clock: Clock;
  readonly #make: MakeEnvelope;
  readonly #guard: () => void;
  readonly #lines = new Map<string, Line>();
  readonly #rows = new Map<number, Row>();
  /** Lines with rows and no lease, in the order they became so. */
  readonly #queue = new Fifo<Line>();
  readonly #leased = new Set<Line>();
  /** Lines that wait for their `notBefore`. */
  readonly #delayed = new Set<Line>();
  readonly #waiters: Waiters;
  #seq = 0;

  /** @param guard Throws once the store is closed. */
  constructor(clock: Clock, make: MakeEnvelope, guard: () => void) {
    this.#clock = clock;
    this.#make = make;
    this.#guard = guard;
    this.#waiters = new Waiters(clock, () => this.#nextChange());
  }

  // deno-lint-ignore require-await
  async add(_tx: undefined, topic: string, message: EnvelopeInit | Envelope): Promise<Envelope> {
    this.#guard();
    const { envelope, text } = this.#make(message);
    this.insert(topic, text, envelope.subject);
    return envelope;
  }

  /** Adds a row; for units, at their commit. */
  insert(topic: string, envelope: string, subject: string | undefined): void {
    const seq = ++this.#seq;
    // A row without a subject has no order, so it is a line of its own.
    const key = subject === undefined ? `#${seq}` : `${topic.length}:${topic}${subject}`;
    let line = this.#lines.get(key);
    if (line === undefined) {
      line = { key, rows: [], claimed: 0, owner: "", leaseUntil: 0, notBefore: 0, parked: false, queued: false };
      this.#lines.set(key, line);
    }
    const row: Row = {
      seq,
      topic,
      ...(subject === undefined ? {} : { subject }),
      envelope,
      attempts: 0,
      line,
      error: "",
    };
    line.rows.push(row);
    this.#rows.set(seq, row);
    this.#enqueue(line);
  }

  // deno-lint-ignore require-await
  async claim(owner: string, limit: number, leaseMs: number): Promise<readonly OutboxRow[]> {
    this.#guard();
    const now = this.#clock.monotonic();
    this.#expireLeases(now);
    this.#endDelays(now);
    const rows: OutboxRow[] = [];
    while (rows.length < limit && this.#queue.length > 0) {
      const line = this.#queue.shift()!;
      line.queued = false;
      line.claimed = Math.min(line.rows.length, limit - rows.length);
      line.owner = owner;
      line.leaseUntil = now + leaseMs;
      this.#leased.add(line);
      for (let at = 0; at < line.claimed; at++) rows.push(publicRow(line.rows[at]!));
    }
    return rows.sort((a, b) => a.seq - b.seq);
  }

  // deno-lint-ignore require-await
  async settle(owner: string, seqs: readonly number[]): Promise<number> {
    this.#guard();
    let held = 0;
    for (const seq of seqs) {
      const row = this.#held(owner, seq);
      if (row === undefined) continue;
      held++;
      this.#remove(row);
      this.#unclaim(row.line);
    }
    return held;
  }

  // deno-lint-ignore require-await
  async renew(owner: string, seqs: readonly number[], leaseMs: number): Promise<number> {
    this.#guard();
    const until = this.#clock.monotonic() + leaseMs;
    const held = seqs.map((seq) => this.#held(owner, seq)).filter((row) => row !== undefined);
    for (const { line } of held) line.leaseUntil = until;
    return held.length;
  }

  // deno-lint-ignore require-await
  async release(owner: string, seqs: readonly number[], failed?: OutboxFailure): Promise<void> {
    this.#guard();
    for (const seq of seqs) {
      const row = this.#held(owner, seq);
      if (row === undefined) continue;
      if (failed !== undefined) this.#fail(row, failed);
      this.#unclaim(row.line);
    }
  }

  // deno-lint-ignore require-await
  async pending(): Promise<number> {
    this.#guard();
    return this.#rows.size;
  }

  // deno-lint-ignore require-await
  async parked(limit = 1_000): Promise<readonly ParkedRow[]> {
    this.#guard();
    if (!(Number.isInteger(limit) && limit >= 1 && limit <= 10_000)) {
      throw new InvalidOptionError("limit must be a whole number from 1 to 10,000");
    }
    const rows: ParkedRow[] = [];
    for (const line of this.#lines.values()) {
      const row = line.parked ? line.rows[0] : undefined;
      if (row !== undefined) rows.push({ ...publicRow(row), error: row.error });
    }
    return rows.sort((a, b) => a.seq - b.seq).slice(0, limit);
  }

  // deno-lint-ignore require-await
  async unpark(seqs: readonly number[], how: "retry" | "discard"): Promise<number> {
    this.#guard();
    let count = 0;
    for (const seq of seqs) {
      const row = this.#rows.get(seq);
      if (row === undefined || !row.line.parked || row.line.rows[0] !== row) continue;
      count++;
      row.line.parked = false;
      if (how === "discard") this.#remove(row);
      this.#enqueue(row.line);
    }
    return count;
  }

  async wait(ms: number, signal: AbortSignal): Promise<void> {
    this.#guard();
    if (this.#queue.length === 0) await this.#waiters.wait(ms, signal);
  }

  /** Ends every wait. */
  close(): void {
    this.#waiters.wake();
  }

  /** When a delay or a lease ends by itself, monotonic ms. */
  #nextChange(): number {
    let next = Infinity;
    for (const line of this.#delayed) next = Math.min(next, line.notBefore);
    for (const line of this.#leased) next = Math.min(next, line.leaseUntil);
    return next;
  }

  #held(owner: string, seq: number): Row | undefined {
    const row = this.#rows.get(seq);
    if (row === undefined || row.line.owner !== owner) return undefined;
    const at = row.line.rows.indexOf(row);
    return at < row.line.claimed ? row : undefined;
  }

  #fail(row: Row, failed: OutboxFailure): void {
    const { line } = row;
    if (failed.counted !== false) row.attempts++;
    row.error = failed.error;
    line.parked = failed.park;
    line.notBefore = this.#clock.monotonic() + (failed.delayMs ?? 0);
    // What is behind it keeps its place: the line as a whole waits.
    line.claimed = Math.min(line.claimed, line.rows.indexOf(row) + 1);
  }

  #remove(row: Row): void {
    const { line } = row;
    line.rows.splice(line.rows.indexOf(row), 1);
    this.#rows.delete(row.seq);
    if (line.rows.length === 0 && line.claimed <= 1) this.#lines.delete(line.key);
  }

  /** One claimed row less; the last one ends the lease. */
  #unclaim(line: Line): void {
    if (--line.claimed > 0) return;
    this.#endLease(line);
  }

  #endLease(line: Line): void {
    line.claimed = 0;
    line.owner = "";
    this.#leased.delete(line);
    this.#enqueue(line);
  }

  #expireLeases(now: number): void {
    for (const line of this.#leased) if (line.leaseUntil <= now) this.#endLease(line);
  }

  #endDelays(now: number): void {
    for (const line of this.#delayed) {
      if (line.notBefore > now) continue;
      this.#delayed.delete(line);
      this.#enqueue(line);
    }
  }

  /** Makes a line claimable if it is. */
  #enqueue(line: Line): void {
    if (line.queued || line.parked || line.claimed > 0 || line.rows.length === 0) return;
    if (line.notBefore > this.#clock.monotonic()) {
      this.#delayed.add(line);
      this.#waiters.look();
      return;
    }
    line.queued = true;
    this.#queue.push(line);
    this.#waiters.wake();
  }
}

function publicRow(row: Row): OutboxRow {
  const { seq, topic, subject, envelope, attempts } = row;
  return { seq, topic, ...(subject === undefined ? {} : { subject }), envelope, attempts };
}
