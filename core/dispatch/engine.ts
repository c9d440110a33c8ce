/**
 * Runs jobs: an attempt, then what follows from it. The only place where outcomes are decided and deliveries settled.
 *
 * @module
 */
import type { Delivery, SettleOutcome } from "../contract.ts";
import type { Envelope } from "../envelope.ts";
import { isEdaError } from "../errors.ts";
import { errorName, guard } from "../guard.ts";
import { Attempt, type Target } from "./attempt.ts";
import { bury, deliveredTooOften, isFinal, judge } from "./failures.ts";
import type { Job, Verdict } from "./job.ts";
import type { Lane } from "./lane.ts";
import type { Lanes } from "./lanes.ts";
import type { Outcome, OutcomeReport, Tally } from "./outcomes.ts";
import type { RetryPolicy } from "./retry_policy.ts";
import { readAnew, type Services } from "./services.ts";

/** Settings of an {@link Engine}. */
export interface EngineOptions {
  readonly services: Services;
  readonly tally: Tally;
  readonly policy: RetryPolicy;
  readonly maxAttempts: number;
  readonly onUnknown: "dead_letter" | "ignore";
  readonly onOutcome: ((report: OutcomeReport) => void) | undefined;
  /** The route of a type. */
  resolve(type: string): Target | undefined;
  /** The route that set the timers of an owner. */
  timerTarget(owner: string): Target | undefined;
  /** Whether the broker's count is the only witness of events that end the process, and can be believed. */
  trustsDeliveries(): boolean;
}

/** Deliveries without an outcome after which an event is given up, where only the broker counts. */
const MOST_DELIVERIES = 20;

/** Decides outcomes. */
export class Engine {
  readonly #options: EngineOptions;
  readonly #services: Services;
  readonly #idle: (() => void)[] = [];
  #lanes: Lanes | undefined;
  #settling = 0;
  /** A promise that a broker returned and that resolved to `accepted`; brokers that return one for all need no waiting. */
  #accepted: Promise<SettleOutcome> | undefined;

  constructor(options: EngineOptions) {
    this.#options = options;
    this.#services = options.services;
  }

  /** The lanes that call {@link start}. */
  attach(lanes: Lanes): void {
    this.#lanes = lanes;
  }

  /** Makes one attempt at a job, or goes on with what the last one led to. */
  start(lane: Lane, job: Job): void {
    if (job.lost) return this.#endUntold(lane, job, "lost");
    if (job.verdict !== undefined) return void this.#conclude(lane, job, job.verdict);
    if (job.attempt >= MOST_DELIVERIES && job.origin.delivery !== undefined && this.#options.trustsDeliveries()) {
      job.verdict = deliveredTooOften(job.attempt);
      return void this.#conclude(lane, job, job.verdict);
    }
    const { timer } = job.origin;
    const target = timer === undefined
      ? this.#options.resolve(job.envelope.type)
      : this.#options.timerTarget(timer.owner);
    if (target === undefined && (timer !== undefined || this.#options.onUnknown === "ignore")) {
      return this.#endUntold(lane, job, "ignored");
    }
    if (!job.touched) return this.#try(lane, job, job.envelope, target);
    let fresh: Envelope | Promise<Envelope>;
    try {
      fresh = readAnew(this.#services, job.topic, job.envelope);
    } catch (error) {
      return this.#failed(lane, job, undefined, error);
    }
    if (!(fresh instanceof Promise)) return this.#try(lane, job, fresh, target);
    fresh.then(
      (envelope) => this.#try(lane, job, envelope, target),
      (error) => this.#failed(lane, job, undefined, error),
    );
  }

  #try(lane: Lane, job: Job, envelope: Envelope, target: Target | undefined): void {
    if (job.ended) return;
    const { store, circuit } = this.#services;
    let attempt: Attempt | undefined;
    let result: Outcome | Promise<Outcome>;
    try {
      attempt = new Attempt(this.#services, job, envelope, target, () => circuit.inconclusive());
      const key = attempt.unitKey();
      result = store.transactNow === undefined
        ? store.transact(key, attempt.work, attempt)
        : store.transactNow(key, attempt.work, attempt);
    } catch (error) {
      return this.#failed(lane, job, attempt, error);
    }
    if (typeof result === "string") return this.#stored(lane, job, attempt, result);
    job.running = attempt;
    const ran = attempt;
    result.then(
      (outcome) => this.#stored(lane, job, ran, outcome),
      (error) => this.#failed(lane, job, ran, error),
    );
  }

  #stored(lane: Lane, job: Job, attempt: Attempt, outcome: Outcome): void {
    this.#services.circuit.succeeded();
    if (attempt.unhandled && !job.ended) this.#options.tally.unhandled++;
    this.#end(lane, job, outcome, undefined);
  }

  #failed(lane: Lane, job: Job, attempt: Attempt | undefined, thrown: unknown): void {
    if (job.ended) return;
    const { circuit } = this.#services;
    job.running = undefined;
    const byHandler = attempt === undefined || attempt.failure !== undefined;
    const error = attempt?.failure === undefined ? thrown : attempt.failure.error;
    if (job.lost) return this.#endUntold(lane, job, "lost");
    if (!byHandler && isEdaError(error)) {
      if (error.code === "store-conflict") {
        circuit.succeeded();
        return this.#setback(lane, job, "retry", error, false);
      }
      if (error.retriable) {
        circuit.failed();
        return this.#setback(lane, job, "unavailable", error, true);
      }
    }
    circuit.inconclusive();
    const verdict = judge(error);
    if (verdict === "transient") return this.#setback(lane, job, "unavailable", error, false);
    job.verdict = verdict;
    void this.#conclude(lane, job, verdict);
  }

