/**
 * Puts the parts of a dispatcher together.
 *
 * @module
 */
import { Circuit } from "../circuit.ts";
import { systemClock } from "../clock.ts";
import { decodeEnvelope } from "../codec.ts";
import type { BrokerAdapter } from "../contract.ts";
import type { Envelope } from "../envelope.ts";
import { createIdSource } from "../ids.ts";
import { type Logger, resolveLogger } from "../logger.ts";
import { Relay } from "../outbox/relay.ts";
import type { Store, TimerRow } from "../store/contract.ts";
import { MemoryStore } from "../store/memory_store.ts";
import type { Topics } from "../topics.ts";
import type { Target } from "./attempt.ts";
import { Budget } from "./budget.ts";
import type { Handler, Middleware } from "./context.ts";
import { Deadlines } from "./deadlines.ts";
import { type DispatcherOptions, resolveSettings, type Settings } from "./dispatcher_options.ts";
import { Engine } from "./engine.ts";
import { Job, type JobOrigin } from "./job.ts";
import { Lanes } from "./lanes.ts";
import { Tally } from "./outcomes.ts";
import { OutboxWatch } from "./outbox_watch.ts";
import { RetryPolicy } from "./retry_policy.ts";
import type { Route } from "./route.ts";
import { RouteTable } from "./routes.ts";
import type { Services } from "./services.ts";
import { makeTargets } from "./targets.ts";
import { TimerService } from "./timers.ts";

/** Any options; the types are the caller's matter. */
export type AnyOptions = DispatcherOptions<Topics, unknown, unknown>;

/** Backoff of the store's circuit, ms. */
const CIRCUIT = { threshold: 5, baseMs: 500, capMs: 30_000 } as const;

/** All parts of one dispatcher. */
export class Parts {
  readonly settings: Settings;
  readonly broker: BrokerAdapter;
  readonly services: Services;
  readonly tally: Tally = new Tally();
  readonly budget: Budget;
  readonly engine: Engine;
  readonly lanes: Lanes;
  readonly timers: TimerService;
  readonly relay: Relay | undefined;
  readonly watch: OutboxWatch;
  readonly #table: RouteTable<Target>;
  readonly #machines: readonly Target[];
  #seq = 0;

  constructor(options: AnyOptions) {
    this.settings = resolveSettings(options);
    this.broker = options.broker as unknown as BrokerAdapter;
    const clock = options.clock ?? systemClock;
    const log = resolveLogger(options.logger);
    this.budget = new Budget(clock);
    this.services = this.#makeServices(options, log);
    const { store, circuit } = this.services;
    const routes = options.routes as Record<string, Handler | Route>;
    this.#table = new RouteTable(makeTargets(routes, (options.use ?? []) as readonly Middleware[]));
    this.#machines = [...this.#table.targets()].filter((target) => target.ownsTimer !== undefined);
    this.engine = new Engine({
      services: this.services,
      tally: this.tally,
      policy: new RetryPolicy(clock, this.settings.retry),
      maxAttempts: this.settings.maxAttempts,
      onUnknown: this.settings.onUnknown,
      onOutcome: options.onOutcome,
      resolve: (type) => this.#table.resolve(type),
      timerTarget: (owner) => this.#timerTarget(owner),
      trustsDeliveries: () => !store.durable && this.broker.capabilities.deliveryCount === "exact",
    });
    this.lanes = new Lanes({
      clock,
      budget: this.budget,
      maxInFlight: this.settings.maxInFlight,
      mayStart: () => circuit.allows(),
      start: (lane, job) => this.engine.start(lane, job),
      lost: (job) => this.engine.drop(job, "lost"),
    });
    this.engine.attach(this.lanes);
    this.timers = new TimerService({
      services: this.services,
      owns: (owner) => this.#timerTarget(owner) !== undefined,
      offer: (row, ended) => this.#offerTimer(row, ended),
      fired: () => void this.tally.timers++,
    });
    this.relay = this.#makeRelay(options, log);
    this.watch = new OutboxWatch(this.services);
  }

  /** A new job, in order of arrival. */
  job(topic: string, envelope: Envelope, origin: JobOrigin): Job {
    return new Job(topic, envelope, this.services.consumer, origin, this.#seq++, this.services.clock.monotonic());
  }

  #makeServices(options: AnyOptions, log: Logger): Services {
    const clock = options.clock ?? systemClock;
    const { settings, broker } = this;
    const nextId = createIdSource(clock);
    const store: Store<unknown> = options.store ?? new MemoryStore({ clock }) as Store<unknown>;
    const circuit = new Circuit({
      clock,
      ...CIRCUIT,
      onProbe: () => this.lanes.drain(),
      onChange: (state) => {
        if (state === "open") log.error("the store is down; handlers pause until it answers", { circuit: state });
        else {
          log.warn("the store answers again", { circuit: state });
          this.lanes.storeIsBack();
        }
      },
    });
    return {
      clock,
      log,
      store,
      circuit,
      deadlines: new Deadlines(clock, settings.handlerTimeoutMs),
      consumer: options.consumer ?? broker.group ?? "default",
      topics: broker.topics,
      defaults: { source: options.source ?? broker.source, now: () => clock.now(), nextId },
      nextId,
      maxBytes: settings.maxBytes,
      inboxRetentionMs: settings.inboxRetentionMs,
      handlerTimeoutMs: settings.handlerTimeoutMs,
      keepBodies: settings.keepBodies,
      timerSet: (dueAt) => this.timers.hint(dueAt),
    };
  }

  #makeRelay(options: AnyOptions, log: Logger): Relay | undefined {
    if (options.relay === false) return undefined;
    const { store, clock, consumer, nextId } = this.services;
    return new Relay({
      outbox: store.outbox,
      broker: options.relay ?? this.broker,
      clock,
      log,
      owner: `${consumer}:${nextId()}`,
      onPublished: (count) => void (this.tally.relayed += count),
      onParked: (count) => void (this.tally.parked += count),
    });
  }

  #timerTarget(owner: string): Target | undefined {
    return this.#machines.find((target) => target.ownsTimer?.(owner));
  }

  #offerTimer(row: TimerRow, ended: () => void): void {
    const envelope = decodeEnvelope(row.envelope, { maxBytes: Number.MAX_SAFE_INTEGER });
    this.lanes.offer(this.job("", envelope, { timer: row, ended }));
  }
}
