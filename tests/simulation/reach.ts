/**
 * What both ways of reading share.
 *
 * @module
 */
import type { Clock, Timer } from "../../core/clock.ts";
import type { FetchRequest, NativeOutcome, Raw } from "../../core/transport.ts";
import type { Line } from "./network.ts";
import type { Entry, Given, Server } from "./server.ts";

/** Handle of one message: what it is, and in which epoch it was given (0 = unordered). */
export interface SimNative {
  readonly entry: Entry;
  readonly epoch: number;
}

/** What both ways of reading need. */
export interface Reach {
  readonly name: string;
  readonly server: Server;
  readonly line: Line;
  readonly clock: Clock;
  readonly leaseMs: number;
  readonly commandMs: number;
  readonly partitions: number;
  /** The server's answer to one command, which has a deadline of its own. */
  ask<T>(op: () => T): Promise<T>;
}

/** One topic and group that is read. */
export interface Reading {
  fetch(request: FetchRequest): Promise<readonly Raw[]>;
  settle(kind: "ack" | "drop", natives: readonly SimNative[]): Promise<readonly NativeOutcome[]>;
  release(natives: readonly SimNative[]): Promise<readonly NativeOutcome[]>;
  extend?(natives: readonly SimNative[]): Promise<readonly NativeOutcome[]>;
  stop(): Promise<void>;
}

/** The partition of a subject. */
export function partitionOf(subject: string | undefined, partitions: number): number {
  let hash = 7;
  for (const char of subject ?? "") hash = (hash * 31 + char.codePointAt(0)!) % 9_973;
  return hash % partitions;
}

/** A message as the session gets it. */
export function toRaw({ entry, deliveries }: Given, epoch: number, leaseMs?: number): Raw {
  const native: SimNative = { entry, epoch };
  const window = leaseMs === undefined ? {} : { leaseMs };
  return { body: entry.body, native, partition: entry.partition, deliveries, ...window };
}

/** Lets fetches wait until there may be something to read. */
export class Bell {
  #waiting: (() => void)[] = [];

  ring(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  wait(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        timer.cancel();
        signal.removeEventListener("abort", done);
        resolve();
      };
      const timer: Timer = clock.timer(ms, done);
      this.#waiting.push(done);
      signal.addEventListener("abort", done, { once: true });
      if (signal.aborted) done();
    });
  }
}