  /** Stores what a failure means: its count, or the dead letter. Until that is stored the job goes no further. */
  async #conclude(lane: Lane, job: Job, verdict: Verdict): Promise<void> {
    const { circuit } = this.#services;
    try {
      if (await isFinal(this.#services, job, verdict, this.#options.maxAttempts)) {
        const outcome = await bury(this.#services, job, verdict);
        circuit.succeeded();
        return this.#end(lane, job, outcome, verdict.error);
      }
      circuit.succeeded();
    } catch (error) {
      if (job.ended) return;
      circuit.failed();
      return this.#setback(lane, job, "unavailable", error, true);
    }
    if (job.ended) return;
    job.verdict = undefined;
    job.setbacks = 0;
    if (job.origin.once !== undefined) return this.#end(lane, job, "retry", verdict.error);
    this.#tell(job, "retry", verdict.error);
    job.attempt++;
    const delay = this.#options.policy.delay(verdict.count?.failures ?? 1);
    if (verdict.missing) this.#lanes?.setAside(lane, job, delay);
    else this.#lanes?.wait(lane, delay, false);
  }

  /** Nothing is held against the event: its lane waits, and it is tried again. */
  #setback(lane: Lane, job: Job, outcome: "retry" | "unavailable", error: unknown, forStore: boolean): void {
    if (job.origin.once !== undefined) return this.#end(lane, job, outcome, error);
    this.#tell(job, outcome, error);
    this.#lanes?.wait(lane, this.#options.policy.delay(++job.setbacks), forStore);
  }

  /** Ends a job without having asked the store anything. */
  #endUntold(lane: Lane, job: Job, outcome: Outcome): void {
    this.#services.circuit.inconclusive();
    this.#end(lane, job, outcome, undefined);
  }

  #end(lane: Lane, job: Job, outcome: Outcome, error: unknown): void {
    if (job.ended) return;
    job.ended = true;
    job.running = undefined;
    const { delivery, once } = job.origin;
    if (delivery !== undefined && outcome !== "lost") this.#settle(delivery, delivery.ack());
    if (outcome.startsWith("dead_lettered:")) this.#warn(job, outcome);
    this.#tell(job, outcome, error);
    once?.(outcome, error);
    job.origin.ended?.();
    this.#lanes?.done(lane, outcome === "processed");
  }

  /** Ends a job that its lane no longer holds. `released` is given back to the broker. */
  drop(job: Job, outcome: "lost" | "released"): void {
    if (job.ended) return;
    job.ended = true;
    job.running?.abandon();
    job.running = undefined;
    const { delivery, once } = job.origin;
    if (delivery !== undefined && outcome === "released") this.#settle(delivery, delivery.retry());
    this.#tell(job, outcome, undefined);
    once?.(outcome, undefined);
    job.origin.ended?.();
  }

  /** Resolves when no settle is on its way. */
  settled(): Promise<void> {
    if (this.#settling === 0) return Promise.resolve();
    return new Promise((resolve) => void this.#idle.push(resolve));
  }

  #settle(delivery: Delivery, settled: Promise<SettleOutcome>): void {
    if (settled === this.#accepted) return;
    this.#settling++;
    settled.then((outcome) => {
      if (outcome === "accepted") this.#accepted = settled;
      else if (outcome === "stale") this.#options.tally.staleSettles++;
      this.#settleEnded();
    }, (error) => {
      this.#options.tally.staleSettles++;
      this.#services.log.warn("a delivery could not be settled; it comes again", {
        topic: delivery.topic,
        error: errorName(error),
      });
      this.#settleEnded();
    });
  }

  #settleEnded(): void {
    if (--this.#settling === 0) { for (const listener of this.#idle.splice(0)) listener(); }
  }

  #warn(job: Job, outcome: Outcome): void {
    const { type } = job.envelope;
    this.#services.log.warn("an event was given up; it is in the dead letters", { topic: job.topic, type, outcome });
  }

  #tell(job: Job, outcome: Outcome, error: unknown): void {
    const { tally } = this.#options;
    // Timers are no envelopes that somebody sent; one that came to nothing is not even a timer.
    if (job.origin.timer === undefined || (outcome !== "processed" && outcome !== "ignored")) tally.add(outcome);
    else if (outcome === "processed") tally.timers++;
    const { onOutcome } = this.#options;
    if (onOutcome === undefined) return;
    const { envelope, topic, attempt } = job;
    guard(
      this.#services.log,
      "onOutcome",
      () => onOutcome({ outcome, envelope, topic, attempt, ...(error === undefined ? {} : { error }) }),
    );
  }
}
