/**
 * RabbitMQ as a {@link Transport}: the half that runs in the worker.
 *
 * Two connections: one for publishing, which the server may block while it is short of memory, and one for everything else,
 * with a channel for declarations and one for each consumer.
 *
 * @module
 */
import { type Clock, systemClock } from "../../core/clock.ts";
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
import { memberName, SILENT_EVENTS, subscriptionKey } from "../../core/transport_parts.ts";
import { rabbitMqCapabilities } from "./capabilities.ts";
import { type Connect, loadClient } from "./client.ts";
import { Connection, type ConnectionSettings } from "./connection.ts";
import type { RabbitNative } from "./consumer.ts";
import type { RabbitContext } from "./context.ts";
import type { RabbitMqTransportOptions } from "./options.ts";
import { Publisher } from "./publisher.ts";
import { type ResolvedOptions, resolveOptions } from "./resolve.ts";
import { Subscription } from "./subscription.ts";
import { Topology } from "./topology.ts";

/** Makes a transport; nothing connects before `open`. Rejects with `ClientMissingError` without amqplib. */
export async function createTransport(
  options: RabbitMqTransportOptions,
  clock: Clock = systemClock,
): Promise<Transport> {
  return new RabbitMqTransport(resolveOptions(options), clock, await loadClient());
}

class RabbitMqTransport implements Transport {
  readonly capabilities: Capabilities;
  /** Absent in ordered mode, where our hold on the partition is the lease. */
  readonly extend?: (topic: string, group: string, natives: readonly Native[]) => Promise<readonly NativeOutcome[]>;
  readonly #context: RabbitContext;
  readonly #publishing: Connection;
  readonly #publisher: Publisher;
  readonly #subscriptions = new Map<string, Subscription>();
  #events: TransportEvents = SILENT_EVENTS;
  #closing: Promise<void> | undefined;

  constructor(options: ResolvedOptions, clock: Clock, connect: Connect) {
    this.capabilities = rabbitMqCapabilities(options);
    const settings: ConnectionSettings = { clock, connect, options };
    const events = (): TransportEvents => this.#events;
    const main: Connection = new Connection(settings, { connected: () => topology.forget() });
    const topology: Topology = new Topology(
      main,
      options,
      (name, topic, details) => events().signal(name, topic, details),
    );
    this.#publishing = new Connection(settings, { blocked: () => events().signal("publishing-blocked", "") });
    this.#publisher = new Publisher(clock, this.#publishing, topology, options);
    if (!options.ordered) {
      this.extend = async (topic, group, natives) =>
        await this.#find(topic, group)?.extend(natives as readonly RabbitNative[]) ?? natives.map(() => "stale");
    }
    let epoch = 0;
    this.#context = {
      clock,
      options,
      main,
      topology,
      consumer: options.consumer ?? memberName(clock),
      nextEpoch: () => ++epoch,
      get events() {
        return events();
      },
    };
  }

  async open(events: TransportEvents): Promise<void> {
    this.#mustBeOpen();
    this.#events = events;
    await this.#context.main.ready();
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
    return await this.#find(topic, group)?.ack(natives as readonly RabbitNative[]) ?? natives.map(() => "stale");
  }

  async drop(topic: string, group: string, natives: readonly Native[]): Promise<readonly NativeOutcome[]> {
    return await this.#find(topic, group)?.drop(natives as readonly RabbitNative[]) ?? natives.map(() => "stale");
  }

  async release(
    topic: string,
    group: string,
    natives: readonly Native[],
    _delayMs: number,
  ): Promise<readonly NativeOutcome[]> {
    return await this.#find(topic, group)?.release(natives as readonly RabbitNative[]) ?? natives.map(() => "stale");
  }

  async unsubscribe(topic: string, group: string): Promise<void> {
    const key = subscriptionKey(topic, group);
    const subscription = this.#subscriptions.get(key);
    if (subscription === undefined) return;
    this.#subscriptions.delete(key);
    await subscription.stop();
  }

  reset(why: string): void {
    this.#context.main.reset(why);
    this.#publishing.reset(why);
  }

  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  async #close(): Promise<void> {
    const subscriptions = [...this.#subscriptions.values()];
    this.#subscriptions.clear();
    await Promise.all(subscriptions.map((subscription) => subscription.stop()));
    await Promise.all([this.#publishing.close(), this.#context.main.close()]);
  }

  #mustBeOpen(): void {
    if (this.#closing !== undefined) throw new ClosedError("the broker is closed; make a new one");
  }
}
