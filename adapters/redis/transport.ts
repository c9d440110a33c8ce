/**
 * Redis Streams as a {@link Transport}: the half that runs in the worker.
 *
 * Three kinds of connection: one for everything but these; one for publishing, so that large bodies do not hold up renewals
 * and settles; and one a subscription for reads that block.
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
import { memberName, randomPart, SILENT_EVENTS, subscriptionKey } from "../../core/transport_parts.ts";
import { clientFactory, loadClient } from "./client.ts";
import { redisCapabilities } from "./capabilities.ts";
import { Connection, type ConnectionSettings } from "./connection.ts";
import type { RedisContext, RedisNative } from "./context.ts";
import { isReply, refusal } from "./errors.ts";
import type { RedisTransportOptions } from "./options.ts";
import { type ResolvedOptions, resolveOptions } from "./resolve.ts";
import { OrderedSubscription } from "./ordered.ts";
import { Publisher } from "./publisher.ts";
import { PUBLISH } from "./scripts/topics.ts";
import type { Subscription } from "./subscription.ts";
import { TopicBook } from "./topic_book.ts";
import { Trimmer } from "./trimmer.ts";
import { UnorderedSubscription } from "./unordered.ts";

/** How long closing may take, whatever the server does. */
const CLOSE_MS = 800;

/** Makes a transport; nothing connects before `open`. Rejects with `ClientMissingError` without ioredis. */
export async function createTransport(options: RedisTransportOptions, clock: Clock = systemClock): Promise<Transport> {
  const resolved = resolveOptions(options);
  return new RedisTransport(resolved, clock, clientFactory(await loadClient(), resolved));
}

class RedisTransport implements Transport {
  readonly capabilities: Capabilities;
  readonly stopsAtFailure = true;
  /** Absent in ordered mode, where ownership of the partition is the lease. */
  readonly extend?: (topic: string, group: string, natives: readonly Native[]) => Promise<readonly NativeOutcome[]>;
  readonly #context: RedisContext;
  readonly #settings: ConnectionSettings;
  readonly #publishing: Connection;
  readonly #publisher: Publisher;
  readonly #subscriptions = new Map<string, Subscription>();
  readonly #clock: Clock;
  #events: TransportEvents = SILENT_EVENTS;
  #closing: Promise<void> | undefined;

  constructor(options: ResolvedOptions, clock: Clock, create: ConnectionSettings["create"]) {
    this.capabilities = redisCapabilities(options);
    this.#clock = clock;
    const topics = new TopicBook(options.prefix, options.partitions);
    const connected = () => topics.forget();
    this.#settings = { clock, create, connectTimeoutMs: options.connectTimeoutMs, connected };
    const main = new Connection(this.#settings, options.commandTimeoutMs);
    const events = (): TransportEvents => this.#events;
    const trimmer = new Trimmer(clock, options.retentionMs, (topic) => events().signal("retention-held", topic));
    this.#publishing = new Connection(this.#settings, options.publishTimeoutMs, [PUBLISH]);
    this.#publisher = new Publisher(this.#publishing, topics, trimmer, options.unsafeMaxLen);
    const instance = randomPart(clock);
    const settings = this.#settings;
    this.#context = {
      clock,
      options,
      main,
      topics,
      trimmer,
      consumer: options.consumer ?? memberName(clock),
      instance,
      get events() {
        return events();
      },
      openBlocking: () => new Connection({ ...settings, connected: () => {} }, options.commandTimeoutMs),
    };
    if (!options.ordered) {
      this.extend = async (topic, group, natives) =>
        await this.#find(topic, group)?.extend?.(natives as readonly RedisNative[]) ?? natives.map(() => "stale");
    }
  }

  async open(events: TransportEvents): Promise<void> {
    this.#mustBeOpen();
    this.#events = events;
    const { main } = this.#context;
    if (main.live) {
      try {
        await main.call("PING", []);
      } catch (error) {
        // A lost connection is made anew below; an answer that is an error is the server's last word.
        if (isReply(error)) throw refusal("PING", error);
      }
    }
    await main.ready();
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
      const known = this.#context.topics.get(topic);
      subscription = this.#context.options.ordered
        ? new OrderedSubscription(this.#context, known, request.group)
        : new UnorderedSubscription(this.#context, known, request.group);
      this.#subscriptions.set(key, subscription);
    }
    return await subscription.fetch(request);
  }

  #find(topic: string, group: string): Subscription | undefined {
    return this.#subscriptions.get(subscriptionKey(topic, group));
  }

  async ack(topic: string, group: string, natives: readonly Native[]): Promise<readonly NativeOutcome[]> {
    if (!this.#context.main.live) await this.#context.main.ready();
    return await this.#find(topic, group)?.ack(natives as readonly RedisNative[]) ?? natives.map(() => "stale");
  }

  drop(topic: string, group: string, natives: readonly Native[]): Promise<readonly NativeOutcome[]> {
    return this.ack(topic, group, natives);
  }

  async release(
    topic: string,
    group: string,
    natives: readonly Native[],
    _delayMs: number,
  ): Promise<readonly NativeOutcome[]> {
    return await this.#find(topic, group)?.release(natives as readonly RedisNative[]) ?? natives.map(() => "stale");
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
    for (const subscription of this.#subscriptions.values()) subscription.reset(why);
  }

  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  async #close(): Promise<void> {
    const subscriptions = [...this.#subscriptions.values()];
    const stopped = Promise.all(subscriptions.map((subscription) => subscription.stop().catch(() => {})));
    await new Promise<void>((resolve) => {
      const timer = this.#clock.timer(CLOSE_MS, resolve);
      void stopped.then(() => {
        timer.cancel();
        resolve();
      });
    });
    this.#subscriptions.clear();
    // Subscriptions that did not stop in time lose their connection now, and with it what they wait for.
    await Promise.all([this.#publishing.close(), this.#context.main.close(), stopped]);
  }

  #mustBeOpen(): void {
    if (this.#closing !== undefined) throw new ClosedError("the broker is closed; make a new one");
  }
}
