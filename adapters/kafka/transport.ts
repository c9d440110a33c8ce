/**
 * Kafka as a {@link Transport}: the half that runs in the worker.
 *
 * Clients of their own for questions, for publishing, and for each subscription, so that none waits for another.
 *
 * @module
 */
import { type Clock, pause, systemClock } from "../../core/clock.ts";
import type { Capabilities } from "../../core/contract.ts";
import { ClosedError } from "../../core/errors.ts";
import type {
  FetchRequest,
  Native,
  NativeOutcome,
  Outgoing,
  Raw,
  SendOutcome,
  Transport,
  TransportEvents,
} from "../../core/transport.ts";
import { SILENT_EVENTS, subscriptionKey } from "../../core/transport_parts.ts";
import { Admin } from "./admin.ts";
import { kafkaCapabilities } from "./capabilities.ts";
import { clientFactory, type KafkaModule, loadClient } from "./client.ts";
import type { KafkaContext } from "./context.ts";
import type { KafkaTransportOptions } from "./options.ts";
import type { KafkaNative } from "./owned_partition.ts";
import { Producers } from "./producer.ts";
import { Publisher } from "./publisher.ts";
import { type ResolvedOptions, resolveOptions } from "./resolve.ts";
import { Subscription } from "./subscription.ts";
import { TopicBook } from "./topic_book.ts";

/** How long closing may take, whatever the server does. */
const CLOSE_MS = 6_000;

/** Makes a transport; nothing connects before `open`. Rejects with `ClientMissingError` without kafkajs. */
export async function createTransport(options: KafkaTransportOptions, clock: Clock = systemClock): Promise<Transport> {
  const resolved = resolveOptions(options);
  return new KafkaTransport(resolved, clock, await loadClient());
}

class KafkaTransport implements Transport {
  readonly capabilities: Capabilities;
  readonly stopsAtFailure = true;
  readonly #clock: Clock;
  readonly #context: KafkaContext;
  readonly #admin: Admin;
  readonly #topicAdmin: Admin;
  readonly #producers: Producers;
  readonly #publisher: Publisher;
  readonly #subscriptions = new Map<string, Subscription>();
  #events: TransportEvents = SILENT_EVENTS;
  #epoch = 0;
  #closing: Promise<void> | undefined;

  constructor(options: ResolvedOptions, clock: Clock, client: KafkaModule) {
    this.capabilities = kafkaCapabilities(options.maxBytes);
    this.#clock = clock;
    const create = clientFactory(client, options);
    this.#admin = new Admin(create, options.commandTimeoutMs, true);
    this.#topicAdmin = new Admin(create, options.commandTimeoutMs, false);
    this.#producers = new Producers(create, options.publishTimeoutMs);
    const topics = new TopicBook(this.#topicAdmin, clock, options);
    this.#publisher = new Publisher(this.#producers, topics, clock, options.compression, options.publishTimeoutMs);
    const events = (): TransportEvents => this.#events;
    this.#context = {
      clock,
      options,
      admin: this.#admin,
      topics,
      create,
      protocol: client.AssignerProtocol,
      instance: Math.floor(clock.random() * 36 ** 10).toString(36),
      nextEpoch: () => ++this.#epoch,
      get events() {
        return events();
      },
    };
  }

  async open(events: TransportEvents): Promise<void> {
    this.#mustBeOpen();
    this.#events = events;
    await this.#topicAdmin.check();
  }

  async send(topic: string, messages: readonly Outgoing[]): Promise<readonly SendOutcome[]> {
    this.#mustBeOpen();
    return await this.#publisher.send(topic, messages);
  }

  async fetch(topic: string, request: FetchRequest): Promise<readonly Raw[]> {
    this.#mustBeOpen();
    const key = subscriptionKey(topic, request.group);
    let subscription = this.#subscriptions.get(key);
    if (subscription === undefined) {
      subscription = new Subscription(this.#context, topic, request.group);
      this.#subscriptions.set(key, subscription);
    }
    return await subscription.fetch(request);
  }

  #find(topic: string, group: string): Subscription | undefined {
    return this.#subscriptions.get(subscriptionKey(topic, group));
  }

  async ack(topic: string, group: string, natives: readonly Native[]): Promise<readonly NativeOutcome[]> {
    return await this.#find(topic, group)?.ack(natives as readonly KafkaNative[]) ?? natives.map(() => "stale");
  }

  drop(topic: string, group: string, natives: readonly Native[]): Promise<readonly NativeOutcome[]> {
    return this.ack(topic, group, natives);
  }

  release(topic: string, group: string, natives: readonly Native[]): Promise<readonly NativeOutcome[]> {
    const found = this.#find(topic, group)?.release(natives as readonly KafkaNative[]);
    return Promise.resolve(found ?? natives.map(() => "stale"));
  }

  async unsubscribe(topic: string, group: string): Promise<void> {
    const key = subscriptionKey(topic, group);
    const subscription = this.#subscriptions.get(key);
    if (subscription === undefined) return;
    this.#subscriptions.delete(key);
    await subscription.stop();
  }

  reset(_why: string): void {
    this.#admin.reset();
    this.#topicAdmin.reset();
    this.#producers.reset();
    for (const subscription of this.#subscriptions.values()) subscription.reset();
  }

  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  async #close(): Promise<void> {
    const late = new AbortController();
    const stopped = Promise.all([...this.#subscriptions.values()].map((subscription) => subscription.stop()));
    await Promise.race([stopped, pause(this.#clock, CLOSE_MS, late.signal)]);
    late.abort();
    this.#subscriptions.clear();
    this.#producers.close();
    this.#admin.close();
    this.#topicAdmin.close();
  }

  #mustBeOpen(): void {
    if (this.#closing !== undefined) throw new ClosedError("the broker is closed; make a new one");
  }
}
