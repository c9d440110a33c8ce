/**
 * A broker in the test's own hands: what it delivers, when it fails, what it takes away.
 *
 * @module
 */
import { type Clock, systemClock, type Timer } from "../../core/clock.ts";
import { decodeEnvelope, textOf, toEnvelope } from "../../core/codec.ts";
import type {
  AckOptions,
  BrokerAdapter,
  Capabilities,
  Delivery,
  DrainReport,
  HealthReport,
  NackOptions,
  RetryOptions,
  SettleOutcome,
  SubscribeOptions,
  UndecodableSink,
} from "../../core/contract.ts";
import { sha256Hex } from "../../core/digest.ts";
import type { Envelope, EnvelopeInit } from "../../core/envelope.ts";
import {
  BrokerUnavailableError,
  type EdaError,
  OutcomeUnknownError,
  PublishBatchError,
  type PublishOutcome,
} from "../../core/errors.ts";
import { createIdSource } from "../../core/ids.ts";
import type { AnyTopics, EnvelopeOf, InitOf, TopicName, Topics } from "../../core/topics.ts";

/** What the fake can be told beforehand. */
export interface FakeOptions<T extends Topics = AnyTopics> {
  readonly topics?: T;
  readonly group?: string;
  readonly source?: string;
  readonly prefetch?: number;
  readonly clock?: Clock;
  readonly capabilities?: Partial<Capabilities>;
}

const CAPABILITIES: Capabilities = {
  ordering: "subject",
  groups: true,
  deliveryCount: "exact",
  dedupWindowMs: 0,
  delayedRelease: false,
  leaseExtension: false,
  uncountedRelease: true,
  maxBytes: 1_048_576,
  replay: true,
  survivesBlockedHost: false,
};

interface Waiting {
  readonly text: string;
  readonly seq: number;
  readonly subject: string | undefined;
  attempt: number;
  /** Monotonic ms. */
  notBefore: number;
}

/** What became of a delivery, in the order it happened. */
export interface Settled {
  readonly kind: "ack" | "retry" | "drop";
  readonly id: string;
  readonly topic: string;
  readonly attempt: number;
}

/** One delivery of the fake. */
export class FakeDelivery implements Delivery {
  readonly envelope: Envelope;
  readonly topic: string;
  readonly attempt: number;
  readonly seq: number;
  state: "open" | "settled" | "lost" = "open";
  readonly #broker: FakeBroker;
  readonly #abort = new AbortController();

  constructor(broker: FakeBroker, topic: string, item: Waiting) {
    this.#broker = broker;
    this.topic = topic;
    this.seq = item.seq;
    this.attempt = item.attempt;
    this.envelope = decodeEnvelope(item.text, { maxBytes: 1e9 });
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get lost(): boolean {
    return this.state === "lost";
  }

  ack(options?: AckOptions): Promise<SettleOutcome> {
    return this.#broker.settle(this, "ack", options, 0);
  }

  retry(options?: RetryOptions): Promise<SettleOutcome> {
    return this.#broker.settle(this, "retry", undefined, options?.delayMs ?? 0);
  }

  drop(_reason: string, options?: AckOptions): Promise<SettleOutcome> {
    return this.#broker.settle(this, "drop", options, 0);
  }

  markLost(): void {
    this.state = "lost";
    this.#abort.abort(new BrokerUnavailableError("the delivery was lost"));
  }
}

class FakeTopic {
  readonly waiting: Waiting[] = [];
  readonly handed = new Set<FakeDelivery>();
  readonly readers = new Set<() => void>();
}

/** The fake. Topics exist once they are named. Texts cross it, never objects. */
export class FakeBroker<T extends Topics = AnyTopics> implements BrokerAdapter<T> {
  readonly topics: T;
  readonly group: string | undefined;
  readonly source: string | undefined;
  readonly capabilities: Capabilities;
  readonly healthy = true;
  /** What was published, as text. */
  readonly published: { readonly topic: string; readonly text: string; readonly envelope: Envelope }[] = [];
  readonly settled: Settled[] = [];
  /** Every delivery handed out. */
  readonly deliveries: FakeDelivery[] = [];
  /** Why a message cannot be published; undefined = it can. */
  publishFault: (envelope: Envelope, topic: string) => EdaError | undefined = () => undefined;
  /** Called before a publish answers. */
  beforeConfirm: () => void | Promise<void> = () => {};
  /** What the next acks come to, instead of being accepted: an error to reject with, or "stale". */
  ackFaults: (Error | "stale")[] = [];
  /** What a subscription fails with when it starts; undefined = nothing. */
  subscribeFault: (topic: string) => Error | undefined = () => undefined;
  readonly #clock: Clock;
  readonly #prefetch: number;
  readonly #topics = new Map<string, FakeTopic>();
  readonly #nextId: () => string;
  readonly #timers = new Set<Timer>();
  #sink: UndecodableSink | undefined;
  #seq = 0;

