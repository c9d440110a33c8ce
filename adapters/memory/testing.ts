/**
 * A memory broker with hooks for tests of services: what was published, what was settled, a publish that fails on demand, and
 * traffic put in by hand.
 *
 * @example
 * ```ts
 * import { TestBroker } from "@xsm/eda/testing";
 *
 * const broker = new TestBroker({ source: "/test" });
 * broker.on("orders", (envelope) => broker.publish("mails", { type: "mail.requested", subject: envelope.subject! }));
 * await broker.deliver("orders", { type: "order.placed", subject: "o-1" });
 * await broker.drain();
 * console.log(broker.publishedOn("mails").length);
 * await broker.close();
 * ```
 *
 * @module
 */
import type { Delivery, SettleOutcome, SubscribeOptions } from "../../core/contract.ts";
import type { InboundDispatcher } from "../../core/dispatch/dispatcher.ts";
import type { RunReport } from "../../core/dispatch/outcomes.ts";
import type { Envelope, EnvelopeInit } from "../../core/envelope.ts";
import {
  BrokerUnavailableError,
  EnvelopeInvalidError,
  InvalidOptionError,
  PublishBatchError,
} from "../../core/errors.ts";
import type { AnyTopics, EnvelopeOf, InitOf, TopicName, Topics } from "../../core/topics.ts";
import { MemoryBroker, type MemoryBrokerOptions } from "./mod.ts";

/** One envelope and where it went. */
export interface Published {
  readonly topic: string;
  readonly envelope: Envelope;
}

/** A handler of {@link TestBroker.on}: returning acks, throwing drops and ends the drain with the error. */
export type TestHandler = (envelope: Envelope, delivery: Delivery) => unknown;

/** See the module. */
export class TestBroker<T extends Topics = AnyTopics> extends MemoryBroker<T> {
  readonly #published: Published[] = [];
  readonly #acked: Published[] = [];
  readonly #nacked: Published[] = [];
  readonly #failures: Error[] = [];
  readonly #handlers = new Map<string, TestHandler>();
  readonly #settled = new WeakSet<Delivery>();

  constructor(options: MemoryBrokerOptions<T> = {}) {
    super({ logger: false, ...options });
  }

  /** Everything published through this broker, in order; what {@link deliver} put in is not. */
  get published(): readonly Published[] {
    return this.#published;
  }

  /** The same of one topic. */
  publishedOn(topic: string): readonly Envelope[] {
    return this.#published.filter((one) => one.topic === topic).map((one) => one.envelope);
  }

  /** What was acked through {@link drain} or `broker.ack`. */
  get acked(): readonly Published[] {
    return this.#acked;
  }

  /** What was dropped or held back through {@link drain} or `broker.nack`. */
  get nacked(): readonly Published[] {
    return this.#nacked;
  }

  /** Messages of a topic nobody has settled, for a group (default: this broker's). */
  pending(topic: string, group: string = this.group ?? ""): number {
    return this.hub.unsettled(topic, group);
  }

  /**
   * The next `times` publishes fail with `error` (default: `BrokerUnavailableError`), whatever their topic. A message that is no
   * envelope fails as such first and uses none up.
   *
   * @throws InvalidOptionError unless `error` is an Error and `times` an integer of at least 1.
   */
  failNextPublish(error: Error = new BrokerUnavailableError("failed on purpose"), times: number = 1): void {
    if (!(error instanceof Error)) throw new InvalidOptionError("error must be an Error");
    if (!Number.isInteger(times) || times < 1) throw new InvalidOptionError("times must be an integer of at least 1");
    for (let n = 0; n < times; n++) this.#failures.push(error);
  }

  override async publish<N extends TopicName<T>>(
    topic: N,
    message: InitOf<T, N> | Envelope,
  ): Promise<EnvelopeOf<T, N>> {
    mustBeMessage(message);
    const failure = this.#failures.shift();
    if (failure !== undefined) throw failure;
    const envelope = await super.publish(topic, message);
    this.#published.push({ topic, envelope: envelope as Envelope });
    return envelope;
  }

