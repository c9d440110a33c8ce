/**
 * Publishes the rows of an outbox: at least once, in order per topic and subject.
 *
 * @module
 */
import { Backoff, type Clock, pause, type Timer } from "../clock.ts";
import { decodeEnvelope } from "../codec.ts";
import type { BrokerAdapter, Envelope } from "../contract.ts";
import { isEdaError, type PublishBatchError } from "../errors.ts";
import { errorName } from "../guard.ts";
import type { Logger } from "../logger.ts";
import type { Outbox, OutboxFailure, OutboxRow } from "../store/contract.ts";

/** Settings of a {@link Relay}. */
export interface RelayOptions {
  readonly outbox: Pick<Outbox<unknown>, "claim" | "settle" | "release" | "renew" | "wait">;
  readonly broker: Pick<BrokerAdapter, "publishAll">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Unique among all relays of the outbox. */
  readonly owner: string;
  /** Most rows claimed at once. Default 500. */
  readonly batch?: number;
  /** How long a claim holds without being renewed, ms. Default 30,000. */
  readonly leaseMs?: number;
  /** Rows added by other processes are noticed at least this often, ms. Default 1,000. */
  readonly pollMs?: number;
  readonly onPublished?: (count: number) => void;
  readonly onParked?: (count: number) => void;
}

/** Errors that say the downstream will never take this row, whatever the others do. */
const REFUSED: ReadonlySet<string> = new Set([
  "envelope-corrupt",
  "envelope-invalid",
  "envelope-too-large",
  "invalid-option",
  "publish-refused",
  "schema-invalid",
]);

/** Failures in a row after which a single row is sent to find out whether the downstream is back. */
const OPEN_AFTER = 5;

/** A relay. One object serves one outbox; any number of them may, here and in other processes. */
export class Relay {
  readonly #options: RelayOptions;
  readonly #batch: number;
  readonly #leaseMs: number;
  readonly #pollMs: number;
  readonly #backoff: Backoff;

  constructor(options: RelayOptions) {
    this.#options = options;
    this.#batch = options.batch ?? 500;
    this.#leaseMs = options.leaseMs ?? 30_000;
    this.#pollMs = options.pollMs ?? 1_000;
    this.#backoff = new Backoff(options.clock, 200, 30_000);
  }

  /** `open` = the downstream or the outbox did not answer several times in a row; one row at a time is tried. */
  get state(): "closed" | "open" {
    return this.#backoff.failures >= OPEN_AFTER ? "open" : "closed";
  }

  /** Publishes until `signal` aborts. Never rejects: what fails is tried again. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, outbox } = this.#options;
    while (!signal.aborted) {
      const round = await this.#round(signal);
      if (round === "failed") await pause(clock, this.#backoff.next(), signal);
      else if (round === "empty") await outbox.wait(this.#pollMs, signal).catch(() => {});
    }
  }

  /** Publishes what can be claimed now, until nothing is left, something fails or `signal` aborts. */
  async flush(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && await this.#round(signal) === "published");
  }

  async #round(signal: AbortSignal): Promise<"published" | "empty" | "failed"> {
    const { outbox, owner } = this.#options;
    let rows: readonly OutboxRow[];
    try {
      rows = await outbox.claim(owner, this.state === "open" ? 1 : this.#batch, this.#leaseMs);
    } catch (error) {
      this.#warn("the outbox cannot be read", error);
      return "failed";
    }
    if (rows.length === 0) return "empty";
    const lease = this.#keepLease(rows);
    try {
      const sent = await Promise.all(
        [...byTopic(rows)].map(([topic, ofTopic]) => this.#publish(topic, ofTopic, signal)),
      );
      if (!sent.includes(true)) return "failed";
      this.#backoff.reset();
      return "published";
    } finally {
      lease.cancel();
    }
  }

  /** Publishes rows of one topic, in order. Answers whether the downstream answered. */
  async #publish(topic: string, rows: readonly OutboxRow[], signal: AbortSignal): Promise<boolean> {
    const { onPublished } = this.#options;
    const failures = new Map<OutboxRow, unknown>();
    const envelopes = this.#decode(rows, failures);
    const unreadable = firstFailures(failures);
    const sendable = rows.filter((row) => !failures.has(row) && !isBehind(row, unreadable));
    const sent = await this.#send(topic, sendable, envelopes, failures);
    if (sent.length > 0) {
      await this.#store(signal, (outbox, owner) => outbox.settle(owner, sent.map((row) => row.seq)));
      onPublished?.(sent.length);
    }
    const refused = await this.#giveBack(topic, rows.filter((row) => !sent.includes(row)), failures, signal);
    return sent.length > 0 || refused > 0;
  }

