/**
 * The contract every broker keeps. These comments are the specification; `tests/contract/` has one test or more a promise,
 * named after it, and every adapter passes them inline and in a worker on Deno, Bun and Node.
 *
 * Promises:
 *
 *  1. `publish` resolves only after the broker confirmed. Not sent: `BrokerUnavailableError`; sent and unconfirmed:
 *     `OutcomeUnknownError`; refused: `PublishRefusedError`. There is no hidden offline queue.
 *  2. Nothing is acked that a consumer did not ack.
 *  3. Publish order is kept per subject and topic. `publishAll` stops a subject at its first failure.
 *  4. Settle once: the second settle is `already`. A settle of what is no longer ours is `stale`: nothing is sent, nothing thrown.
 *  5. While a delivery is held back by `retry`, no later one of its topic and subject is handed out; others flow. It comes
 *     back before them, `attempt` + 1, after `delayMs`, and stays unsettled at the broker meanwhile.
 *  6. `drop` settles for good.
 *  7. `attempt` is the broker's own count plus local retries; a count on the wire is not trusted.
 *  8. The size cap comes before parsing. Undecodable messages are recorded, then dropped; while the record cannot be written
 *     they are held. They never loop and never strand their batch.
 *  9. What the broker sees in flight never exceeds `prefetch`; held ones count.
 * 10. A message that waits or runs here keeps its lease while the host is alive. It is never handed out late.
 * 11. `idleMs` ends the stream after that long with nothing arriving, counted while the consumer waits; 0 drains what is ready.
 * 12. Breaking out of a subscription loses nothing.
 * 13. A failing broker call marks the adapter unhealthy once; the next success heals it once. Errors of the caller never do.
 * 14. After an outage, consumption resumes by itself.
 * 15. Every broker call has a deadline.
 * 16. `close` gives unsettled messages back at once, stops every timer and ends the worker.
 *
 * @module
 */
import type { EdaError } from "./errors.ts";
import type { AnyTopics, Envelope, EnvelopeInit, EnvelopeOf, InitOf, TopicName, Topics } from "./topics.ts";

/**
 * What a settle came to.
 * `accepted`: ours, on its way to the broker · `settled`: the broker confirmed (`confirm: true`) · `stale`: no longer ours,
 * nothing was sent · `already`: this delivery was settled before.
 */
export type SettleOutcome = "accepted" | "settled" | "stale" | "already";

/** One envelope handed to a consumer. */
export interface Delivery<E extends Envelope = Envelope> {
  /** The envelope; read anew for each attempt, so no attempt sees what another changed. */
  readonly envelope: E;
  /** Where it came from. */
  readonly topic: string;
  /** Deliveries before this one as far as known; 0 on the first. A hint, never a verdict. */
  readonly attempt: number;
  /** Aborts when the delivery is lost (lease gone, partition revoked, broker closed). */
  readonly signal: AbortSignal;
  /** Whether it is lost; as `signal.aborted`, but nothing is made for asking. Absent where an adapter only has the signal. */
  readonly lost?: boolean;
  /** Settles for good. */
  ack(options?: AckOptions): Promise<SettleOutcome>;
  /** Holds it back and hands it out again, before anything later of its subject. */
  retry(options?: RetryOptions): Promise<SettleOutcome>;
  /** Settles for good, as given up. `reason` goes to the log. */
  drop(reason: string, options?: AckOptions): Promise<SettleOutcome>;
}

/** Options of an ack or drop. */
export interface AckOptions {
  /** Wait for the broker's confirmation, and answer `settled` or `stale`. Default false: answered at once by the ledger. */
  readonly confirm?: boolean;
}

/** Options of a retry. */
export interface RetryOptions {
  /** 0 to 60,000 ms, default 0. Longer waits belong to `ctx.schedule`. */
  readonly delayMs?: number;
}

/** Options of {@link BrokerAdapter.nack}. */
export interface NackOptions extends AckOptions, RetryOptions {
  /** true (default) = `retry`, false = `drop`. */
  readonly requeue?: boolean;
}

/** Options of {@link BrokerAdapter.subscribe}. */
export interface SubscribeOptions {
  /** The consumer group. Default: the broker's `group` option. Brokers with groups refuse to go without. */
  readonly group?: string;
  /** End after this many ms with nothing arriving; 0 = drain what is ready. Default: never. */
  readonly idleMs?: number;
  /** Ends the stream. */
  readonly signal?: AbortSignal;
  /** Most messages held unsettled here, 1 to 10,000. Default: the broker's. */
  readonly prefetch?: number;
}

/** Options of {@link BrokerAdapter.close}. */
export interface CloseOptions {
  /** How long to wait for settles that are on their way, 0 to 600,000 ms. Default 10,000. */
  readonly drainMs?: number;
}

