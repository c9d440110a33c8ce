/**
 * Amazon SQS as a {@link Transport}: the half that runs in the worker.
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
import { SILENT_EVENTS } from "../../core/transport_parts.ts";
import { Api } from "./api.ts";
import { sqsCapabilities } from "./capabilities.ts";
import { loadSdk, type Sdk } from "./client.ts";
import { asError, isDenied } from "./errors.ts";
import type { SqsNative } from "./held.ts";
import type { SqsTransportOptions } from "./options.ts";
import { QueueBook } from "./queue_book.ts";
import { type ResolvedOptions, resolveOptions } from "./resolve.ts";
import { Sender } from "./sender.ts";
import { secondGroup, type SqsContext, Subscription } from "./subscription.ts";

/** Makes a transport; nothing connects before `open`. Rejects with `ClientMissingError` without the SDK. */
export async function createTransport(options: SqsTransportOptions, clock: Clock = systemClock): Promise<Transport> {
  const resolved = resolveOptions(options);
  return new SqsTransport(resolved, clock, await loadSdk(resolved));
}

class SqsTransport implements Transport {
  readonly capabilities: Capabilities;
  readonly #api: Api;
  readonly #book: QueueBook;
  readonly #context: SqsContext;
  readonly #senders = new Map<string, Sender>();
  readonly #subscriptions = new Map<string, Subscription>();
  #events: TransportEvents = SILENT_EVENTS;
  #closing: Promise<void> | undefined;

  constructor(options: ResolvedOptions, clock: Clock, sdk: Sdk) {
    const events = (): TransportEvents => this.#events;
    this.capabilities = sqsCapabilities(options);
    this.#api = new Api(sdk, clock);
    this.#book = new QueueBook(this.#api, options, events);
    this.#context = {
      api: this.#api,
      book: this.#book,
      clock,
      options,
      get events() {
        return events();
      },
    };
  }

  /** SQS has no connections to speak of: one small call tells whether it answers, and takes our credentials. */
  async open(events: TransportEvents): Promise<void> {
    this.#mustBeOpen();
    this.#events = events;
    this.#api.renew();
    const withinMs = this.#context.options.connectTimeoutMs;
    try {
      await this.#api.call("ListQueues", { MaxResults: 1 }, { withinMs });
    } catch (error) {
      // Whoever is denied this one was recognised.
      if (!isDenied(error)) throw asError("ListQueues", error);
    }
  }

  async send(topic: string, messages: readonly Outgoing[]): Promise<readonly SendOutcome[]> {
    this.#mustBeOpen();
    let sender = this.#senders.get(topic);
    if (sender === undefined) {
      sender = new Sender(this.#api, this.#book, this.#context.clock, topic);
      this.#senders.set(topic, sender);
    }
    return await sender.send(messages);
  }

  async fetch(topic: string, request: FetchRequest): Promise<readonly Raw[]> {
    this.#mustBeOpen();
    let subscription = this.#subscriptions.get(topic);
    if (subscription === undefined) {
      subscription = new Subscription(this.#context, topic, request.group);
      this.#subscriptions.set(topic, subscription);
    }
    if (subscription.group !== request.group) throw secondGroup();
    return await subscription.fetch(request);
  }

  async ack(topic: string, group: string, natives: readonly Native[]): Promise<readonly NativeOutcome[]> {
    return await this.#find(topic, group)?.ack(natives as readonly SqsNative[]) ?? natives.map(() => "stale");
  }

  drop(topic: string, group: string, natives: readonly Native[]): Promise<readonly NativeOutcome[]> {
    return this.ack(topic, group, natives);
  }

  async extend(topic: string, group: string, natives: readonly Native[]): Promise<readonly NativeOutcome[]> {
    return await this.#find(topic, group)?.extend(natives as readonly SqsNative[]) ?? natives.map(() => "stale");
  }

  async release(
    topic: string,
    group: string,
    natives: readonly Native[],
    delayMs: number,
  ): Promise<readonly NativeOutcome[]> {
    const subscription = this.#find(topic, group);
    return await subscription?.release(natives as readonly SqsNative[], delayMs) ?? natives.map(() => "stale");
  }

  #find(topic: string, group: string): Subscription | undefined {
    const subscription = this.#subscriptions.get(topic);
    return subscription?.group === group ? subscription : undefined;
  }

  async unsubscribe(topic: string, group: string): Promise<void> {
    const subscription = this.#find(topic, group);
    if (subscription === undefined) return;
    this.#subscriptions.delete(topic);
    await subscription.stop();
  }

  reset(why: string): void {
    for (const sender of this.#senders.values()) sender.reset(why);
    this.#api.reset();
  }

  close(): Promise<void> {
    return this.#closing ??= (async () => {
      await Promise.all([...this.#subscriptions.values()].map((subscription) => subscription.stop()));
      this.#subscriptions.clear();
      this.reset("the broker was closed");
    })();
  }

  #mustBeOpen(): void {
    if (this.#closing !== undefined) throw new ClosedError("the broker is closed; make a new one");
  }
}
