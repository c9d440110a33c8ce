/**
 * A transport that does what a test says, with a broker and a session over it.
 *
 * @module
 */
import { memoryCapabilities } from "../../adapters/memory/transport.ts";
import { AsyncBroker } from "../../core/broker.ts";
import { type BrokerOptions, sessionOptions } from "../../core/broker_options.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import { createEnvelope, textOf } from "../../core/codec.ts";
import type { Capabilities } from "../../core/contract.ts";
import type { EnvelopeInit } from "../../core/envelope.ts";
import type { ToHost, ToSession } from "../../core/session/messages.ts";
import type { Link, LinkSink } from "../../core/link.ts";
import { WorkerCrashedError } from "../../core/errors.ts";
import { Session, type SessionOptions } from "../../core/session/session.ts";
import type { Topics } from "../../core/topics.ts";
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
import { InlineLink } from "../../workers/inline_link.ts";
import type { VirtualClock } from "../support/virtual_clock.ts";

let nextId = 0;

/** The text of an event. */
export function text(init: Partial<EnvelopeInit> = {}): string {
  const defaults = { source: "/fake", now: () => 0, nextId: () => `e${nextId++}` };
  return textOf(createEnvelope({ type: "n", ...init }, defaults, 1_048_576));
}

/** A message as fetched; its native is what the test calls it. */
export function raw(native: Native, init: Partial<EnvelopeInit> = {}, rest: Partial<Raw> = {}): Raw {
  return { body: text({ data: native, ...init }), native, partition: 0, deliveries: 0, ...rest };
}

/** Each member may be replaced; what it starts with is a broker that works. */
export class FakeTransport implements Transport {
  readonly capabilities: Capabilities = memoryCapabilities(true, 1_048_576);
  stopsAtFailure = true;
  events!: TransportEvents;
  /** Calls in order: `fetch t 256`, `ack t 1,2`, … */
  readonly log: string[] = [];
  readonly sent: string[] = [];
  readonly #clock: Clock;
  readonly #ready: Raw[] = [];
  readonly #waiting = new Set<() => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Makes messages ready to be fetched, whatever the topic. */
  feed(...raws: readonly Raw[]): void {
    this.#ready.push(...raws);
    for (const wake of [...this.#waiting]) wake();
  }

  /** Calls of one kind. */
  calls(name: string): string[] {
    return this.log.filter((line) => line.startsWith(`${name} `));
  }

  onOpen: () => Promise<void> = () => Promise.resolve();
  onSend: (topic: string, messages: readonly Outgoing[]) => Promise<readonly SendOutcome[]> = (_, messages) => {
    this.sent.push(...messages.map((message) => message.body));
    return Promise.resolve(messages.map(() => undefined));
  };
  onFetch: (topic: string, request: FetchRequest) => Promise<readonly Raw[]> = (_, request) => this.take(request);
  onSettle: (kind: string, natives: readonly Native[]) => Promise<readonly NativeOutcome[]> = (_, natives) =>
    Promise.resolve(natives.map(() => "settled"));
  onUnsubscribe: (topic: string) => Promise<void> = () => Promise.resolve();
  onClose: () => Promise<void> = () => Promise.resolve();

  /** What {@link feed} made ready. */
  async take(request: FetchRequest): Promise<readonly Raw[]> {
    if (this.#ready.length === 0 && request.waitMs > 0 && !request.signal.aborted) {
      await new Promise<void>((resolve) => {
        const done = (): void => {
          timer.cancel();
          this.#waiting.delete(done);
          request.signal.removeEventListener("abort", done);
          resolve();
        };
        const timer: Timer = this.#clock.timer(request.waitMs, done);
        this.#waiting.add(done);
        request.signal.addEventListener("abort", done);
      });
    }
    return this.#ready.splice(0, request.max);
  }

  open(events: TransportEvents): Promise<void> {
    this.events = events;
    this.log.push("open ");
    return this.onOpen();
  }

  send(topic: string, messages: readonly Outgoing[]): Promise<readonly SendOutcome[]> {
    this.log.push(`send ${topic} ${messages.length}`);
    return this.onSend(topic, messages);
  }

  fetch(topic: string, request: FetchRequest): Promise<readonly Raw[]> {
    this.log.push(`fetch ${topic} ${request.max}`);
    return this.onFetch(topic, request);
  }

  ack(topic: string, _group: string, natives: readonly Native[]): Promise<readonly NativeOutcome[]> {
    this.log.push(`ack ${topic} ${natives.join()}`);
    return this.onSettle("ack", natives);
  }

  drop(topic: string, _group: string, natives: readonly Native[]): Promise<readonly NativeOutcome[]> {
    this.log.push(`drop ${topic} ${natives.join()}`);
    return this.onSettle("drop", natives);
  }

  release(topic: string, _group: string, natives: readonly Native[]): Promise<readonly NativeOutcome[]> {
    this.log.push(`release ${topic} ${natives.join()}`);
    return this.onSettle("release", natives);
  }

  extend(topic: string, _group: string, natives: readonly Native[]): Promise<readonly NativeOutcome[]> {
    this.log.push(`extend ${topic} ${natives.join()}`);
    return this.onSettle("extend", natives);
  }

  unsubscribe(topic: string): Promise<void> {
    this.log.push(`unsubscribe ${topic}`);
    return this.onUnsubscribe(topic);
  }

  reset(): void {
    this.log.push("reset ");
  }

  close(): Promise<void> {
    this.log.push("close ");
    return this.onClose();
  }
}

/** A link whose session dies, and is replaced, when a test says so. */
export class MortalLink implements Link {
  readonly #make: () => InlineLink;
  #link: InlineLink;
  #sink!: LinkSink;

  constructor(make: () => InlineLink) {
    this.#make = make;
    this.#link = make();
  }

  start(sink: LinkSink): Promise<void> {
    this.#sink = sink;
    return this.#live(this.#link);
  }

  /** A dead session says nothing any more. */
  #live(link: InlineLink): Promise<void> {
    const { down, up } = this.#sink;
    return link.start({
      receive: (message) => this.#link === link ? this.#sink.receive(message) : undefined,
      down,
      up,
    });
  }

  /** As when its worker died. */
  die(): void {
    const dead = this.#link;
    this.#link = this.#make();
    // A thread takes its session with it; here it must be stopped.
    dead.post({ k: "close", call: -1, drainMs: 0 });
    this.#sink.down(new WorkerCrashedError("died on purpose"));
  }

  async rise(): Promise<void> {
    await this.#live(this.#link);
    this.#sink.up();
  }

  post(message: ToSession): void {
    this.#link.post(message);
  }

  end(deadlineMs: number): Promise<{ readonly terminated: boolean }> {
    return this.#link.end(deadlineMs);
  }
}

/** A broker over a {@link FakeTransport}, inline. */
export class FakeTransportBroker<T extends Topics = Topics> extends AsyncBroker<T> {
  readonly transport: FakeTransport;
  readonly link: MortalLink;

