import type { BrokerOptions } from "./broker_options.ts";
import { type Clock, systemClock, withDeadline } from "./clock.ts";
import { textOf } from "./codec.ts";
import type {
  AckOptions,
  BrokerAdapter,
  Capabilities,
  CloseOptions,
  Delivery,
  DrainReport,
  HealthReport,
  NackOptions,
  SettleOutcome,
  SubscribeOptions,
  UndecodableSink,
} from "./contract.ts";
import { HeldDelivery } from "./delivery.ts";
import { sha256Hex } from "./digest.ts";
import type { Envelope } from "./envelope.ts";
import { BrokerUnavailableError, type EdaError, InvalidOptionError, OutcomeUnknownError } from "./errors.ts";
import { guard } from "./guard.ts";
import { Health } from "./health.ts";
import type { LinkFactory } from "./link.ts";
import { type Logger, resolveLogger } from "./logger.ts";
import { checkName, checkRange } from "./options.ts";
import { Publishing } from "./publishing.ts";
import { PublishQueue } from "./publish_queue.ts";
import { createSchemaGate, type SchemaGate } from "./schema.ts";
import { closed, SessionClient } from "./session_client.ts";
import type { ToHost } from "./session/messages.ts";
import { Subscriptions } from "./subscriptions.ts";
import type { AnyTopics, EnvelopeOf, InitOf, TopicName, Topics } from "./topics.ts";
import { UndecodableRecorder } from "./undecodable.ts";

/** What an adapter says of itself when it builds a broker. */
export interface BrokerSetup {
  readonly isolation: "worker" | "inline";
  /** Until the transport tells; then its own. */
  readonly capabilities: Capabilities;
  /** Whether `subscribe` may go without a group. */
  readonly groupOptional: boolean;
  readonly link: LinkFactory;
  /** See `WorkerOptions.keepAlive`. Default true. */
  readonly keepAlive?: boolean;
}

/** The signal of a transport that found a consumer of another kind in one of our groups. */
const FOREIGN = "foreign-consumer";

/** The broker object behind every adapter: the contract over a link. Adapters extend it with their options. */
export class AsyncBroker<T extends Topics = AnyTopics> implements BrokerAdapter<T> {
  readonly topics: T;
  readonly group: string | undefined;
  readonly source: string | undefined;
  readonly #prefetch: number;
  readonly #callTimeoutMs: number;
  readonly #keepCorruptBodies: boolean;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #setup: BrokerSetup;
  readonly #gate: SchemaGate | undefined;
  readonly #health: Health;
  readonly #recorder: UndecodableRecorder;
  readonly #client: SessionClient;
  readonly #queue: PublishQueue;
  readonly #publishing: Publishing;
  readonly #subscriptions: Subscriptions;
  #capabilities: Capabilities;
  #mixed = false;
  #closing: Promise<DrainReport> | undefined;

