/**
 * A machine as a route of the dispatcher.
 *
 * @module
 */
import type { AnyStateMachine } from "xstate";
import { matches } from "../../core/dispatch/pattern.ts";
import type { Route, RouteResult, RouteScope } from "../../core/dispatch/route.ts";
import type { Envelope } from "../../core/envelope.ts";
import { EventRejectedError } from "../../core/errors.ts";
import { fromEmitted, type MachineEvent } from "./events.ts";
import { Instance } from "./instance.ts";
import { type Migrate, readStored, type StoredDelay, type StoredInstance, writeStored } from "./stored.ts";

/** The type of the events in which the delays of machines come back. */
const TIMER_TYPE = "xsm.timer";

/** A machine with its options resolved. */
export interface MachineSettings {
  readonly machine: AnyStateMachine;
  readonly version: string;
  readonly toEvent: (envelope: Envelope) => MachineEvent;
  readonly input: ((envelope: Envelope) => unknown) | undefined;
  readonly starts: readonly string[] | undefined;
  readonly onMissing: "retry" | "dead_letter";
  readonly onFinal: "dead_letter" | "ignore";
  readonly removeFinal: boolean;
  readonly unhandled: "process" | "ignore" | "dead_letter";
  readonly migrate: Migrate | undefined;
  readonly settleMs: number;
  readonly topic: string | undefined;
}

/** One persisted instance of a machine a subject. */
export class MachineRoute implements Route {
  readonly kind: string = "machine";
  readonly #settings: MachineSettings;
  readonly #prefix: string;

  constructor(settings: MachineSettings) {
    this.#settings = settings;
    // Encoded, the id has no slash, so no two machines and subjects share a key.
    this.#prefix = `${encodeURIComponent(settings.machine.id)}/`;
  }

  /** `<machine id>/<subject>`. */
  snapshotKey(envelope: Envelope): string {
    if (envelope.subject === undefined || envelope.subject === "") {
      throw new EventRejectedError("invalid", "subject is missing; it names the machine's instance");
    }
    return this.#prefix + envelope.subject;
  }

  ownsTimer(owner: string): boolean {
    return owner.startsWith(this.#prefix);
  }

  handle(envelope: Envelope, scope: RouteScope): RouteResult | Promise<RouteResult> {
    const stored = this.#read(scope);
    if (scope.timer !== undefined) return this.#timer(envelope, scope, stored, scope.timer.id);
    if (stored === undefined) this.#mayStart(envelope);
    else if (stored.state.status !== "active") return this.#finished();
    const event = this.#settings.toEvent(envelope);
    return this.#run(envelope, scope, stored, (instance) => {
      if (instance.send(event)) return "processed";
      if (this.#settings.unhandled === "dead_letter") {
        throw new EventRejectedError("unhandled", "the machine does not handle this event in its state");
      }
      return this.#settings.unhandled === "ignore" ? "ignored" : "unhandled";
    });
  }

  #read(scope: RouteScope): StoredInstance | undefined {
    if (scope.snapshot === undefined) return undefined;
    const { machine, version, migrate } = this.#settings;
    return readStored(scope.snapshot, machine.id, version, migrate);
  }

  #timer(
    envelope: Envelope,
    scope: RouteScope,
    stored: StoredInstance | undefined,
    timer: string,
  ): RouteResult | Promise<RouteResult> {
    if (stored === undefined || stored.state.status !== "active") return "ignored";
    return this.#run(envelope, scope, stored, (instance) => instance.fire(timer) ? "processed" : "ignored");
  }

  #mayStart(envelope: Envelope): void {
    const { starts, onMissing } = this.#settings;
    if (starts === undefined || starts.some((pattern) => matches(pattern, envelope.type))) return;
    throw new EventRejectedError("no_instance", "no instance has this subject, and the type is none that starts one", {
      retry: onMissing === "retry",
    });
  }

  #finished(): RouteResult {
    if (this.#settings.onFinal === "ignore") return "ignored";
    throw new EventRejectedError("instance_done", "the instance of this subject has reached its end");
  }

  #run(
    envelope: Envelope,
    scope: RouteScope,
    stored: StoredInstance | undefined,
    step: (instance: Instance) => RouteResult,
  ): RouteResult | Promise<RouteResult> {
    const { machine, input, settleMs } = this.#settings;
    const subject = scope.key.slice(this.#prefix.length);
    const instance = new Instance({
      machine,
      id: subject,
      stored,
      input: stored === undefined ? input?.(envelope) : undefined,
      cause: envelope,
    }, scope);
    const end = (result: RouteResult): RouteResult => {
      // An ignored event leaves no trace; one that an instance did not handle changed nothing of it.
      const same = result === "ignored" || (result === "unhandled" && stored !== undefined);
      if (!same) this.#store(instance, scope, stored, subject);
      return result;
    };
    let late = false;
    try {
      const result = step(instance);
      if (!instance.pending) return end(result);
      late = true;
      return instance.settle(settleMs, scope).then(() => end(result)).finally(() => instance.stop());
    } finally {
      if (!late) instance.stop();
    }
  }

  #store(instance: Instance, scope: RouteScope, stored: StoredInstance | undefined, subject: string): void {
    const { machine, version, removeFinal, topic } = this.#settings;
    const delays = instance.delays;
    setTimers(scope, stored?.delays ?? [], delays);
    for (const emitted of instance.emitted) {
      const event = fromEmitted(emitted, topic, subject);
      scope.publish(event.topic, event.init);
    }
    if (instance.done && removeFinal) return scope.remove();
    scope.save(writeStored({ state: instance.persist(), delays }), machine.id, version);
  }
}

/** Brings the timer rows from what was to come before to what is to come now. */
function setTimers(scope: RouteScope, before: readonly StoredDelay[], now: readonly StoredDelay[]): void {
  const old = new Map(before.map((delay) => [delay.timer, delay.dueAt]));
  for (const { timer, dueAt } of now) {
    if (old.get(timer) !== dueAt || timer === scope.timer?.id) scope.setTimer(timer, dueAt, TIMER_TYPE);
    old.delete(timer);
  }
  for (const timer of old.keys()) if (timer !== scope.timer?.id) scope.deleteTimer(timer);
}