  override async publishAll<N extends TopicName<T>>(
    topic: N,
    messages: readonly (InitOf<T, N> | Envelope)[],
  ): Promise<readonly EnvelopeOf<T, N>[]> {
    const sent: EnvelopeOf<T, N>[] = [];
    for (const message of messages) {
      try {
        sent.push(await this.publish(topic, message));
      } catch (error) {
        throw new PublishBatchError(
          messages.map((_, at) => {
            const id = (sent[at] as Envelope | undefined)?.id;
            return id === undefined ? { ok: false, id: "", error: error as never } : { ok: true, id };
          }),
          { cause: error },
        );
      }
    }
    return sent;
  }

  /** Puts traffic in without recording it as published. */
  async deliver<N extends TopicName<T>>(topic: N, message: InitOf<T, N> | Envelope): Promise<EnvelopeOf<T, N>> {
    return await super.publish(topic, message);
  }

  override ack(delivery: Delivery): Promise<SettleOutcome> {
    this.#record(this.#acked, delivery);
    return super.ack(delivery);
  }

  override nack(delivery: Delivery, options: Parameters<MemoryBroker["nack"]>[1] = {}): Promise<SettleOutcome> {
    this.#record(this.#nacked, delivery);
    return super.nack(delivery, options);
  }

  #record(list: Published[], delivery: Delivery): void {
    if (this.#settled.has(delivery)) return;
    this.#settled.add(delivery);
    list.push({ topic: delivery.topic, envelope: delivery.envelope });
  }

  /** Sets the handler of a topic for {@link drain}. */
  on(topic: TopicName<T>, handler: TestHandler): void {
    this.#handlers.set(topic, handler);
  }

  /**
   * Runs the handlers until their topics are empty, one envelope a topic and pass. Exactly `limit` envelopes are fine; one
   * more is an error, before it is handled.
   *
   * @throws InvalidOptionError for a limit below 1, and when more than `limit` arrived; what a handler threw.
   */
  async drain(topic?: TopicName<T>, limit: number = 100_000): Promise<number> {
    if (!Number.isInteger(limit) || limit < 1) throw new InvalidOptionError("limit must be an integer of at least 1");
    let handled = 0;
    for (let progress = true; progress;) {
      progress = false;
      for (const [name, handler] of this.#handlers) {
        if (topic !== undefined && name !== topic) continue;
        const delivery = await this.next(name as TopicName<T>);
        if (delivery === undefined) continue;
        if (handled === limit) {
          await delivery.retry();
          throw new InvalidOptionError(`drain reached its limit of ${limit} envelopes; do handlers feed each other?`);
        }
        handled++;
        progress = true;
        await this.#handle(handler, delivery);
      }
    }
    return handled;
  }

  async #handle(handler: TestHandler, delivery: Delivery): Promise<void> {
    try {
      await handler(delivery.envelope, delivery);
    } catch (error) {
      await this.nack(delivery, { requeue: false });
      throw error;
    }
    await this.ack(delivery);
  }

  /** The next ready delivery of a topic, or undefined. */
  async next<N extends TopicName<T>>(topic: N, options: SubscribeOptions = {}): Promise<Delivery | undefined> {
    for await (const delivery of this.subscribe(topic, { idleMs: 0, ...options })) return delivery as Delivery;
    return undefined;
  }

  /** Forgets the records and pending failures; messages and handlers stay. */
  clear(): void {
    this.#published.length =
      this.#acked.length =
      this.#nacked.length =
      this.#failures.length =
        0;
  }
}

function mustBeMessage(message: unknown): void {
  if (typeof message === "object" && message !== null) return;
  throw new EnvelopeInvalidError("the message must be an envelope or an object to make one of");
}

/** Puts one message on a topic and runs a dispatcher until all that is ready is settled; answers what came of it. */
export async function runOne<T extends Topics, R, Tx>(
  app: InboundDispatcher<T, R, Tx>,
  broker: TestBroker<T>,
  topic: TopicName<T>,
  message: EnvelopeInit | Envelope,
): Promise<RunReport> {
  await broker.deliver(topic, message as never);
  return await app.runOnce([topic]);
}
