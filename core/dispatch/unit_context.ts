/**
 * The context of one run of a handler: what it asks for goes into the unit.
 *
 * @module
 */
import type { Clock } from "../clock.ts";
import { textOf } from "../codec.ts";
import type { Envelope, EnvelopeInit } from "../envelope.ts";
import { ClosedError, InvalidOptionError } from "../errors.ts";
import type { Logger } from "../logger.ts";
import { checkName } from "../options.ts";
import { outgoingSchema, validateOutgoing } from "../schema.ts";
import type { Snapshot, TimerRow, Unit } from "../store/contract.ts";
import type { Context } from "./context.ts";
import type { Job } from "./job.ts";
import type { RouteScope } from "./route.ts";
import { buildEvent, type Services } from "./services.ts";

/** What a context needs of its attempt. */
export interface AttemptView {
  readonly job: Job;
  /** Made on first access. */
  readonly signal: AbortSignal;
  readonly snapshotKey: string | undefined;
  /** Whether nothing may be stored any more. */
  readonly aborted: boolean;
}

/** Context of a handler and scope of a route, over one unit. */
export class UnitContext implements Context, RouteScope {
  readonly #services: Services;
  readonly #attempt: AttemptView;
  readonly #unit: Unit<unknown>;
  readonly #envelope: Envelope;
  #open = true;
  #checks: Promise<void>[] | undefined;
  ignored = false;

  constructor(services: Services, attempt: AttemptView, unit: Unit<unknown>, envelope: Envelope) {
    this.#services = services;
    this.#attempt = attempt;
    this.#unit = unit;
    this.#envelope = envelope;
  }

  get signal(): AbortSignal {
    return this.#attempt.signal;
  }

  get attempt(): number {
    return this.#attempt.job.attempt;
  }

  get topic(): string {
    return this.#attempt.job.topic;
  }

  get tx(): unknown {
    return this.#unit.tx;
  }

  get log(): Logger {
    return this.#services.log;
  }

  get clock(): Clock {
    return this.#services.clock;
  }

  get consumer(): string {
    return this.#services.consumer;
  }

  get key(): string {
    return this.#attempt.snapshotKey ?? "";
  }

  get snapshot(): Snapshot | undefined {
    return this.#unit.snapshot;
  }

  get timer(): TimerRow | undefined {
    return this.#unit.timer;
  }

  publish(topic: string, init: EnvelopeInit): Envelope {
    this.#mustBeOpen("ctx.publish");
    const event = this.#event(topic, init);
    this.#unit.addOutbox(topic, textOf(event), event.subject);
    return event;
  }

  schedule(at: Date | number, topic: string, init: EnvelopeInit): Envelope {
    this.#mustBeOpen("ctx.schedule");
    const dueAt = typeof at === "number" ? at : at.getTime();
    if (!Number.isFinite(dueAt)) {
      throw new InvalidOptionError("at must be a valid Date or a finite number of milliseconds since 1970");
    }
    const event = this.#event(topic, init);
    this.#unit.setTimer({ id: event.id, owner: this.#services.consumer, dueAt, topic, envelope: textOf(event) });
    this.#services.timerSet(dueAt);
    return event;
  }

  ignore(): void {
    this.#mustBeOpen("ctx.ignore");
    this.ignored = true;
  }

  save(value: string, machine: string, machineVersion: string): void {
    this.#unit.saveSnapshot(value, machine, machineVersion);
  }

  remove(): void {
    this.#unit.deleteSnapshot();
  }

  setTimer(id: string, dueAt: number, type: string): void {
    const { subject } = this.#envelope;
    const source = `xsm/${encodeURIComponent(this.#services.consumer)}`;
    const init = { type, source, ...(subject === undefined ? {} : { subject }) };
    const envelope = textOf(buildEvent(this.#services, init, this.#envelope));
    this.#unit.setTimer({ id, owner: this.key, dueAt, envelope });
    this.#services.timerSet(dueAt);
  }

  deleteTimer(id: string): void {
    this.#unit.deleteTimer(this.key, id);
  }

  /** The handler returned. What schemas still check is answered as a promise; it must resolve before the unit is stored. */
  close(): Promise<unknown> | undefined {
    this.#open = false;
    return this.#checks === undefined ? undefined : Promise.all(this.#checks);
  }

  #event(topic: string, init: EnvelopeInit): Envelope {
    checkName("topic", topic);
    const event = buildEvent(this.#services, init, this.#envelope);
    const { topics } = this.#services;
    // Data is only read where there is something to check it.
    const check = outgoingSchema(topics, topic, event.type) === undefined
      ? undefined
      : validateOutgoing(topics, topic, event.type, event.data);
    if (check instanceof Promise) {
      // Looked at by close; until then a refusal is not an unhandled rejection.
      check.catch(() => {});
      (this.#checks ??= []).push(check);
    }
    return event;
  }

  #mustBeOpen(what: string): void {
    if (this.#open && !this.#attempt.aborted) return;
    throw new ClosedError(
      `${what} was called after its unit had ended; await what the handler starts, and mind ctx.signal`,
    );
  }
}