  protected constructor(options: BrokerOptions<T>, setup: BrokerSetup) {
    const clock = this.#clock = options.clock ?? systemClock;
    this.#setup = setup;
    this.topics = (options.topics ?? {}) as T;
    this.group = options.group;
    this.source = options.source;
    this.#callTimeoutMs = options.callTimeoutMs ?? 10_000;
    this.#keepCorruptBodies = options.keepCorruptBodies ?? false;
    this.#capabilities = setup.capabilities;
    this.#prefetch = options.prefetch ?? (setup.capabilities.ordering === "none" ? 64 : 256);
    this.#logger = resolveLogger(options.logger);
    this.#gate = options.topics === undefined ? undefined : createSchemaGate(options.topics);
    const { onDisconnect, onReconnect, onSettleError } = options;
    this.#health = new Health(clock, this.#logger, { onDisconnect, onReconnect }, setup.isolation);
    this.#recorder = new UndecodableRecorder(this.#logger, this.#health, options);
    this.#client = new SessionClient({ clock, factory: setup.link, keepAlive: setup.keepAlive ?? true }, {
      receive: (message) => this.#receive(message),
      down: (error) => this.#down(error),
      up: () => this.#subscriptions.up(),
      busy: () => this.#client.calls.size > 0 || this.#queue.size > 0 || this.#subscriptions.size > 0,
    });
    this.#queue = new PublishQueue(clock, () => this.#client.calls.next(), (message) => this.#client.post(message));
    this.#publishing = new Publishing({
      clock,
      client: this.#client,
      queue: this.#queue,
      gate: this.#gate,
      source: options.source,
      maxBytes: options.maxBytes ?? 1_048_576,
    });
    this.#subscriptions = new Subscriptions({
      clock,
      client: this.#client,
      settleFailed: (topic, group, count, why) => {
        this.#health.count("settle-errors", count);
        this.#logger.warn("settles did not take effect; their messages come again", { topic, group, count, why });
        guard(this.#logger, "onSettleError", () => onSettleError?.({ topic, group, count, why }));
      },
      dropped: (topic, reason) => this.#logger.info("delivery dropped", { topic, reason }),
      connected: (capabilities) => this.#connected(capabilities),
      validate: (topic, delivery) => this.#validate(topic, delivery),
      record: (subscription, delivery, error) => this.#record(subscription.group, delivery, error),
    });
  }

  async connect(): Promise<void> {
    if (this.#closing !== undefined) throw closed();
    this.#connected(await this.#client.call((call) => ({ k: "connect", call })) as Capabilities);
  }

  /** The transport says what it can do; what a blocked host costs is the link's to know. */
  #connected(capabilities: Capabilities): void {
    const { survivesBlockedHost } = this.#setup.capabilities;
    this.#capabilities = { ...capabilities, ...(this.#mixed ? { ordering: "none" } : {}), survivesBlockedHost };
  }

  /** A consumer of another kind reads in one of our groups: it keeps no order, so neither can we. */
  #foreign(): void {
    this.#mixed = true;
    this.#connected(this.#capabilities);
  }

  publish<N extends TopicName<T>>(topic: N, message: InitOf<T, N> | Envelope): Promise<EnvelopeOf<T, N>> {
    if (this.#closing !== undefined) return Promise.reject(closed());
    return this.#publishing.publish(topic, message) as Promise<EnvelopeOf<T, N>>;
  }

  async publishAll<N extends TopicName<T>>(
    topic: N,
    messages: readonly (InitOf<T, N> | Envelope)[],
  ): Promise<readonly EnvelopeOf<T, N>[]> {
    if (this.#closing !== undefined) throw closed();
    return await this.#publishing.publishAll(topic, messages) as unknown as readonly EnvelopeOf<T, N>[];
  }

  subscribe<N extends TopicName<T>>(
    topic: N,
    options: SubscribeOptions = {},
  ): AsyncIterableIterator<Delivery<EnvelopeOf<T, N>>> {
    if (this.#closing !== undefined) throw closed();
    checkName("topic", topic);
    const group = options.group ?? this.group;
    if (group === undefined && !this.#setup.groupOptional) {
      throw new InvalidOptionError(
        "group is missing: name the consumer group in the broker's options or in subscribe(topic, { group }); " +
          "members of one group share the messages of a topic",
      );
    }
    if (group !== undefined) checkName("group", group);
    const prefetch = checkRange("prefetch", options.prefetch ?? this.#prefetch, 1, 10_000);
    if (options.idleMs !== undefined) checkRange("idleMs", options.idleMs, 0, Number.MAX_SAFE_INTEGER);
    const stream = this.#subscriptions.open(topic, group ?? "", prefetch, options);
    return stream as unknown as AsyncIterableIterator<Delivery<EnvelopeOf<T, N>>>;
  }

  ack(delivery: Delivery, options?: AckOptions): Promise<SettleOutcome> {
    return mine(delivery).ack(options);
  }

  nack(delivery: Delivery, options: NackOptions = {}): Promise<SettleOutcome> {
    return options.requeue === false ? mine(delivery).drop("nack", options) : mine(delivery).retry(options);
  }

  get healthy(): boolean {
    return this.#health.healthy;
  }

  health(): HealthReport {
    return this.#health.report(this.#subscriptions.health());
  }

  get capabilities(): Capabilities {
    return this.#capabilities;
  }

  recordUndecodableTo(sink: UndecodableSink): void {
    this.#recorder.use(sink);
  }

  #receive(message: ToHost): void {
    switch (message.k) {
      case "published":
        return this.#queue.published(message);
      case "health":
        return message.ok ? this.#health.up() : this.#health.down(message.error as EdaError);
      case "signal":
        this.#health.count(message.name);
        if (message.name === FOREIGN) this.#foreign();
        return this.#logger.warn(message.name, { topic: message.topic, ...message.details });
      case "undecodable":
        return void this.#undecodable(message);
      case "beat":
      case "answer":
        return;
      default:
        return this.#subscriptions.receive(message);
    }
  }

  async #undecodable(message: Extract<ToHost, { k: "undecodable" }>): Promise<void> {
    const { sub, id, bytes, sha256, attempt, body } = message;
    const subscription = this.#subscriptions.find(sub);
    if (subscription === undefined) return;
    const { topic, group } = subscription;
    const error = message.error as EdaError;
    const record = { topic, group, bytes, sha256, error, attempt, ...(body === undefined ? {} : { body }) };
    const ok = await this.#recorder.record(record);
    this.#client.post({ k: "recorded", sub, id, ok });
  }

  #validate(topic: string, delivery: HeldDelivery): undefined | Promise<void> {
    const checked = this.#gate?.incoming(topic, delivery.envelope);
    return checked?.then((envelope) => delivery.replaceEnvelope(envelope));
  }

  #record(group: string, delivery: HeldDelivery, error: EdaError): Promise<boolean> {
    const body = new TextEncoder().encode(textOf(delivery.envelope));
    const { topic, attempt } = delivery;
    return this.#recorder.record({
      topic,
      group,
      bytes: body.byteLength,
      sha256: sha256Hex(body),
      error,
      attempt,
      ...(this.#keepCorruptBodies ? { body } : {}),
    });
  }

  #down(error: EdaError): void {
    const unknown = new OutcomeUnknownError("the worker died before the broker's answer", { cause: error });
    this.#queue.fail(unknown, new BrokerUnavailableError("not sent: the worker died", { cause: error }));
    this.#client.calls.fail(error);
    this.#subscriptions.down("the worker died");
    this.#health.count("worker-restarts");
    this.#health.down(error);
  }

  close(options: CloseOptions = {}): Promise<DrainReport> {
    if (this.#closing !== undefined) return this.#closing;
    try {
      return this.#closing = this.#shutDown(checkRange("drainMs", options.drainMs ?? 10_000, 0, 600_000));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async #shutDown(drainMs: number): Promise<DrainReport> {
    let report: Omit<DrainReport, "terminated"> = { released: 0, unconfirmed: 0 };
    this.#queue.flush();
    this.#subscriptions.flush();
    await this.#queue.quiet(drainMs);
    this.#subscriptions.end();
    if (this.#client.isUp) {
      const late = (): Error => new BrokerUnavailableError("close did not settle within its deadline");
      const answer = this.#client.call((call) => ({ k: "close", call, drainMs }));
      const limit = drainMs + 2 * this.#callTimeoutMs;
      report = await withDeadline(this.#clock, limit, answer, late).catch(() => report) as typeof report;
    }
    const terminated = await this.#client.end(2_000);
    this.#queue.fail(new OutcomeUnknownError("the broker was closed before the answer"), closed());
    this.#health.close();
    return { ...report, terminated };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function mine(delivery: Delivery): HeldDelivery {
  if (delivery instanceof HeldDelivery) return delivery;
  throw new InvalidOptionError("delivery is not one that this library handed out");
}
