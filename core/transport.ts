/**
 * What the author of an adapter writes: the native operations of one broker and nothing else. A {@link Transport} is driven
 * by a session (`core/session/`), which adds pumping, credit, leases, deadlines, retry and health. It runs in the worker.
 *
 * @module
 */
import type { Capabilities } from "./contract.ts";

/** The opaque handle a transport needs to settle one message. Never leaves the session. */
export type Native = unknown;

/** One message as fetched. */
export interface Raw {
  /** The structured CloudEvents text or bytes; `null` = the broker no longer has the body (settled once, one signal). */
  readonly body: Uint8Array | string | null;
  readonly native: Native;
  /** 0-based. */
  readonly partition: number;
  /** In which the partition was owned when the broker was asked; absent where nobody owns partitions. */
  readonly epoch?: number;
  /** Deliveries the broker made before this one; 0 when it does not know. */
  readonly deliveries: number;
  /** For the session's own window per message, milliseconds from when the fetch was sent; absent = the partition's lease, or none. */
  readonly leaseMs?: number;
}

/** One message to send. */
export interface Outgoing {
  /** The structured CloudEvents text, exactly as it must stand on the wire. */
  readonly body: string;
  /** Partition key; absent = none. */
  readonly subject?: string;
  /** Counts a replay of a dead letter; brokers with a dedup window must mix it into their dedup id. */
  readonly replay?: number;
}

/** `undefined` = confirmed; else the reason, one of our publish errors. */
export type SendOutcome = undefined | Error;

/** Broker's answer to one settle or extend: it took effect, or the message was no longer ours. */
export type NativeOutcome = "settled" | "stale";

/** What a transport tells its session. May be called at any time between `open` and the end of `close`. */
export interface TransportEvents {
  /** We own this partition in this epoch until `leaseUntil` (monotonic ms, `Infinity` = until revoked). Again at each renewal. */
  owned(topic: string, group: string, partition: number, epoch: number, leaseUntil: number): void;
  /** Ownership ended: what was fetched in it is lost, its settles are stale. */
  revoked(topic: string, group: string, partition: number, why: string): void;
  /** These messages are no longer ours. */
  lost(topic: string, group: string, natives: readonly Native[], why: string): void;
  /** `active` = consuming, `standby` = healthy and waiting for a partition. */
  topic(topic: string, group: string, state: "active" | "standby"): void;
  /** Messages behind, as far as the broker tells. */
  lag(topic: string, group: string, count: number): void;
  /**
   * A fact worth a line in the log and a counter in health, e.g. `missing-payload`. Names, never values. After
   * `foreign-consumer` (another kind of client reads in our group) the capabilities say that there is no order.
   */
  signal(name: string, topic: string, details?: Readonly<Record<string, string | number | boolean>>): void;
}

/** What one fetch asks for. */
export interface FetchRequest {
  readonly group: string;
  /** At most this many messages, at least 1. */
  readonly max: number;
  /**
   * Most messages the session holds unsettled of this topic, `prefetch`. A transport that owns several partitions gives each
   * an equal share of it, and lets one that holds its share unsettled wait, so that it never keeps the others from flowing.
   */
  readonly window: number;
  /** How long to wait for the first one; 0 = answer at once with what is ready. */
  readonly waitMs: number;
  /** Ends the wait early (subscription ended, closing). What was already read is still returned. */
  readonly signal: AbortSignal;
}

/** The native operations of one broker. All calls may reject with one of our errors; the session decides what follows. */
export interface Transport {
  readonly capabilities: Capabilities;
  /**
   * Whether one `send` ends a subject at its first failure: later messages of that subject in the same call are not written,
   * and their outcome is an error. Where it is absent or false, because the broker accepts what follows a refused message, the
   * session hands over a `publishAll` with one message a subject at a time, the next one when the last one is confirmed.
   */
  readonly stopsAtFailure?: boolean;
  /**
   * Connects whatever is not connected, or rejects: unreachable, refused credentials, server too old. The session calls it
   * first, and again with backoff after any call that failed as unavailable and after {@link reset}; so it is idempotent.
   */
  open(events: TransportEvents): Promise<void>;
  /** Sends in order; one outcome a message. Rejecting as a whole means: the outcome of all is that error. */
  send(topic: string, messages: readonly Outgoing[]): Promise<readonly SendOutcome[]>;
  /** Reads the next messages in order. Up to two calls a topic may be in flight; the second never waits. */
  fetch(topic: string, request: FetchRequest): Promise<readonly Raw[]>;
  /** Settles for good, one outcome a native. */
  ack(topic: string, group: string, natives: readonly Native[]): Promise<readonly NativeOutcome[]>;
  /** As `ack`, for a message given up; a broker with its own dead-letter queue may see the difference. */
  drop(topic: string, group: string, natives: readonly Native[]): Promise<readonly NativeOutcome[]>;
  /**
   * Gives back for redelivery after `delayMs`, uncounted where the broker can. A native whose hold ran out, of a message that
   * was fetched a second time since, is `stale`: the later hold stays.
   */
  release(topic: string, group: string, natives: readonly Native[], delayMs: number): Promise<readonly NativeOutcome[]>;
  /** Keeps for another window from now; `stale` = lost. Absent where ownership of the partition is the lease. */
  extend?(topic: string, group: string, natives: readonly Native[]): Promise<readonly NativeOutcome[]>;
  /** Ends consumption and surrenders what it owns there; natives of it are lost to us and free for others at once. */
  unsubscribe(topic: string, group: string): Promise<void>;
  /** Destroys the connections, because a call did not settle in time; the next call connects again. Never rejects. */
  reset(why: string): void;
  /** Gives back what is held, then closes every socket and timer. Idempotent. */
  close(): Promise<void>;
}
