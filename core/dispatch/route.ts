/**
 * What the dispatcher needs to know of a route that is more than a handler, such as a machine.
 *
 * @module
 */
import type { Clock } from "../clock.ts";
import type { Envelope, EnvelopeInit } from "../envelope.ts";
import type { Logger } from "../logger.ts";
import type { Snapshot, TimerRow } from "../store/contract.ts";

/** What a route made of an event: `unhandled` counts as processed, with a counter of its own. */
export type RouteResult = "processed" | "ignored" | "unhandled";

/** A route with state: one persisted snapshot a key. The dispatcher reads, guards and stores it in the unit of the event. */
export interface Route {
  /** What kind of route it is, for messages. */
  readonly kind: string;
  /**
   * The key of the snapshot that an event concerns, unique over all routes.
   *
   * @throws EventRejectedError where the event has none.
   */
  snapshotKey(envelope: Envelope): string;
  /** Whether timers of this owner are this route's own. */
  ownsTimer(owner: string): boolean;
  /** Handles one event in its unit. Throwing stores nothing and counts as a failure. */
  handle(envelope: Envelope, scope: RouteScope): RouteResult | Promise<RouteResult>;
}

/** What a route works with: the unit of one event. */
export interface RouteScope {
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly attempt: number;
  readonly topic: string;
  /** The consumer that receipts and timers are kept for. */
  readonly consumer: string;
  /** The key that {@link Route.snapshotKey} gave, or the owner of the timer. */
  readonly key: string;
  /** What is stored under the key; undefined = nothing. */
  readonly snapshot: Snapshot | undefined;
  /** The timer that fired, where the event is one. */
  readonly timer: TimerRow | undefined;
  /** Stores the snapshot with the unit. */
  save(value: string, machine: string, machineVersion: string): void;
  /** Removes the snapshot with the unit. */
  remove(): void;
  /** Writes an event into the unit's outbox, with this event as its cause. */
  publish(topic: string, init: EnvelopeInit): Envelope;
  /** Sets a timer that comes back to the route, as an event of `type`. */
  setTimer(id: string, dueAt: number, type: string): void;
  deleteTimer(id: string): void;
}

/** Whether a value in `routes` is a route, not a handler. */
export function isRoute(value: unknown): value is Route {
  return typeof value === "object" && value !== null && typeof (value as Partial<Route>).handle === "function" &&
    typeof (value as Partial<Route>).snapshotKey === "function";
}