  /** Sends rows in order; answers those that were confirmed, and notes why others failed. */
  async #send(
    topic: string,
    rows: readonly OutboxRow[],
    envelopes: ReadonlyMap<OutboxRow, Envelope>,
    failures: Map<OutboxRow, unknown>,
  ): Promise<OutboxRow[]> {
    if (rows.length === 0) return [];
    try {
      await this.#options.broker.publishAll(topic, rows.map((row) => envelopes.get(row)!));
      return [...rows];
    } catch (error) {
      const outcomes = isEdaError(error) && error.code === "publish-batch"
        ? (error as PublishBatchError).outcomes
        : undefined;
      if (outcomes === undefined && isRefusal(error) && rows.length > 1) {
        // All were checked before any was sent, and one was refused: which one, the halves tell.
        const half = rows.length >> 1;
        const sent = await this.#send(topic, rows.slice(0, half), envelopes, failures);
        const first = firstFailures(failures);
        const rest = rows.slice(half).filter((row) => !isBehind(row, first));
        return [...sent, ...await this.#send(topic, rest, envelopes, failures)];
      }
      for (const [at, row] of rows.entries()) {
        const outcome = outcomes?.[at];
        if (outcome === undefined) failures.set(row, error);
        else if (!outcome.ok) failures.set(row, outcome.error);
      }
      return rows.filter((row) => !failures.has(row));
    }
  }

  #decode(rows: readonly OutboxRow[], failures: Map<OutboxRow, unknown>): Map<OutboxRow, Envelope> {
    const envelopes = new Map<OutboxRow, Envelope>();
    for (const row of rows) {
      try {
        envelopes.set(row, decodeEnvelope(row.envelope, { maxBytes: Number.MAX_SAFE_INTEGER }));
      } catch (error) {
        failures.set(row, error);
      }
    }
    return envelopes;
  }

  /** Parks what was refused, sets aside what failed otherwise, releases what stands behind. Answers how many were refused. */
  async #giveBack(
    topic: string,
    rows: readonly OutboxRow[],
    failures: Map<OutboxRow, unknown>,
    signal: AbortSignal,
  ): Promise<number> {
    let refused = 0;
    let down: unknown;
    const first = firstFailures(failures);
    const delayMs = this.#backoff.failures > 0 ? 0 : 200;
    // The first failure of a subject decides; what is behind it was not sent because of it. From the last to the first, so
    // that giving back one that is behind does not look like the head of its subject.
    for (const row of [...rows].reverse()) {
      const error = failures.get(row);
      if (!failures.has(row) || isBehind(row, first)) {
        await this.#store(signal, (outbox, owner) => outbox.release(owner, [row.seq]));
        continue;
      }
      const park = isRefusal(error);
      const failed: OutboxFailure = { error: nameOf(error), park, counted: park, ...(park ? {} : { delayMs }) };
      await this.#store(signal, (outbox, owner) => outbox.release(owner, [row.seq], failed));
      if (!park) {
        down = error;
        continue;
      }
      refused++;
      this.#options.onParked?.(1);
      this.#options.log.error("an outbox row was refused and parked; it blocks its subject until unparked", {
        topic,
        seq: row.seq,
        error: nameOf(error),
      });
    }
    if (down !== undefined) this.#warn("outbox rows could not be published and are tried again", down, topic);
    return refused;
  }

  /** Tells the outbox what happened, until it hears; else the lease tells it nothing did. */
  async #store(
    signal: AbortSignal,
    call: (outbox: RelayOptions["outbox"], owner: string) => Promise<unknown>,
  ): Promise<void> {
    const { outbox, owner, clock } = this.#options;
    const backoff = new Backoff(clock, 200, 5_000);
    const end = clock.monotonic() + this.#leaseMs;
    while (true) {
      try {
        await call(outbox, owner);
        return;
      } catch (error) {
        this.#warn("the outbox did not take an outcome", error);
        if (signal.aborted || clock.monotonic() >= end) return;
        await pause(clock, backoff.next(), signal);
      }
    }
  }

  #keepLease(rows: readonly OutboxRow[]): Timer {
    const { outbox, owner, clock } = this.#options;
    const seqs = rows.map((row) => row.seq);
    let timer: Timer;
    const arm = (): void => {
      timer = clock.timer(this.#leaseMs / 3, () => {
        outbox.renew(owner, seqs, this.#leaseMs).catch(() => {});
        arm();
      });
    };
    arm();
    return { cancel: () => timer.cancel() };
  }

  #warn(message: string, error: unknown, topic?: string): void {
    this.#options.log.warn(message, { ...(topic === undefined ? {} : { topic }), error: nameOf(error) });
  }
}

function isRefusal(error: unknown): boolean {
  return isEdaError(error) && REFUSED.has(error.code);
}

function byTopic(rows: readonly OutboxRow[]): Map<string, OutboxRow[]> {
  const topics = new Map<string, OutboxRow[]>();
  for (const row of rows) {
    const known = topics.get(row.topic);
    if (known === undefined) topics.set(row.topic, [row]);
    else known.push(row);
  }
  return topics;
}

/** The lowest failed row of each subject; all rows are of one topic. */
function firstFailures(failures: ReadonlyMap<OutboxRow, unknown>): ReadonlyMap<string, number> {
  const first = new Map<string, number>();
  for (const { subject, seq } of failures.keys()) {
    if (subject !== undefined) first.set(subject, Math.min(seq, first.get(subject) ?? seq));
  }
  return first;
}

/** Whether an earlier row of the same subject failed. */
function isBehind(row: OutboxRow, first: ReadonlyMap<string, number>): boolean {
  return row.subject !== undefined && row.seq > (first.get(row.subject) ?? row.seq);
}

function nameOf(error: unknown): string {
  return isEdaError(error) ? `${error.name} (${error.code})` : errorName(error);
}
