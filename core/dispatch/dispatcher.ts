/**
 * The inbound dispatcher: takes envelopes from a broker, runs handlers and machines, and settles.
 *
 * @module
 */
import { decodeEnvelope, toEnvelope } from "../codec.ts";
import type { UndecodableRecord } from "../contract.ts";
import type { Envelope, EnvelopeInit } from "../envelope.ts";
import { InvalidOptionError } from "../errors.ts";
import { checkOptions, checkRange } from "../options.ts";
import { validateIncoming } from "../schema.ts";
import type { DeadLetter } from "../store/contract.ts";
import type { AnyTopics, TopicName, Topics } from "../topics.ts";
import { type AnyOptions, Parts } from "./assemble.ts";
import type { Handler } from "./context.ts";
import { corruptLetter } from "./dead_letter.ts";
import type { DispatcherOptions } from "./dispatcher_options.ts";
import type { JobOrigin } from "./job.ts";
import { type DispatcherHealth, reportHealth } from "./dispatcher_health.ts";
import type { Outcome, RunReport } from "./outcomes.ts";
import { Run } from "./run.ts";

export type { DispatcherHealth } from "./dispatcher_health.ts";

/** Consumes topics and drives handlers and machines. See {@link Outcome} for what becomes of an envelope. */
export class InboundDispatcher<T extends Topics = AnyTopics, R = Record<string, Handler>, Tx = undefined> {
  readonly #parts: Parts;
  #running = false;
  /** Direct calls that have not ended. */
  #calls = 0;

  /**
   * Checks everything and does no I/O.
   *
   * @throws InvalidOptionError naming the option, also where two patterns of one length can match the same type.
   */
  constructor(options: DispatcherOptions<T, R, Tx>) {
    this.#parts = new Parts(options as unknown as AnyOptions);
  }

  /**
   * Consumes until `signal` aborts (see `shutdownSignal`) or the broker is closed; then finishes what it has taken, for up to
   * `drainMs`, gives back the rest and reports. Meanwhile it relays the store's outbox and fires its timers. May be called
   * again afterwards.
   *
   * @throws InvalidOptionError where it runs already; what a subscription failed with, where trying again cannot help.
   */
  async run(topics: readonly TopicName<T>[], options: { readonly signal?: AbortSignal } = {}): Promise<RunReport> {
    checkOptions("run", options, ["signal"]);
    return await this.#run(topics, (run) => run.untilStopped(topics, options.signal));
  }

  /**
   * Consumes what is ready, until nothing has arrived for `idleMs` (default 0) and everything taken is settled; then fires due
   * timers and publishes the outbox, once. What those lead to is for the next call.
   */
  async runOnce(
    topics: readonly TopicName<T>[],
    options: { readonly idleMs?: number; readonly signal?: AbortSignal } = {},
  ): Promise<RunReport> {
    checkOptions("runOnce", options, ["idleMs", "signal"]);
    const idleMs = checkRange("idleMs", options.idleMs ?? 0, 0, Number.MAX_SAFE_INTEGER);
    return await this.#run(topics, (run) => run.once(topics, idleMs, options.signal));
  }

  /**
   * Makes one attempt at one envelope that no broker delivered, in the lane of its topic and subject, and answers the outcome:
   * `retry` and `unavailable` are the caller's to act on. What the handler published stays in the outbox until a run.
   *
   * @throws EnvelopeInvalidError, EnvelopeCorruptError (`schema`) where it is no envelope of its topic. What handlers throw is an outcome.
   */
  async handle(
    envelope: Envelope | EnvelopeInit,
    options: { readonly topic?: TopicName<T> } = {},
  ): Promise<Outcome> {
    checkOptions("handle", options, ["topic"]);
    const { defaults, maxBytes, topics } = this.#parts.services;
    const topic = options.topic ?? "";
    const whole = await validateIncoming(topics, topic, toEnvelope(envelope, defaults, maxBytes));
    return await this.#call(topic, whole, {});
  }

