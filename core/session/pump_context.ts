import type { Clock } from "../clock.ts";
import type { Native, Transport } from "../transport.ts";
import type { Connection } from "./connection.ts";
import type { ToHost } from "./messages.ts";

/** One unsettled message held for the host. */
export interface Entry {
  readonly id: number;
  readonly native: Native;
  readonly partition: number;
  readonly deliveries: number;
  /** Monotonic ms; `Infinity` where the partition's lease is the message's. */
  leaseUntil: number;
  readonly leaseMs: number;
}

/**
 * What of a subscription outlives its pumps: the next numbers, since a settle that was on its way when one pump gave
 * everything back must find nothing at its successor; and whether a read ever succeeded.
 */
export interface PumpIds {
  delivery: number;
  undecodable: number;
  read: boolean;
}

/** What a pump needs of its session. */
export interface PumpContext {
  readonly transport: Transport;
  readonly connection: Connection;
  readonly clock: Clock;
  readonly maxBytes: number;
  readonly callTimeoutMs: number;
  readonly waitMs: number;
  readonly keepCorruptBodies: boolean;
  /** A moment of our clock on the host's clock, or a little before it; `undefined` = the host did not tell its own. */
  hostTime(at: number): number | undefined;
  post(message: ToHost): void;
}

/** What the parts of a pump need of it. */
export interface PumpSide {
  readonly sub: number;
  readonly topic: string;
  readonly group: string;
  /** Pulls again after the connection's backoff. */
  later(): void;
  /** All that is held. */
  held(): Iterable<Entry>;
  /** Whether it is still held. */
  holds(entry: Entry): boolean;
  /** Whether our hold on a message ran out. */
  expired(entry: Entry): boolean;
  /** These entries are no longer ours. */
  lose(entries: readonly Entry[], why: string): void;
}
