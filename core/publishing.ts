import type { Clock } from "./clock.ts";
import { toEnvelope } from "./codec.ts";
import type { Envelope, EnvelopeInit } from "./envelope.ts";
import { BrokerUnavailableError, InvalidOptionError, PublishBatchError } from "./errors.ts";
import { createIdSource } from "./ids.ts";
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
  #checking: Promise<unknown> | undefined;

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
      if (checking === undefined && this.#checking === undefined && client.isUp) return queue.publish(topic, envelope);
      return this.#checked(checking).then(() => queue.publish(topic, envelope));
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
    await this.#checked(checks.length === 0 ? undefined : Promise.all(checks).then(() => {}));
    const outcomes = await queue.publishAll(topic, envelopes);
    if (outcomes.some((outcome) => !outcome.ok)) throw new PublishBatchError(outcomes);
    return envelopes;
  }

  #envelope(topic: string, message: EnvelopeInit | Envelope): Envelope {
    const { clock, source, maxBytes } = this.#options;
    checkName("topic", topic);
    const defaults = { now: () => clock.now(), nextId: this.#nextId, ...(source === undefined ? {} : { source }) };
    return toEnvelope(message, defaults, maxBytes);
  }

  /** Publishes wait for schemas that answer late in the order they were called, so that order per subject stands. */
  async #checked(checking: Promise<void> | undefined): Promise<void> {
    const before = this.#checking;
    const mine = Promise.allSettled([before, checking]).then(() => {
      if (this.#checking === mine) this.#checking = undefined;
    });
    this.#checking = mine;
    await mine;
    await checking;
    const { client } = this.#options;
    const cause = client.downBy;
    if (cause !== undefined) {
      throw new BrokerUnavailableError("not sent: the worker died, a new one is being started", { cause });
    }
    await client.start();
  }
}

/** Names travel into keys and subjects of brokers: no control characters, not empty, at most 200 characters. */
export function checkName(what: string, name: string): void {
  // deno-lint-ignore no-control-regex
  if (typeof name !== "string" || name === "" || name.length > 200 || /[\x00-\x1f\x7f]/.test(name)) {
    throw new InvalidOptionError(`${what} must be a text of 1 to 200 characters without control characters`);
  }
}
