/**
 * A dispatcher over the fake broker, the memory store and a virtual clock, with everything it says recorded.
 *
 * @module
 */
import type { Context, Handler, Middleware } from "../../core/dispatch/context.ts";
import { InboundDispatcher } from "../../core/dispatch/dispatcher.ts";
import type { DispatcherOptions } from "../../core/dispatch/dispatcher_options.ts";
import type { OutcomeReport, RunReport } from "../../core/dispatch/outcomes.ts";
import type { Route } from "../../core/dispatch/route.ts";
import type { Envelope, EnvelopeInit } from "../../core/envelope.ts";
import type { LogFields, Logger } from "../../core/logger.ts";
import type { Store } from "../../core/store/contract.ts";
import { MemoryStore, type MemoryStoreOptions } from "../../core/store/memory_store.ts";
import type { AnyTopics } from "../../core/topics.ts";
import { FakeBroker, type FakeOptions } from "../support/fake_broker.ts";
import { VirtualClock } from "../support/virtual_clock.ts";

export type AnyHandler = Handler<Envelope, Context<AnyTopics, undefined>>;

export interface RigOptions
  extends Omit<Partial<DispatcherOptions<AnyTopics, Record<string, unknown>, undefined>>, "broker" | "routes" | "use"> {
  readonly routes: Record<string, AnyHandler | Route>;
  readonly use?: readonly Middleware<Context<AnyTopics, undefined>>[];
  readonly fake?: FakeOptions;
  readonly memory?: MemoryStoreOptions;
}

export interface LogLine {
  readonly level: keyof Logger;
  readonly message: string;
  readonly fields: LogFields | undefined;
}

export class Rig {
  readonly clock: VirtualClock;
  readonly broker: FakeBroker;
  readonly store: Store;
  readonly app: InboundDispatcher;
  readonly outcomes: OutcomeReport[] = [];
  readonly logs: LogLine[] = [];
  #stop = new AbortController();

  constructor(options: RigOptions) {
    const { fake, memory, routes, ...rest } = options;
    this.clock = (options.clock as VirtualClock | undefined) ?? new VirtualClock();
    this.broker = new FakeBroker({ clock: this.clock, ...fake });
    this.store = options.store ?? new MemoryStore({ clock: this.clock, ...memory });
    const log = (level: keyof Logger) => (message: string, fields?: LogFields) =>
      void this.logs.push({ level, message, fields });
    this.app = new InboundDispatcher({
      logger: { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") },
      ...rest,
      broker: this.broker,
      store: this.store,
      clock: this.clock,
      routes: routes as Record<string, AnyHandler>,
      onOutcome: (report) => {
        this.outcomes.push(report);
        return options.onOutcome?.(report);
      },
    }) as unknown as InboundDispatcher;
  }

  /** Outcomes as text, in order. */
  get told(): string[] {
    return this.outcomes.map(({ outcome }) => outcome);
  }

  /** Outcomes other than those after which the event is tried again. */
  get ended(): OutcomeReport[] {
    return this.outcomes.filter(({ outcome }) => outcome !== "retry" && outcome !== "unavailable");
  }

  deliver(type: string, subject?: string, rest: Partial<EnvelopeInit> = {}, topic = "t"): Envelope {
    return this.broker.deliver(topic, { type, ...(subject === undefined ? {} : { subject }), ...rest });
  }

  /** Starts a run; {@link stop} ends it. */
  run(...topics: string[]): Promise<RunReport> {
    this.#stop = new AbortController();
    return this.app.run(topics.length === 0 ? ["t"] : topics, { signal: this.#stop.signal });
  }

  stop(): void {
    this.#stop.abort();
  }

  /** Moves time until so many events have ended. */
  async untilEnded(count: number): Promise<void> {
    await this.clock.advanceUntil(() => this.ended.length >= count);
  }

  /** Runs until everything delivered so far, `count` events, has ended; then stops. */
  async settle(count: number, ...topics: string[]): Promise<RunReport> {
    const run = this.run(...topics);
    await this.untilEnded(count);
    return await this.finish(run);
  }

  /** Stops a run and lets time pass until it has ended. */
  async finish(run: Promise<RunReport>): Promise<RunReport> {
    this.stop();
    let over = false;
    const watched = run.finally(() => {
      over = true;
    });
    watched.catch(() => {});
    await this.clock.flush();
    if (!over) await this.clock.advanceUntil(() => over);
    return await watched;
  }
}

/** Promises that a test settles. */
export function gate<T = void>(): { promise: Promise<T>; open(value: T): void; fail(error: unknown): void } {
  let open: (value: T) => void = () => {};
  let fail: (error: unknown) => void = () => {};
  const promise = new Promise<T>((resolve, reject) => {
    open = resolve;
    fail = reject;
  });
  return { promise, open, fail };
}
