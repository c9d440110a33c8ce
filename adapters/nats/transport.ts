/**
 * NATS JetStream as a {@link Transport}: the half that runs in the worker.
 *
 * Two connections: one for publishing, so that large bodies do not hold up renewals and settles, and one for everything else.
 * Who does not publish has no more than the second.
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
import { Api } from "./api.ts";
import { Bucket } from "./bucket.ts";
import { natsCapabilities } from "./capabilities.ts";
import { type Dialler, diallerOf, loadClient } from "./client.ts";
import { Connection } from "./connection.ts";
import type { NatsContext, NatsNative } from "./context.ts";
import { noJetStream } from "./errors.ts";
import type { NatsTransportOptions } from "./options.ts";
import { OrderedSubscription } from "./ordered.ts";
import { Publisher } from "./publisher.ts";
import { type ResolvedOptions, resolveOptions } from "./resolve.ts";
import type { Subscription } from "./subscription.ts";
import { TopicBook } from "./topic_book.ts";
import { UnorderedSubscription } from "./unordered.ts";

/** How long closing may take, whatever the server does. */
const CLOSE_MS = 800;

/**
 * Makes a transport; nothing connects before `open`. Rejects with `ClientMissingError` without the client, and with
 * `AuthenticationError` where a file of credentials cannot be read.
 */
export async function createTransport(options: NatsTransportOptions, clock: Clock = systemClock): Promise<Transport> {
  const resolved = resolveOptions(options);
  return new NatsTransport(resolved, clock, await diallerOf(await loadClient(), resolved));
}

class NatsTransport implements Transport {
  readonly capabilities: Capabilities;
  /** Absent in ordered mode, where ownership of the partition is the lease. */
  readonly extend?: (topic: string, group: string, natives: readonly Native[]) => Promise<readonly NativeOutcome[]>;
  readonly #context: NatsContext;
  readonly #publishing: Connection;
  readonly #publisher: Publisher;
  readonly #subscriptions = new Map<string, Subscription>();
  readonly #clock: Clock;
  #events: TransportEvents = SILENT_EVENTS;
  #closing: Promise<void> | undefined;

  constructor(options: ResolvedOptions, clock: Clock, dialler: Dialler) {
    this.capabilities = natsCapabilities(options);
    this.#clock = clock;
    const { connectTimeoutMs } = options;
    const events = (): TransportEvents => this.#events;
    const headers = () => dialler.headers();
    const limits = (topic: string, names: string) => events().signal("stream-limits", topic, { limits: names });
    const topics = new TopicBook(options, limits);
    const connected = (): void => {
      topics.forget();
      bucket.forget();
    };
    const main = new Connection({ clock, dialler, connectTimeoutMs, connected }, options.commandTimeoutMs);
    const api = new Api(main, options.domain);
    const bucket = new Bucket(main, api, headers, options);
    // The streams of topics that are published to are looked at on the connection that publishes.
    const published = new TopicBook(options, limits);
    this.#publishing = new Connection(
      { clock, dialler, connectTimeoutMs, connected: () => published.forget() },
      options.publishTimeoutMs,
    );
    this.#publisher = new Publisher(this.#publishing, new Api(this.#publishing, options.domain), published, headers);
    this.#context = {
      clock,
      options,
      main,
      api,
      bucket,
      topics,
      consumer: options.consumer ?? memberName(clock),
      instance: randomPart(clock),
      get events() {
        return events();
      },
    };
    if (!options.ordered) {
      this.extend = async (topic, group, natives) =>
        await this.#find(topic, group)?.extend?.(natives as readonly NatsNative[]) ?? natives.map(() => "stale");
    }
  }

  async open(events: TransportEvents): Promise<void> {
    this.#mustBeOpen();
    this.#events = events;
    const { main, api, options } = this.#context;
    // A connection that does not answer is lost, and made anew below.
    if (main.live) await main.flush().catch(() => {});
    if (main.live) return;
    await main.ready();
    // A server that says nothing of JetStream may be the leaf of one that has it.
    if (main.info?.jetstream === true || options.domain !== undefined) return;
    const { status } = await main.request("looking for JetStream", api.subject("INFO"));
    if (status !== 503) return;
    main.reset("JetStream is missing");
    throw noJetStream();
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
    return await this.#find(topic, group)?.ack(natives as readonly NatsNative[]) ?? natives.map(() => "stale");
  }

  async drop(topic: string, group: string, natives: readonly Native[]): Promise<readonly NativeOutcome[]> {
    if (!this.#context.main.live) await this.#context.main.ready();
    return await this.#find(topic, group)?.drop(natives as readonly NatsNative[]) ?? natives.map(() => "stale");
  }

  async release(
    topic: string,
    group: string,
    natives: readonly Native[],
    delayMs: number,
  ): Promise<readonly NativeOutcome[]> {
    const subscription = this.#find(topic, group);
    return await subscription?.release(natives as readonly NatsNative[], delayMs) ?? natives.map(() => "stale");
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
