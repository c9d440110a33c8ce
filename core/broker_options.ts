import type { Clock } from "./clock.ts";
import type { UndecodableSink } from "./contract.ts";
import { type EdaError, InvalidOptionError } from "./errors.ts";
import type { Logger } from "./logger.ts";
import { checkName, checkRange } from "./options.ts";
import type { SessionOptions } from "./session/session.ts";
import { type AnyTopics, checkTopics, type Topics } from "./topics.ts";

/** Options that every broker takes. */
export interface BrokerOptions<T extends Topics = AnyTopics> {
  /** Typed topics, see `defineTopics`. Default: any topic, unknown data. */
  readonly topics?: T;
  /** Consumer group. No default: two services that share one would each get half. */
  readonly group?: string;
  /** `source` of envelopes published here, a URI reference. Default: none, then each message must carry its own. */
  readonly source?: string;
  /** Largest envelope in UTF-8 bytes, both ways. Default 1,048,576; 1,024 to 134,217,728. */
  readonly maxBytes?: number;
  /** Most messages held unsettled a topic, 1 to 10,000. Default 256, unordered 64. */
  readonly prefetch?: number;
  /** Deadline of a publish, from sending, ms. Default 30,000. */
  readonly publishTimeoutMs?: number;
  /** Deadline of connecting, ms. Default 10,000. */
  readonly connectTimeoutMs?: number;
  /** Deadline of every other broker call, ms. Default 10,000. */
  readonly callTimeoutMs?: number;
  /** Where undecodable messages are recorded. Default: a logged warning, or the dispatcher's store. */
  readonly deadLetters?: UndecodableSink;
  /** Whether the exact bytes of an undecodable message go into its record. Default false. */
  readonly keepCorruptBodies?: boolean;
  /** Console-like; `false` = silent. Default: warnings and errors to the console. */
  readonly logger?: Logger | false;
  /** The broker stopped answering. */
  readonly onDisconnect?: (error: EdaError) => void;
  /** It answers again. */
  readonly onReconnect?: () => void;
  /** Settles that did not take effect: those messages come again. */
  readonly onSettleError?: (report: SettleErrorReport) => void;
  /** A message that is no envelope was met. */
  readonly onUndecodable?: (report: { readonly topic: string; readonly error: EdaError }) => void;
  /** Time, timers and randomness; for tests. */
  readonly clock?: Clock;
}

/** What `onSettleError` is told. */
export interface SettleErrorReport {
  readonly topic: string;
  readonly group: string;
  /** How many settles. */
  readonly count: number;
  readonly why: string;
}

/** Options that brokers with a worker take as well. */
export interface WorkerOptions {
  /** `worker` (default): connection, leases and heartbeats in a Web Worker · `inline`: in this thread, and stopped with it. */
  readonly isolation?: "worker" | "inline";
  /** The worker to use instead of the adapter's own, for bundlers. A factory must return at once, never a promise. */
  readonly worker?: URL | (() => unknown);
  /** A module the worker imports; its `clientOptions()` adds client options that hold functions (credentials providers). */
  readonly clientModule?: URL;
  /** Without a sign of life from this thread for so long, it is taken for hung and everything is given back, ms. Default 300,000. */
  readonly maxStallMs?: number;
  /**
   * Whether a broker with nothing to do keeps its connection, and with it the process. Default true: end it with `close()`.
   * `false`: with no call unanswered and no subscription open for 200 ms, connection and worker are closed, so that the process
   * can end without `close()`; the next call starts them again. For scripts. A subscription that was left counts for 5 s.
   */
  readonly keepAlive?: boolean;
}

/** Names of {@link BrokerOptions}, to refuse unknown ones. */
export const BROKER_OPTION_NAMES: readonly string[] = [
  "topics",
  "group",
  "source",
  "maxBytes",
  "prefetch",
  "publishTimeoutMs",
  "connectTimeoutMs",
  "callTimeoutMs",
  "deadLetters",
  "keepCorruptBodies",
  "logger",
  "onDisconnect",
  "onReconnect",
  "onSettleError",
  "onUndecodable",
  "clock",
];

/** Names of {@link WorkerOptions}. */
export const WORKER_OPTION_NAMES: readonly string[] = [
  "isolation",
  "worker",
  "clientModule",
  "maxStallMs",
  "keepAlive",
];

/** Options that are functions. */
const CALLBACKS = ["onDisconnect", "onReconnect", "onSettleError", "onUndecodable"] as const;

/**
 * The session's settings out of a broker's options, all of which are checked on the way.
 *
 * @throws InvalidOptionError
 */
export function sessionOptions(options: BrokerOptions<Topics> & WorkerOptions): SessionOptions {
  const { topics, group, source, prefetch, deadLetters, clock } = options;
  if (topics !== undefined) checkTopics(topics);
  if (group !== undefined) checkName("group", group);
  if (source !== undefined && typeof source !== "string") throw wrong("source", "a text, a URI reference");
  if (prefetch !== undefined) checkRange("prefetch", prefetch, 1, 10_000);
  if (deadLetters !== undefined && typeof (deadLetters as Partial<UndecodableSink>)?.recordUndecodable !== "function") {
    throw wrong("deadLetters", "an object with the method recordUndecodable, such as a store's");
  }
  if (clock !== undefined && !isObject(clock)) throw wrong("clock", "a Clock");
  for (const name of CALLBACKS) {
    if (options[name] !== undefined && typeof options[name] !== "function") throw wrong(name, "a function");
  }
  const keepCorruptBodies: unknown = options.keepCorruptBodies ?? false;
  if (typeof keepCorruptBodies !== "boolean") throw wrong("keepCorruptBodies", "true or false");
  return {
    maxBytes: checkRange("maxBytes", options.maxBytes ?? 1_048_576, 1_024, 134_217_728),
    publishTimeoutMs: checkRange("publishTimeoutMs", options.publishTimeoutMs ?? 30_000, 1, 3_600_000),
    connectTimeoutMs: checkRange("connectTimeoutMs", options.connectTimeoutMs ?? 10_000, 1, 3_600_000),
    callTimeoutMs: checkRange("callTimeoutMs", options.callTimeoutMs ?? 10_000, 1, 3_600_000),
    maxStallMs: checkRange("maxStallMs", options.maxStallMs ?? 300_000, 1_000, 86_400_000),
    beatMs: 1_000,
    keepCorruptBodies,
  };
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

function wrong(option: string, what: string): InvalidOptionError {
  return new InvalidOptionError(`${option} must be ${what}`, { details: { option } });
}
