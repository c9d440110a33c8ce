/**
 * Delays of a machine (`after`, delayed `raise` and `sendTo`) as durable timers. XState schedules through a clock; the one
 * given to it here never fires by itself.
 *
 * @module
 */
import type { Clock } from "../../core/clock.ts";
import { type ActorLike, pathOf } from "./keys.ts";
import type { StoredDelay } from "./stored.ts";

/** The slice of XState's scheduled events that is read. */
interface Scheduled {
  readonly id: string;
  readonly event: { readonly type: string };
  readonly delay: number;
  readonly source: ActorLike;
  readonly target: ActorLike;
}

/** The slice of XState's actor system that is used. */
export interface SystemLike {
  readonly scheduler: {
    schedule(source: unknown, target: unknown, event: unknown, delay: number, id: string | undefined): void;
  };
  getSnapshot(): { readonly _scheduledEvents: Readonly<Record<string, unknown>> };
}

/** An actor from which others are found by their ids. */
export interface TreeActor extends ActorLike {
  getSnapshot(): unknown;
}

interface Armed {
  readonly fire: () => void;
  readonly dueAt: number;
}

/** The clock of one instance during one event. */
export class DelayClock {
  readonly #clock: Clock;
  #system: SystemLike | undefined;
  /** Scheduled events by XState's own object, which is new for each schedule. */
  readonly #armed = new Map<unknown, Armed>();
  /** While a stored delay is put back: its moment. */
  #restoring: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** For XState. */
  readonly setTimeout = (fire: () => void, ms: number): unknown => {
    const scheduled = this.#entries().find((entry) => !this.#armed.has(entry));
    this.#armed.set(scheduled, { fire, dueAt: this.#restoring ?? this.#clock.now() + ms });
    return scheduled;
  };

  /** For XState; it forgets the event by itself. */
  readonly clearTimeout = (scheduled: unknown): void => {
    this.#armed.delete(scheduled);
  };

  /** Must come before the actor starts. */
  attach(system: SystemLike): void {
    this.#system = system;
  }

  /** Puts stored delays back, so that the machine can cancel them; those whose actors are gone are left out. */
  restore(root: TreeActor, delays: readonly StoredDelay[]): void {
    for (const { source, target, event, dueAt, id } of delays) {
      const from = find(root, source);
      const to = find(root, target);
      if (from === undefined || to === undefined) continue;
      this.#restoring = dueAt;
      this.#system?.scheduler.schedule(from, to, event, Math.max(0, dueAt - this.#clock.now()), id);
      this.#restoring = undefined;
    }
  }

  /** Lets a stored delay end; false = it is not there any more. */
  fire(timer: string): boolean {
    for (const entry of this.#entries()) {
      if (timerId(entry) !== timer) continue;
      const armed = this.#armed.get(entry);
      this.#armed.delete(entry);
      armed?.fire();
      return armed !== undefined;
    }
    return false;
  }

  /** The delays that are still to come. */
  pending(): readonly StoredDelay[] {
    return this.#entries().map((entry) => ({
      timer: timerId(entry),
      source: pathOf(entry.source),
      target: pathOf(entry.target),
      id: entry.id,
      event: entry.event,
      dueAt: this.#armed.get(entry)?.dueAt ?? this.#clock.now() + entry.delay,
    }));
  }

  #entries(): readonly Scheduled[] {
    return Object.values(this.#system?.getSnapshot()._scheduledEvents ?? {}) as Scheduled[];
  }
}

function timerId(entry: Scheduled): string {
  return [...pathOf(entry.source), entry.id].map(encodeURIComponent).join("/");
}

function find(root: TreeActor, path: readonly string[]): TreeActor | undefined {
  let at: TreeActor | undefined = root;
  for (const id of path) at = childrenOf(at)[id];
  return at;
}

/** Child actors by id. */
export function childrenOf(actor: TreeActor | undefined): Readonly<Record<string, TreeActor>> {
  const snapshot = actor?.getSnapshot() as { readonly children?: Record<string, TreeActor> } | undefined;
  return snapshot?.children ?? {};
}