  constructor(options: FakeOptions<T> = {}) {
    this.topics = (options.topics ?? {}) as T;
    this.group = options.group ?? "test";
    this.source = options.source ?? "/fake";
    this.capabilities = { ...CAPABILITIES, ...options.capabilities };
    this.#clock = options.clock ?? systemClock;
    this.#prefetch = options.prefetch ?? 256;
    this.#nextId = createIdSource(this.#clock);
  }

  /** Puts an envelope where a subscriber finds it, without recording it as published. */
  deliver(topic: string, message: EnvelopeInit | Envelope, attempt = 0): Envelope {
    const envelope = this.#envelope(message);
    this.deliverText(topic, textOf(envelope), envelope.subject, attempt);
    return envelope;
  }

  deliverText(topic: string, text: string, subject: string | undefined, attempt = 0): void {
    const found = this.#topic(topic);
    found.waiting.push({ text, subject, attempt, seq: this.#seq++, notBefore: 0 });
    this.#wake(found);
  }

  /** Delivers bytes as they are: recorded and dropped where they are no envelope; held and offered again while unrecorded. */
  async deliverBytes(topic: string, bytes: Uint8Array, retryMs = 100): Promise<void> {
    try {
      const envelope = decodeEnvelope(bytes, { maxBytes: 1_048_576 });
      this.deliverText(topic, textOf(envelope), envelope.subject);
    } catch (error) {
      const record = {
        topic,
        group: this.group ?? "",
        bytes: bytes.byteLength,
        sha256: sha256Hex(bytes),
        error: error as EdaError,
        attempt: 0,
        body: bytes,
      };
      try {
        await this.#sink?.recordUndecodable(record);
      } catch {
        this.#later(retryMs, () => void this.deliverBytes(topic, bytes, retryMs));
      }
    }
  }

  /** Takes a delivery away, as when a lease ends: it comes again, before what waits of its subject. */
  lose(delivery: FakeDelivery): void {
    const topic = this.#topic(delivery.topic);
    topic.handed.delete(delivery);
    delivery.markLost();
    this.#putBack(topic, delivery, 0);
  }

  /** Unsettled messages of a topic: waiting, held back or handed out. */
  unsettled(topic: string): number {
    const found = this.#topic(topic);
    return found.waiting.length + found.handed.size;
  }

  async connect(): Promise<void> {}

  async publish<N extends TopicName<T>>(topic: N, message: InitOf<T, N> | Envelope): Promise<EnvelopeOf<T, N>> {
    const [envelope] = await this.publishAll(topic, [message]);
    return envelope!;
  }

  async publishAll<N extends TopicName<T>>(
    topic: N,
    messages: readonly (InitOf<T, N> | Envelope)[],
  ): Promise<readonly EnvelopeOf<T, N>[]> {
    const envelopes = messages.map((message) => this.#envelope(message));
    const stopped = new Set<string>();
    const outcomes: PublishOutcome[] = [];
    for (const envelope of envelopes) {
      const { id, subject } = envelope;
      const behind = subject !== undefined && stopped.has(subject);
      const error = behind
        ? new BrokerUnavailableError("not sent: an earlier one failed")
        : this.publishFault(envelope, topic);
      if (error === undefined || error instanceof OutcomeUnknownError) {
        this.published.push({ topic, text: textOf(envelope), envelope });
        this.deliverText(topic, textOf(envelope), subject);
      }
      if (error !== undefined && subject !== undefined) stopped.add(subject);
      outcomes.push(error === undefined ? { ok: true, id } : { ok: false, id, error });
    }
    await this.beforeConfirm();
    if (outcomes.some((outcome) => !outcome.ok)) throw new PublishBatchError(outcomes);
    return envelopes as unknown as readonly EnvelopeOf<T, N>[];
  }

  async *subscribe<N extends TopicName<T>>(
    topic: N,
    options: SubscribeOptions = {},
  ): AsyncGenerator<Delivery<EnvelopeOf<T, N>>> {
    const fault = this.subscribeFault(topic);
    if (fault !== undefined) throw fault;
    const found = this.#topic(topic);
    while (options.signal?.aborted !== true) {
      const delivery = this.#take(topic, found);
      if (delivery !== undefined) {
        yield delivery as unknown as Delivery<EnvelopeOf<T, N>>;
        continue;
      }
      if (options.idleMs === 0 || !await this.#ready(found, options)) return;
    }
  }

  ack(delivery: Delivery, options?: AckOptions): Promise<SettleOutcome> {
    return delivery.ack(options);
  }

  nack(delivery: Delivery, options: NackOptions = {}): Promise<SettleOutcome> {
    return options.requeue === false ? delivery.drop("nack", options) : delivery.retry(options);
  }

  settle(
    delivery: FakeDelivery,
    kind: Settled["kind"],
    options: AckOptions | undefined,
    delayMs: number,
  ): Promise<SettleOutcome> {
    if (delivery.state === "lost") return Promise.resolve("stale");
    if (delivery.state === "settled") return Promise.resolve("already");
    const fault = kind === "ack" ? this.ackFaults.shift() : undefined;
    const topic = this.#topic(delivery.topic);
    delivery.state = "settled";
    topic.handed.delete(delivery);
    if (fault !== undefined) {
      this.#putBack(topic, delivery, 0);
      return fault === "stale" ? Promise.resolve("stale") : Promise.reject(fault);
    }
    this.settled.push({ kind, id: delivery.envelope.id, topic: delivery.topic, attempt: delivery.attempt });
    if (kind === "retry") this.#putBack(topic, delivery, delayMs);
    else this.#wake(topic);
    return Promise.resolve(options?.confirm === true ? "settled" : "accepted");
  }

  /** Ids that were acked, in order. */
  get acked(): string[] {
    return this.settled.filter(({ kind }) => kind === "ack").map(({ id }) => id);
  }

  health(): HealthReport {
    return { status: "healthy", isolation: "inline", since: 0, topics: [], counters: {} };
  }

  recordUndecodableTo(sink: UndecodableSink): void {
    this.#sink = sink;
  }

  async close(): Promise<DrainReport> {
    for (const timer of this.#timers) timer.cancel();
    return await Promise.resolve({ released: 0, unconfirmed: 0, terminated: false });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #envelope(message: EnvelopeInit | Envelope): Envelope {
    return toEnvelope(message, { source: this.source, now: () => this.#clock.now(), nextId: this.#nextId }, 1e9);
  }

  #topic(name: string): FakeTopic {
    let topic = this.#topics.get(name);
    if (topic === undefined) this.#topics.set(name, topic = new FakeTopic());
    return topic;
  }

  #take(name: string, topic: FakeTopic): FakeDelivery | undefined {
    if (topic.handed.size >= this.#prefetch) return undefined;
    const now = this.#clock.monotonic();
    const held = new Set<string>();
    for (const [at, item] of topic.waiting.entries()) {
      if (item.subject !== undefined && held.has(item.subject)) continue;
      if (item.notBefore > now) {
        if (item.subject !== undefined) held.add(item.subject);
        continue;
      }
      topic.waiting.splice(at, 1);
      const delivery = new FakeDelivery(this as unknown as FakeBroker, name, item);
      topic.handed.add(delivery);
      this.deliveries.push(delivery);
      return delivery;
    }
    return undefined;
  }

  /** Answers false when the stream ends first. */
  #ready(topic: FakeTopic, options: SubscribeOptions): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (ready: boolean) => {
        topic.readers.delete(wake);
        timer?.cancel();
        options.signal?.removeEventListener("abort", stop);
        resolve(ready);
      };
      const wake = () => end(true);
      const stop = () => end(false);
      const timer = options.idleMs === undefined ? undefined : this.#clock.timer(options.idleMs, stop);
      topic.readers.add(wake);
      options.signal?.addEventListener("abort", stop, { once: true });
    });
  }

  #putBack(topic: FakeTopic, delivery: FakeDelivery, delayMs: number): void {
    const { seq, envelope } = delivery;
    const notBefore = this.#clock.monotonic() + delayMs;
    const item = { text: textOf(envelope), subject: envelope.subject, attempt: delivery.attempt + 1, seq, notBefore };
    const at = topic.waiting.findIndex((other) => other.seq > seq);
    topic.waiting.splice(at < 0 ? topic.waiting.length : at, 0, item);
    if (delayMs > 0) this.#later(delayMs, () => this.#wake(topic));
    else this.#wake(topic);
  }

  #later(ms: number, run: () => void): void {
    const timer = this.#clock.timer(ms, () => {
      this.#timers.delete(timer);
      run();
    });
    this.#timers.add(timer);
  }

  #wake(topic: FakeTopic): void {
    for (const wake of [...topic.readers]) wake();
  }
}
