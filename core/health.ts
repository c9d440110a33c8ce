import type { Clock } from "./clock.ts";
import type { HealthReport, TopicHealth } from "./contract.ts";
import type { EdaError } from "./errors.ts";
import { guard } from "./guard.ts";
import type { Logger } from "./logger.ts";

/** Called by {@link Health} on each real transition. */
export interface HealthCallbacks {
  /** A broker call failed while all was well. */
  readonly onDisconnect?: ((error: EdaError) => void) | undefined;
  /** A broker call succeeded after that. */
  readonly onReconnect?: (() => void) | undefined;
}

/**
 * Whether the broker answers, as one state machine:
 * `idle` -(first success)-> `healthy` -(broker fault)-> `unhealthy` -(success)-> `healthy`; any -(close)-> `closed`.
 * Each transition is told once; a callback that throws is logged.
 */
export class Health {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #callbacks: HealthCallbacks;
  readonly #isolation: "worker" | "inline";
  readonly #counters: Record<string, number> = {};
  #status: HealthReport["status"] = "idle";
  #since: number;
  #error: EdaError | undefined;

  constructor(clock: Clock, logger: Logger, callbacks: HealthCallbacks, isolation: "worker" | "inline") {
    this.#clock = clock;
    this.#logger = logger;
    this.#callbacks = callbacks;
    this.#isolation = isolation;
    this.#since = clock.now();
  }

  /** Whether the last broker call succeeded. */
  get healthy(): boolean {
    return this.#status === "healthy";
  }

  /** A broker call failed. */
  down(error: EdaError): void {
    if (this.#status === "closed") return;
    this.#error = error;
    if (this.#status === "unhealthy") return;
    this.#turn("unhealthy");
    this.count("disconnects");
    this.#logger.warn("broker unavailable", { code: error.code, error: error.name });
    guard(this.#logger, "onDisconnect", () => this.#callbacks.onDisconnect?.(error));
  }

  /** A broker call succeeded. */
  up(): void {
    if (this.#status === "closed" || this.#status === "healthy") return;
    const was = this.#status;
    this.#turn("healthy");
    this.#error = undefined;
    if (was !== "unhealthy") return;
    this.count("reconnects");
    this.#logger.info("broker available again");
    guard(this.#logger, "onReconnect", () => this.#callbacks.onReconnect?.());
  }

  /** For good. */
  close(): void {
    if (this.#status !== "closed") this.#turn("closed");
  }

  #turn(status: HealthReport["status"]): void {
    this.#status = status;
    this.#since = this.#clock.now();
  }

  /** Adds to a named counter. */
  count(name: string, by = 1): void {
    this.#counters[name] = (this.#counters[name] ?? 0) + by;
  }

  /** How things stand. */
  report(topics: readonly TopicHealth[]): HealthReport {
    const error = this.#error;
    return {
      status: this.#status,
      isolation: this.#isolation,
      since: this.#since,
      ...(error === undefined ? {} : { error: { code: error.code, name: error.name } }),
      topics,
      counters: { ...this.#counters },
    };
  }
}