/** What `close` came to. */
export interface DrainReport {
  /** Unsettled messages given back to the broker. */
  readonly released: number;
  /** Settles that the broker did not confirm; those messages come again. */
  readonly unconfirmed: number;
  /** Whether the worker had to be terminated. */
  readonly terminated: boolean;
}

/** What a broker can do. Data, so that tests, docs and callers can branch on it. */
export interface Capabilities {
  /** `subject`: order per subject through crash, take-over and retry · `none`: free competition. */
  readonly ordering: "subject" | "none";
  readonly groups: boolean;
  /** How far to trust the broker's delivery count. */
  readonly deliveryCount: "exact" | "hint" | "none";
  /** How long the broker itself drops duplicates at publish; 0 = not. */
  readonly dedupWindowMs: number;
  /** Whether `release` can delay at the broker. */
  readonly delayedRelease: boolean;
  readonly leaseExtension: boolean;
  /** Whether giving back leaves the delivery count alone. */
  readonly uncountedRelease: boolean;
  /** The largest envelope in bytes, ours or the broker's. */
  readonly maxBytes: number;
  /** Whether a new group reads what was published before it. */
  readonly replay: boolean;
  /** Whether leases go on while the host burns the CPU: true in a worker. */
  readonly survivesBlockedHost: boolean;
}

/** How things stand. */
export interface HealthReport {
  /** `idle` (not yet connected) · `healthy` · `unhealthy` · `closed`. */
  readonly status: "idle" | "healthy" | "unhealthy" | "closed";
  readonly isolation: "worker" | "inline";
  /** Since when, wall clock ms. */
  readonly since: number;
  /** Why it is unhealthy: error code and name, never a text of the client. */
  readonly error?: { readonly code: string; readonly name: string };
  readonly topics: readonly TopicHealth[];
  /** Named counters: `disconnects`, `settle-errors`, `undecodable`, `missing-payload`, `worker-restarts`, … */
  readonly counters: Readonly<Record<string, number>>;
}

/** One subscribed topic in {@link HealthReport}. */
export interface TopicHealth {
  readonly topic: string;
  readonly group: string;
  /** `standby` is healthy: another member owns the partitions. */
  readonly state: "starting" | "active" | "standby" | "stalled" | "failing";
  /** Unsettled here: waiting, held and handed out. */
  readonly unsettled: number;
  /** Messages behind as far as the broker tells. */
  readonly lag?: number;
}

/** A received message that is no envelope, on its way to the record. */
export interface UndecodableRecord {
  readonly topic: string;
  readonly group: string;
  readonly bytes: number;
  /** SHA-256 of the bytes, hex. */
  readonly sha256: string;
  readonly error: EdaError;
  /** Broker's count before this delivery. */
  readonly attempt: number;
  /** The exact bytes, only where `keepCorruptBodies` is on. */
  readonly body?: Uint8Array;
}

/** Where undecodable messages are recorded before they are dropped. Throwing or rejecting = not recorded: it is held and tried again. */
export interface UndecodableSink {
  recordUndecodable(record: UndecodableRecord): void | Promise<void>;
}

/** The contract. */
export interface BrokerAdapter<T extends Topics = AnyTopics> extends AsyncDisposable {
  /** The topics it was built with; carries the types. */
  readonly topics: T;
  /** The consumer group used where `subscribe` names none. */
  readonly group: string | undefined;
  /** `source` of envelopes published here that have none of their own. */
  readonly source?: string | undefined;
  /** Connects now and fails fast; else the first call does. */
  connect(): Promise<void>;
  /** Publishes one and resolves to the envelope sent. */
  publish<N extends TopicName<T>>(topic: N, message: InitOf<T, N> | Envelope): Promise<EnvelopeOf<T, N>>;
  /** Publishes many, in order. Throws {@link PublishBatchError} when any failed. */
  publishAll<N extends TopicName<T>>(
    topic: N,
    messages: readonly (InitOf<T, N> | Envelope)[],
  ): Promise<readonly EnvelopeOf<T, N>[]>;
  /** The deliveries of a topic. Several subscribers of one topic and group share it. */
  subscribe<N extends TopicName<T>>(topic: N, options?: SubscribeOptions): AsyncIterable<Delivery<EnvelopeOf<T, N>>>;
  /** As `delivery.ack`. */
  ack(delivery: Delivery, options?: AckOptions): Promise<SettleOutcome>;
  /** As `delivery.retry` or, with `requeue: false`, `delivery.drop`. */
  nack(delivery: Delivery, options?: NackOptions): Promise<SettleOutcome>;
  /** Whether the last broker call succeeded. */
  readonly healthy: boolean;
  health(): HealthReport;
  readonly capabilities: Capabilities;
  /** Installs where undecodable messages are recorded, unless the `deadLetters` option did. The dispatcher calls it. */
  recordUndecodableTo(sink: UndecodableSink): void;
  /** Gives back what is unsettled, stops everything. Idempotent. */
  close(options?: CloseOptions): Promise<DrainReport>;
}

export type { Envelope, EnvelopeInit };