  /**
   * Handles the intact envelope of a dead letter again: same id, trace and time, one attempt, its failures forgotten. Marks the
   * letter as resolved where that succeeded; else the letter stays, brought up to date.
   *
   * @throws InvalidOptionError where there is no such letter, it has no body, or it belongs to another consumer.
   */
  async replay(id: string): Promise<Outcome> {
    const { store, clock, topics, consumer } = this.#parts.services;
    const letter = await store.deadLetters.get(id);
    if (letter !== undefined && letter.consumer !== consumer) {
      throw new InvalidOptionError(
        "This dead letter belongs to another consumer; replay it with the dispatcher of that name",
      );
    }
    const { envelope: text, topic } = await store.deadLetters.beginReplay(id);
    const whole = decodeEnvelope(text, { maxBytes: Number.MAX_SAFE_INTEGER });
    const envelope = await validateIncoming(topics, topic, whole);
    const outcome = await this.#call(topic, envelope, { replays: letter as DeadLetter });
    if (outcome === "processed" || outcome === "duplicate" || outcome === "ignored") {
      await store.deadLetters.resolve(id, clock.now());
    }
    return outcome;
  }

  /** How it stands, with its broker's report. `unhealthy` also while the store or the relay's downstream is down. */
  health(): DispatcherHealth {
    return reportHealth(this.#parts, this.#running);
  }

  async #run(topics: readonly string[], work: (run: Run) => Promise<void>): Promise<RunReport> {
    if (this.#running) throw new InvalidOptionError("This dispatcher runs already; give all topics to one run");
    if (topics.length === 0) throw new InvalidOptionError("topics must name at least one topic");
    this.#running = true;
    const { tally, broker, settings } = this.#parts;
    const before = tally.report();
    broker.recordUndecodableTo({ recordUndecodable: (record) => this.#recordUndecodable(record) });
    this.#warnOfSuspects();
    try {
      await work(new Run({ ...this.#runParts(), drainMs: settings.drainMs }));
      await this.#parts.watch.look();
    } finally {
      this.#running = false;
      this.#rest();
    }
    return tally.report(before);
  }

  #runParts(): Omit<ConstructorParameters<typeof Run>[0], "drainMs"> {
    const parts = this.#parts;
    const { broker, services, lanes, engine, budget, timers, relay, watch } = parts;
    return {
      broker,
      services,
      lanes,
      engine,
      budget,
      timers,
      relay,
      watch,
      offer: (delivery) => lanes.offer(parts.job(delivery.topic, delivery.envelope, { delivery })),
    };
  }

  /** Called after an await: a handler that calls must not find itself in the middle of starting its own lane. */
  async #call(topic: string, envelope: Envelope, origin: JobOrigin): Promise<Outcome> {
    this.#calls++;
    try {
      return await new Promise<Outcome>((resolve) => {
        this.#parts.lanes.offer(this.#parts.job(topic, envelope, { ...origin, once: resolve }));
      });
    } finally {
      this.#calls--;
      this.#rest();
    }
  }

  /** Ends the timers that would keep the process alive. */
  #rest(): void {
    if (this.#running || this.#calls > 0) return;
    this.#parts.services.deadlines.rest();
    this.#parts.services.circuit.reset();
  }

  async #recordUndecodable(record: UndecodableRecord): Promise<void> {
    const { services, tally } = this.#parts;
    await services.store.deadLetters.put(corruptLetter(services, record));
    tally.deadLetter("corrupt");
  }

  /** An event that ends the process is only found out where somebody counts across processes. */
  #warnOfSuspects(): void {
    const { services, broker } = this.#parts;
    if (services.store.durable || broker.capabilities.deliveryCount === "exact") return;
    services.log.warn(
      "neither store nor broker counts deliveries across restarts: an event that ends the process is tried for ever",
      { store: "not durable", deliveryCount: broker.capabilities.deliveryCount },
    );
  }
}
