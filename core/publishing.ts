import type { Clock } from "./clock.ts";
import { toEnvelope } from "./codec.ts";
import type { Envelope, EnvelopeInit } from "./envelope.ts";
import { BrokerUnavailableError, PublishBatchError } from "./errors.ts";
import { createIdSource } from "./ids.ts";
import { checkName } from "./options.ts";
import type { PublishQueue } from "./publish_queue.ts";
import type { SchemaGate } from "./schema.ts";
import type { SessionClient } from "./session_client.ts";

/** What publishing needs. */
export interface PublishingOptions {
  readonly clock: Clock;
  readonly client: SessionClient;
  readonly queue: PublishQueue;
  readonly gate: SchemaGate | undefined;
  readonly source: string | undefined;
  readonly maxBytes: number;
}

/** From what a caller gives to the queue: envelope, schema, and order where a schema answers late. */
export class Publishing {
  readonly #options: PublishingOptions;
  readonly #nextId: () => string;
  /** Settles when all that came before was handed to the queue; undefined = it was. */
  #before: Promise<void> | undefined;

  constructor(options: PublishingOptions) {
    this.#options = options;
    this.#nextId = createIdSource(options.clock);
  }

  /** Publishes one. Never throws synchronously. */
  publish(topic: string, message: EnvelopeInit | Envelope): Promise<Envelope> {
    const { gate, client, queue } = this.#options;
    try {
      const envelope = this.#envelope(topic, message);
      const checking = gate?.outgoing(topic, envelope);
      if (checking === undefined && this.#before === undefined && client.isUp) return queue.publish(topic, envelope);
      return this.#inOrder(checking, () => queue.publish(topic, envelope));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Publishes many, in order; throws {@link PublishBatchError} when any failed. All are checked before any is sent. */
  async publishAll(topic: string, messages: readonly (EnvelopeInit | Envelope)[]): Promise<readonly Envelope[]> {
    const { gate, queue } = this.#options;
    if (messages.length === 0) return [];
    const envelopes = messages.map((message) => this.#envelope(topic, message));
    const checks = envelopes.map((envelope) => gate?.outgoing(topic, envelope)).filter((check) => check !== undefined);
    const checking = checks.length === 0 ? undefined : Promise.all(checks).then(() => {});
    const outcomes = await this.#inOrder(checking, () => queue.publishAll(topic, envelopes));
    if (outcomes.some((outcome) => !outcome.ok)) throw new PublishBatchError(outcomes);
    return envelopes;
  }

  #envelope(topic: string, message: EnvelopeInit | Envelope): Envelope {
    const { clock, source, maxBytes } = this.#options;
    checkName("topic", topic);
    const defaults = { now: () => clock.now(), nextId: this.#nextId, ...(source === undefined ? {} : { source }) };
    return toEnvelope(message, defaults, maxBytes);
  }

  /** What waits, for its schema or for the session to start, goes to the queue in the order in which it was called. */
  #inOrder<R>(checking: Promise<void> | undefined, send: () => Promise<R>): Promise<R> {
    const { client } = this.#options;
    const before = this.#before;
    const start = this.#start();
    const turn = (async () => {
      await before;
      await checking;
      await start;
      // The session may have ended while a schema was asked: what the queue took then would wait for ever.
      while (!client.isUp) await this.#start();
      return { sent: send() };
    })();
    const handed = turn.then(() => {}, () => {}).then(() => {
      if (this.#before === handed) this.#before = undefined;
    });
    this.#before = handed;
    return turn.then(({ sent }) => sent);
  }

  /** Those who wait share one attempt, and fail with it. */
  #start(): Promise<void> {
    const { client } = this.#options;
    const cause = client.downBy;
    const start = cause === undefined
      ? client.start()
      : Promise.reject(new BrokerUnavailableError("not sent: the worker died, a new one is being started", { cause }));
    start.catch(() => {});
    return start;
  }
}
