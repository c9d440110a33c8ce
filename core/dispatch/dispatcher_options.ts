/**
 * The options of the dispatcher.
 *
 * @module
 */
import type { Clock } from "../clock.ts";
import type { BrokerAdapter } from "../contract.ts";
import { InvalidOptionError } from "../errors.ts";
import type { Logger } from "../logger.ts";
import { checkNumber, checkOneOf, checkOptions, checkRange } from "../options.ts";
import type { Store } from "../store/contract.ts";
import type { Topics } from "../topics.ts";
import type { Context, Middleware, Routes } from "./context.ts";
import type { OutcomeReport } from "./outcomes.ts";
import type { RetryOptions } from "./retry_policy.ts";
import { isRoute } from "./route.ts";

/** Options of the dispatcher. */
export interface DispatcherOptions<T extends Topics, R, Tx> {
  readonly broker: BrokerAdapter<T>;
  /** Handlers and routes by event type, or by pattern (`*` any characters, `?` one). Exact beats the longest pattern. */
  readonly routes: Routes<T, R, Tx>;
  /** Where receipts, snapshots, outbox, timers and dead letters are kept. Default: memory, lost with the process. */
  readonly store?: Store<Tx>;
  /** Names this dispatcher in receipts, failure counts and dead letters. Default: the broker's group, else `"default"`. */
  readonly consumer?: string;
  /** `source` of events that handlers publish without one. Default: the broker's. */
  readonly source?: string;
  /** Middleware around every handler, the first one outermost. */
  readonly use?: readonly Middleware<Context<T, Tx>>[];
  /** Subjects handled at once, 1 to 10,000. Default 16. */
  readonly maxInFlight?: number;
  /** Failures after which an event is given up, 1 to 1,000. Default 5. */
  readonly maxAttempts?: number;
  /** Time limit of a handler, 1 to 86,400,000 ms. Default 900,000. Past it its signal aborts and a failure is counted. */
  readonly handlerTimeoutMs?: number;
  /** How long a stopped run waits for what it has taken, 0 to 3,600,000 ms. Default 10,000. */
  readonly drainMs?: number;
  /** What happens to an event that no route takes. Default `"dead_letter"`. */
  readonly onUnknown?: "dead_letter" | "ignore";
  /**
   * After a dead letter, later events of its subject go on (`"continue"`, default), or are set aside until somebody releases
   * them (`"park"`, which needs a store with a deferred list: the memory store has none).
   */
  readonly onDeadLetter?: "continue" | "park";
  /** Where the store's outbox is published while `run` goes on: another broker, or `false` for nowhere. Default: the broker. */
  readonly relay?: false | BrokerAdapter;
  /** Whether dead letters keep the intact envelope, which replay needs. Default true. */
  readonly keepBodies?: boolean;
  /** Waits between attempts, with full jitter. */
  readonly retry?: RetryOptions;
  /**
   * How long an event is known as handled, 60,000 ms or more, and not shorter than `handlerTimeoutMs` or the time in which
   * the broker itself drops duplicates. Default 604,800,000 (7 days). A duplicate that comes later runs again.
   */
  readonly inboxRetentionMs?: number;
  /** Largest envelope that a handler may publish, UTF-8 bytes. Default 1,048,576. */
  readonly maxBytes?: number;
  /** Console-like; `false` = silent. Default: warnings and errors to the console. */
  readonly logger?: Logger | false;
  /** Told every outcome. What it throws is logged. */
  readonly onOutcome?: (report: OutcomeReport) => void;
  /** Time, timers and randomness; for tests. */
  readonly clock?: Clock;
}

/** Settings with their defaults. */
export interface Settings {
  readonly maxInFlight: number;
  readonly maxAttempts: number;
  readonly handlerTimeoutMs: number;
  readonly drainMs: number;
  readonly onUnknown: "dead_letter" | "ignore";
  readonly keepBodies: boolean;
  readonly inboxRetentionMs: number;
  readonly maxBytes: number;
  readonly retry: Required<RetryOptions>;
}

const NAMES: readonly (keyof DispatcherOptions<Topics, unknown, unknown>)[] = [
  "broker",
  "clock",
  "consumer",
  "drainMs",
  "handlerTimeoutMs",
  "inboxRetentionMs",
  "keepBodies",
  "logger",
  "maxAttempts",
  "maxBytes",
  "maxInFlight",
  "onDeadLetter",
  "onOutcome",
  "onUnknown",
  "relay",
  "retry",
  "routes",
  "source",
  "store",
  "use",
];

const HOUR_MS = 3_600_000;

/** Checks the options and fills in the defaults. Nothing here does I/O. */
export function resolveSettings(options: DispatcherOptions<Topics, unknown, unknown>): Settings {
  checkOptions("InboundDispatcher", options, NAMES);
  if (options.broker === undefined) throw new InvalidOptionError("broker is missing: the adapter to consume from");
  checkRoutes(options.routes);
  for (const [at, step] of (options.use ?? []).entries()) {
    if (typeof step !== "function") throw new InvalidOptionError(`use[${at}] must be a function`);
  }
  if (checkOneOf("onDeadLetter", options.onDeadLetter ?? "continue", ["continue", "park"]) === "park") {
    throw new InvalidOptionError('onDeadLetter: "park" needs a store with a deferred list, and there is none yet');
  }
  if (options.consumer === "") throw new InvalidOptionError("consumer must not be empty");
  const handlerTimeoutMs = checkRange("handlerTimeoutMs", options.handlerTimeoutMs ?? 900_000, 1, 24 * HOUR_MS);
  const retry = options.retry ?? {};
  checkOptions("retry", retry, ["baseMs", "capMs", "factor"]);
  return {
    maxInFlight: checkRange("maxInFlight", options.maxInFlight ?? 16, 1, 10_000),
    maxAttempts: checkRange("maxAttempts", options.maxAttempts ?? 5, 1, 1_000),
    handlerTimeoutMs,
    drainMs: checkRange("drainMs", options.drainMs ?? 10_000, 0, HOUR_MS),
    onUnknown: checkOneOf("onUnknown", options.onUnknown ?? "dead_letter", ["dead_letter", "ignore"]),
    keepBodies: options.keepBodies ?? true,
    inboxRetentionMs: checkRetention(options, handlerTimeoutMs),
    maxBytes: checkRange("maxBytes", options.maxBytes ?? 1_048_576, 1_024, 134_217_728),
    retry: {
      baseMs: checkRange("retry.baseMs", retry.baseMs ?? 200, 1, HOUR_MS),
      factor: checkNumber("retry.factor", retry.factor ?? 2, 1, 10),
      capMs: checkRange("retry.capMs", retry.capMs ?? 30_000, 1, HOUR_MS),
    },
  };
}

function checkRoutes(routes: unknown): void {
  if (typeof routes !== "object" || routes === null) {
    throw new InvalidOptionError("routes is missing: an object of event types or patterns and their handlers");
  }
  for (const [key, target] of Object.entries(routes)) {
    if (typeof target === "function" || isRoute(target)) continue;
    throw new InvalidOptionError(`routes["${key}"] must be a handler function or a route such as machine(…)`);
  }
}

/** A receipt must outlive every way in which its event can come again by itself. */
function checkRetention(options: DispatcherOptions<Topics, unknown, unknown>, handlerTimeoutMs: number): number {
  const least = Math.max(60_000, handlerTimeoutMs, options.broker.capabilities.dedupWindowMs);
  return checkRange("inboxRetentionMs", options.inboxRetentionMs ?? Math.max(168 * HOUR_MS, least), least, 1e14);
}
