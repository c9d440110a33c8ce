/**
 * How a dispatcher stands.
 *
 * @module
 */
import type { CircuitState } from "../circuit.ts";
import type { HealthReport } from "../contract.ts";
import type { Parts } from "./assemble.ts";
import type { RunReport } from "./outcomes.ts";

/** The broker's report, and what the dispatcher adds. */
export interface DispatcherHealth extends HealthReport {
  readonly dispatcher: {
    readonly running: boolean;
    /** Subjects with work. */
    readonly lanes: number;
    /** Handlers that run, at most `maxInFlight`. */
    readonly inFlight: number;
    /** Envelopes that wait for their turn. */
    readonly waiting: number;
    /** How long the oldest of them has been here, ms; 0 = none waits. */
    readonly oldestWaitingMs: number;
    /** Of the store; `open` = it was down several times in a row. */
    readonly store: CircuitState;
    /** Of the relay's downstream; absent with `relay: false`. */
    readonly relay?: "closed" | "open";
    /** Outbox rows not yet sent, when last looked at (every 10 s of a run); absent before. */
    readonly outboxPending?: number;
    /** Counts since the dispatcher was made. */
    readonly counts: RunReport;
  };
}

/** Puts the report together. */
export function reportHealth(parts: Parts, running: boolean): DispatcherHealth {
  const { broker, lanes, services, relay, tally, watch } = parts;
  const own = broker.health();
  const { lanes: count, waiting, oldest } = lanes.stats();
  const store = services.circuit.state;
  const down = store !== "closed" ? "store-unavailable" : relay?.state === "open" ? "broker-unavailable" : undefined;
  const worse = down !== undefined && (own.status === "healthy" || own.status === "idle");
  return {
    ...own,
    ...(worse ? { status: "unhealthy", error: { code: down, name: "InboundDispatcher" } } : {}),
    dispatcher: {
      running,
      lanes: count,
      inFlight: lanes.running,
      waiting,
      oldestWaitingMs: oldest === undefined ? 0 : services.clock.monotonic() - oldest,
      store,
      ...(relay === undefined ? {} : { relay: relay.state }),
      ...(watch.pending === undefined ? {} : { outboxPending: watch.pending }),
      counts: tally.report(),
    },
  };
}
