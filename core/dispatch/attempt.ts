/**
 * One attempt at one job: runs the handler inside a unit of the store, within its time.
 *
 * @module
 */
import type { Envelope } from "../envelope.ts";
import { BrokerUnavailableError, HandlerTimeoutError, StoreFencedError } from "../errors.ts";
import { fingerprint } from "../digest.ts";
import { isThenable } from "../guard.ts";
import type { DeadLetterReason, Fence, Unit, UnitKey } from "../store/contract.ts";
import { makeDeadLetter } from "./dead_letter.ts";
import type { Limited } from "./deadlines.ts";
import type { Job } from "./job.ts";
import type { Invoke } from "./middleware.ts";
import type { Outcome } from "./outcomes.ts";
import type { RouteResult } from "./route.ts";
import { readAnew, type Services } from "./services.ts";
import { type AttemptView, UnitContext } from "./unit_context.ts";

/** What an event type resolves to. */
export interface Target {
  /** The handler or route, inside its middleware. */
  readonly invoke: Invoke<UnitContext, unknown>;
  /** A plain handler: what it returns means nothing. */
  readonly plain: boolean;
  /** The snapshot key, for routes with state. */
  readonly snapshotKey?: (envelope: Envelope) => string;
  /** Whether timers of an owner are this route's. */
  readonly ownsTimer?: (owner: string) => boolean;
}

/** Settles the promise that the store waits for. */
interface Waiting {
  resolve(outcome: Outcome | Promise<Outcome>): void;
  reject(error: unknown): void;
}

/** One attempt. It is the fence of its unit: once it is over, nothing of it is stored. */
export class Attempt implements Fence, Limited, AttemptView {
  readonly job: Job;
  /** Set once the handler, not the store, failed: a box, since anything can be thrown. */
  failure: { readonly error: unknown } | undefined;
  /** The machine did not handle the event. */
  unhandled = false;
  readonly snapshotKey: string | undefined;
  deadline = 0;
  earlier: Limited | undefined;
  later: Limited | undefined;
  readonly #services: Services;
  readonly #target: Target | undefined;
  /** Told when the handler turned out to take its time. */
  readonly #onAsync: () => void;
  #envelope: Envelope;
  /** When it began, wall clock ms. */
  readonly #now: number;
  #runs = 0;
  #over = false;
  #waiting: Waiting | undefined;
  #abort: AbortController | undefined;

  /** @param target `undefined` = no route takes the type; the event is given up. */
  constructor(services: Services, job: Job, envelope: Envelope, target: Target | undefined, onAsync: () => void) {
    this.#services = services;
    this.job = job;
    this.#envelope = envelope;
    this.#target = target;
    this.#onAsync = onAsync;
    this.#now = services.clock.now();
    this.snapshotKey = job.origin.timer?.owner ?? target?.snapshotKey?.(envelope);
  }

  /** Whether nothing may be stored any more. */
  get aborted(): boolean {
    return this.#over || this.job.lost;
  }

  /** What the unit reads and guards. */
  unitKey(): UnitKey {
    const { timer } = this.job.origin;
    const snapshot = this.snapshotKey;
    if (timer !== undefined) return { timer: { owner: timer.owner, id: timer.id }, ...(snapshot && { snapshot }) };
    const receiptsFrom = this.#now - this.#services.inboxRetentionMs;
    if (snapshot === undefined) return { receipt: this.job.key, receiptsFrom };
    return { receipt: this.job.key, receiptsFrom, snapshot };
  }