  constructor(clock: VirtualClock, options: BrokerOptions<T> & { readonly session?: Partial<SessionOptions> } = {}) {
    const { session, ...rest } = options;
    const transport = new FakeTransport(clock);
    const settings = { ...sessionOptions(options as BrokerOptions), ...session };
    const link = new MortalLink(() => new InlineLink(() => transport, clock, settings));
    super({ source: "/fake", group: "g", logger: false, ...rest, clock }, {
      isolation: "inline",
      capabilities: transport.capabilities,
      groupOptional: false,
      link: () => link,
    });
    this.transport = transport;
    this.link = link;
  }
}

/** A session over a {@link FakeTransport}, spoken to in its own messages. */
export class FakeSession {
  readonly transport: FakeTransport;
  /** What it said. */
  readonly said: ToHost[] = [];
  readonly #session: Session;
  #calls = 0;

  constructor(clock: VirtualClock, options: Partial<SessionOptions> = {}) {
    this.transport = new FakeTransport(clock);
    this.#session = new Session(
      this.transport,
      clock,
      { ...sessionOptions({}), ...options },
      (message) => void this.said.push(message),
    );
  }

  tell(message: ToSession): void {
    this.#session.receive(message);
  }

  /** Makes a call and answers its number. */
  call(make: (call: number) => ToSession): number {
    const call = ++this.#calls;
    this.tell(make(call));
    return call;
  }

  subscribe(sub: number, topic: string, prefetch = 16): number {
    return this.call((call) => ({ k: "subscribe", call, sub, topic, group: "g", prefetch }));
  }

  /** The answer to a call, undefined = none yet. */
  answer(call: number): Extract<ToHost, { k: "answer" }> | undefined {
    return this.said.find((message) => message.k === "answer" && message.call === call) as never;
  }

  /** Messages of one kind. */
  heard<K extends ToHost["k"]>(k: K): Extract<ToHost, { k: K }>[] {
    return this.said.filter((message) => message.k === k) as Extract<ToHost, { k: K }>[];
  }
}
