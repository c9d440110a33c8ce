/**
 * Publishers and consumers over one server: each a broker of its own, all in this process.
 *
 * @module
 */
import type { AsyncBroker } from "../../../core/broker.ts";
import { isEdaError } from "../../../core/errors.ts";
import { until } from "../../support/test.ts";
import { Record } from "./record.ts";

/** How the load is made. */
export interface LoadOptions {
  /** Makes the brokers, one each for every publisher and consumer. */
  readonly make: () => AsyncBroker;
  readonly topic: string;
  readonly publishers: number;
  readonly consumers: number;
  readonly subjects: number;
  /** Messages a second, of all publishers together. */
  readonly perSecond: number;
}

/** How often each publisher sends. */
const EVERY_MS = 50;
/** How long it waits before it tries what was not confirmed again. */
const AGAIN_MS = 100;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Runs until it is ended; publishing can be paused. */
export class Load {
  readonly record: Record = new Record();
  readonly #options: LoadOptions;
  readonly #brokers: AsyncBroker[] = [];
  readonly #consumers: Promise<void>[] = [];
  #publishers: Promise<void>[] = [];
  #publishing = false;
  #ending = false;

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  /** Starts the consumers, connects the publishers. */
  async start(): Promise<void> {
    const { make, publishers, consumers } = this.#options;
    for (let at = 0; at < publishers + consumers; at++) this.#brokers.push(make());
    for (const broker of this.#brokers.slice(publishers)) this.#consumers.push(this.#consume(broker));
    await Promise.all(this.#brokers.slice(0, publishers).map((broker) => broker.connect()));
  }

  /** Publishes until {@link rest}. */
  publish(): void {
    this.#publishing = true;
    this.#publishers = this.#brokers.slice(0, this.#options.publishers).map((broker, at) => this.#produce(broker, at));
  }

  /** Stops publishing; resolves when all that was begun is confirmed and was handed out. */
  async rest(timeoutMs: number): Promise<void> {
    this.#publishing = false;
    await Promise.all(this.#publishers);
    const whole = until(() => this.record.whole, { timeoutMs, everyMs: 20, what: "all messages to be handed out" });
    await whole.catch(() => {
      const missing = this.record.missing();
      this.record.violation(
        "sets",
        `${missing.length} confirmed and never handed out: ${missing.slice(0, 5).join(" ")}`,
      );
    });
  }

  /** Resolves with how long it took from now until a message was handed out that was published from now on. */
  async flows(timeoutMs: number): Promise<number> {
    const { record } = this;
    record.mark();
    const from = performance.now();
    await until(() => record.flows, { timeoutMs, everyMs: 2, what: "a new message to be handed out" });
    return performance.now() - from;
  }

  /** Closes every broker in order. */
  async end(): Promise<void> {
    this.#ending = true;
    this.#publishing = false;
    await Promise.all(this.#publishers);
    const reports = await Promise.all(this.#brokers.map((broker) => broker.close()));
    await Promise.all(this.#consumers);
    const unconfirmed = reports.reduce((sum, report) => sum + report.unconfirmed, 0);
    if (unconfirmed > 0) this.record.violation("close", `${unconfirmed} settles stayed unconfirmed`);
  }

  async #produce(broker: AsyncBroker, index: number): Promise<void> {
    const { publishers, subjects, perSecond } = this.#options;
    const own = Array.from({ length: Math.ceil(subjects / publishers) }, (_, at) => `p${index}-s${at}`);
    const batch = Math.max(1, Math.round(perSecond * EVERY_MS / 1_000 / publishers));
    while (this.#publishing) {
      const first = Math.floor(Math.random() * own.length);
      await Promise.all(
        Array.from(
          { length: Math.min(batch, own.length) },
          (_, at) => this.#send(broker, own[(first + at) % own.length]!),
        ),
      );
      await pause(EVERY_MS);
    }
  }

  /** Until it is confirmed: the same event again, as an outbox would. */
  async #send(broker: AsyncBroker, subject: string): Promise<void> {
    const { record } = this;
    const n = record.number(subject);
    const name = `${subject}:${n}`;
    for (let again = false;; again = true) {
      record.tried(name, again);
      try {
        await broker.publish(this.#options.topic, { type: "n", id: name, subject, data: n });
        return record.confirmed(name);
      } catch (error) {
        if (!isEdaError(error) || !error.retriable) record.violation("publish", `${name}: ${String(error)}`);
        if (this.#ending) return;
        await pause(AGAIN_MS);
      }
    }
  }

  async #consume(broker: AsyncBroker): Promise<void> {
    const { record } = this;
    try {
      for await (const delivery of broker.subscribe(this.#options.topic)) {
        record.handed(delivery.envelope.subject!, delivery.envelope.data as number);
        await pause(Math.random() * 2);
        void delivery.ack();
      }
    } catch (error) {
      record.violation("consume", `a subscription ended: ${String(error)}`);
    }
  }
}