  /** The work of the unit; the store may call it again after a conflict. */
  readonly work = (unit: Unit<unknown>): Outcome | Promise<Outcome> => {
    if (this.aborted) throw new StoreFencedError("the attempt was over before its unit began");
    this.failure = undefined;
    this.unhandled = false;
    const { receipt } = unit;
    if (receipt !== undefined) {
      if (receipt.fingerprint === fingerprint(this.job.envelope)) return "duplicate";
      return this.#bury(unit, "idempotency_mismatch", "The same source and id came before with other content");
    }
    // It fired elsewhere, or its machine left the state that set it.
    if (this.job.origin.timer !== undefined && unit.timer === undefined) return "ignored";
    if (this.#target === undefined) return this.#bury(unit, "unknown_event", "No route takes this type");
    const { timer } = this.job.origin;
    // First, so that its machine may set the same timer anew.
    if (timer !== undefined) unit.deleteTimer(timer.owner, timer.id);
    if (this.#runs++ === 0) return this.#run(unit, this.#target, this.#envelope);
    const fresh = readAnew(this.#services, this.job.topic, this.job.envelope);
    const target = this.#target;
    return fresh instanceof Promise
      ? fresh.then((envelope) => this.#run(unit, target, envelope))
      : this.#run(unit, target, fresh);
  };

  #run(unit: Unit<unknown>, target: Target, envelope: Envelope): Outcome | Promise<Outcome> {
    const context = new UnitContext(this.#services, this, unit, envelope);
    let result: unknown;
    try {
      this.job.touched = true;
      result = target.invoke(envelope, context);
      if (!isThenable(result)) return this.#finish(unit, context, result);
    } catch (error) {
      void context.close();
      throw this.#fail(error);
    }
    return this.#wait(unit, context, result);
  }

  /** Settles with the handler, or as soon as this attempt is over. */
  #wait(unit: Unit<unknown>, context: UnitContext, result: PromiseLike<unknown>): Promise<Outcome> {
    this.#onAsync();
    this.#services.deadlines.add(this);
    return new Promise<Outcome>((resolve, reject) => {
      this.#waiting = { resolve, reject };
      Promise.resolve(result).then((value) => {
        if (this.#end()) resolve(this.#finishLate(unit, context, value));
      }, (error) => {
        void context.close();
        if (this.#end()) reject(this.#fail(error));
      });
    });
  }

  /** Whether the handler was still waited for. */
  #end(): boolean {
    this.#services.deadlines.remove(this);
    const waited = this.#waiting !== undefined;
    this.#waiting = undefined;
    return waited;
  }

  async #finishLate(unit: Unit<unknown>, context: UnitContext, result: unknown): Promise<Outcome> {
    try {
      return await this.#finish(unit, context, result);
    } catch (error) {
      throw this.#fail(error);
    }
  }

  #finish(unit: Unit<unknown>, context: UnitContext, result: unknown): Outcome | Promise<Outcome> {
    const checks = context.close();
    if (checks !== undefined) {
      return checks.then(() => this.#seal(unit, context, result), (error) => {
        throw this.#fail(error);
      });
    }
    return this.#seal(unit, context, result);
  }

  /** Writes what proves that the event was handled. */
  #seal(unit: Unit<unknown>, context: UnitContext, result: unknown): Outcome {
    const { job } = this;
    const { timer } = job.origin;
    if (timer === undefined) {
      const { consumer, source, id } = job.key;
      unit.addReceipt({
        consumer,
        source,
        id,
        fingerprint: fingerprint(job.envelope),
        at: this.#now,
      });
    }
    // On the first delivery to anybody there cannot be a count.
    if (job.failures > 0 || job.attempt > 0) unit.clearFailures(job.key);
    const told = this.#target?.plain ? undefined : result as RouteResult;
    this.unhandled = told === "unhandled";
    return context.ignored || told === "ignored" ? "ignored" : "processed";
  }

  #bury(unit: Unit<unknown>, reason: DeadLetterReason, why: string): Outcome {
    const { job } = this;
    const letter = makeDeadLetter(this.#services, job, reason, new Error(why), undefined);
    unit.addDeadLetter(letter);
    // On a mismatch the receipt stands for the other event.
    if (unit.receipt === undefined) {
      const at = this.#services.clock.now();
      unit.addReceipt({ ...job.key, fingerprint: fingerprint(job.envelope), at, deadLetter: letter.id });
    }
    return `dead_lettered:${reason}`;
  }

  #fail(error: unknown): unknown {
    this.failure = { error };
    return error;
  }

  /** The handler's signal: over time, lost, or given back. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      const abort = this.#abort = new AbortController();
      const { delivery } = this.job.origin;
      if (this.#over) abort.abort();
      else if (delivery !== undefined) {
        const { signal } = delivery;
        if (signal.aborted) abort.abort(signal.reason);
        // The delivery's signal lives no longer than the delivery, so the listener needs no removing.
        else signal.addEventListener("abort", () => abort.abort(signal.reason), { once: true });
      }
    }
    return this.#abort.signal;
  }

  /** For {@link Deadlines}: the handler ran too long. Its promise is not waited for any more. */
  expire(): void {
    const ms = this.#services.handlerTimeoutMs.toLocaleString("en");
    const error = new HandlerTimeoutError(`the handler ran longer than handlerTimeoutMs (${ms} ms)`);
    this.#stop(this.#fail(error), error);
  }

  /** The run ends and does not wait for the handler. */
  abandon(): void {
    this.#services.deadlines.remove(this);
    const error = new BrokerUnavailableError("the dispatcher stopped before the handler had ended");
    this.#stop(error, error);
  }

  #stop(error: unknown, reason: Error): void {
    this.#over = true;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    this.#abort?.abort(reason);
    waiting?.reject(error);
  }
}
