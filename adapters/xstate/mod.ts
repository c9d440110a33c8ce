/**
 * XState 5 machines as routes of the dispatcher: one persisted instance a subject, stored with the receipt and the events it
 * emits in one unit. Needs the package `xstate`.
 *
 * - Each event restores the instance, takes one event to the end of its macrostep, waits for the promises it invoked, and
 *   stores the new snapshot. Callbacks and observables live only that long; they start anew with the next event.
 * - What the machine `emit`s is published: see {@link fromEmitted}.
 * - `after` and other delays are durable timers.
 * - Entry actions do not run again on restore. Actions run again where an attempt is repeated, so effects belong into invoked
 *   promises with {@link invokeKey}, or into emitted events.
 * - Context, output and delayed events are stored as JSON.
 *
 * Types: declare what a machine emits in `setup({ types: { emitted: {} as … } })`, `topic` included where you name one.
 *
 * @example
 * ```ts
 * import { InboundDispatcher, MemoryBroker } from "@xsm/eda";
 * import { machine } from "@xsm/eda/xstate";
 * import { createMachine } from "xstate";
 *
 * const lamp = createMachine({
 *   id: "lamp",
 *   initial: "off",
 *   states: { off: { on: { "lamp.switched": "on" } }, on: { on: { "lamp.switched": "off" } } },
 * });
 * const broker = new MemoryBroker({ source: "/house" });
 * await broker.publish("lamps", { type: "lamp.switched", subject: "kitchen" });
 * const app = new InboundDispatcher({ broker, routes: { "lamp.*": machine(lamp) } });
 * const report = await app.runOnce(["lamps"]);
 * console.log(report.processed);
 * await broker.close();
 * ```
 *
 * @module
 */
import type { AnyStateMachine } from "xstate";
import { isPattern } from "../../core/dispatch/pattern.ts";
import type { Route } from "../../core/dispatch/route.ts";
import type { Envelope } from "../../core/envelope.ts";
import { InvalidOptionError } from "../../core/errors.ts";
import { checkOneOf, checkOptions, checkRange } from "../../core/options.ts";
import { asEvent, type MachineEvent } from "./events.ts";
import { MachineRoute } from "./machine_route.ts";
import type { Migrate } from "./stored.ts";

export { asEvent, byEventName, fromEmitted, type MachineEvent } from "./events.ts";
export { type ActorLike, invokeKey } from "./keys.ts";
export type { Migrate, StoredDelay, StoredInstance } from "./stored.ts";

/** The slice of an XState machine that is looked at; XState's own types fit. */
export interface MachineLike {
  readonly id: string;
  readonly version?: string | undefined;
  readonly config: object;
}

/** Options of {@link machine}. */
export interface MachineOptions {
  /** Makes the machine's event. Default {@link asEvent}: `{ type, data, envelope }` with the envelope's type as it is. */
  readonly toEvent?: (envelope: Envelope) => MachineEvent;
  /** Makes the input of a new instance from the event that starts it. Default: none. */
  readonly input?: (envelope: Envelope) => unknown;
  /** Types, or patterns of them, that may start an instance. Default: any may. */
  readonly starts?: readonly string[];
  /**
   * An event for an instance that is not there and that it may not start: `"retry"` (default) tries again while later events of
   * the subject go first, and gives it up as `no_instance` in the end; `"dead_letter"` gives it up at once; `"defer"`
   * sets it aside, which needs a store with a deferred list: the memory store has none.
   */
  readonly onMissing?: "retry" | "dead_letter" | "defer";
  /** An event for an instance that has reached its end: `"dead_letter"` (default, as `instance_done`) or `"ignore"`. */
  readonly onFinal?: "dead_letter" | "ignore";
  /** Whether an instance is removed once it has reached its end. Needs `starts`. Default false: late events are recognised. */
  readonly removeFinal?: boolean;
  /**
   * An event that the machine does not handle in its state, one whose transition has neither target nor action included:
   * `"process"` (default, counted), `"ignore"`, `"dead_letter"`, or `"defer"` (as above).
   */
  readonly unhandled?: "process" | "ignore" | "dead_letter" | "defer";
  /** Version that snapshots are marked with; change it with the machine's shape. Default: the machine's, else `""`. */
  readonly version?: string;
  /** Brings a snapshot of another machine or version into this one's form. Absent: such an event is given up. */
  readonly migrate?: Migrate;
  /** How long promises that an event invoked are waited for, 1 to 86,400,000 ms. Default 30,000; past it nothing is stored. */
  readonly settleMs?: number;
  /** Where emitted events go that name no topic. */
  readonly topic?: string;
}

const NAMES = [
  "input",
  "migrate",
  "onFinal",
  "onMissing",
  "removeFinal",
  "settleMs",
  "starts",
  "toEvent",
  "topic",
  "unhandled",
  "version",
];

/**
 * Makes a route of a machine.
 *
 * @throws InvalidOptionError naming the option.
 */
export function machine(m: MachineLike, options: MachineOptions = {}): Route {
  checkOptions("machine", options, NAMES);
  if (typeof m !== "object" || m === null || typeof m.config !== "object" || typeof m.id !== "string") {
    throw new InvalidOptionError(
      "machine takes a state machine of XState 5, made by createMachine or setup().createMachine",
    );
  }
  if (isPattern(m.id) || m.id === "(machine)") {
    throw new InvalidOptionError("the machine needs an id of its own: snapshots are stored under it");
  }
  if (options.removeFinal === true && options.starts === undefined) {
    throw new InvalidOptionError("removeFinal needs starts: else any late event would start a new instance");
  }
  for (const name of ["onMissing", "unhandled"] as const) {
    if (options[name] !== "defer") continue;
    throw new InvalidOptionError(`${name}: "defer" needs a store with a deferred list, and there is none yet`);
  }
  return new MachineRoute({
    machine: m as unknown as AnyStateMachine,
    version: options.version ?? m.version ?? "",
    toEvent: options.toEvent ?? asEvent,
    input: options.input,
    starts: options.starts,
    onMissing: checkOneOf("onMissing", options.onMissing ?? "retry", ["retry", "dead_letter"]),
    onFinal: checkOneOf("onFinal", options.onFinal ?? "dead_letter", ["dead_letter", "ignore"]),
    removeFinal: options.removeFinal ?? false,
    unhandled: checkOneOf("unhandled", options.unhandled ?? "process", ["process", "ignore", "dead_letter"]),
    migrate: options.migrate,
    settleMs: checkRange("settleMs", options.settleMs ?? 30_000, 1, 86_400_000),
    topic: options.topic,
  });
}
