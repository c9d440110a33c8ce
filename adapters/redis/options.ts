import { InvalidOptionError } from "../../core/errors.ts";

/** Options of the Redis Streams transport. Plain data, so that they can cross to a worker. */
export interface RedisTransportOptions {
  /** `redis://` or `rediss://` (TLS), with user, password and database number. Default: what `client` says, else localhost. */
  readonly url?: string;
  /** First part of every key. Default `xsm`. */
  readonly prefix?: string;
  /** Order per subject, one owner a partition (default), or free competition. */
  readonly ordered?: boolean;
  /** How many streams a topic is divided into, 1 to 128. Default 1. Recorded at the server; all users of a topic must agree. */
  readonly partitions?: number;
  /**
   * `ordered: false`: how long a message may stay unsettled without a sign of life before another consumer gets it.
   * `ordered: true`: the same for messages that a consumer of another kind holds in our group. 100 to 86,400,000 ms, default 60,000.
   */
  readonly minIdleMs?: number;
  /** How long one blocking read waits at the server, 10 to 2,000 ms. Default 2,000. */
  readonly blockMs?: number;
  /** How long the owner of a partition may stay silent before another takes over, 300 to 600,000 ms. Default 15,000. */
  readonly ownerLeaseMs?: number;
  /** 1 to 600,000 ms, default 10,000. */
  readonly connectTimeoutMs?: number;
  /** How long any other command may stay unanswered before its connection is replaced, 10 to 600,000 ms. Default 5,000. */
  readonly commandTimeoutMs?: number;
  /** The same for publishing. Default 30,000. */
  readonly publishTimeoutMs?: number;
  /** The largest envelope in bytes; told in the capabilities. Default 1,048,576. */
  readonly maxBytes?: number;
  /**
   * Removes entries older than this, 1,000 ms or more, in a step of its own and never one that a group has not read or has
   * pending; while no group exists, nothing. Default: entries stay.
   */
  readonly retentionMs?: number;
  /**
   * Lets XADD cut the stream at about this many entries, **read or not**: a slow or absent group loses messages for good.
   * Prefer `retentionMs`. Default: none.
   */
  readonly unsafeMaxLen?: number;
  /** Our name in the group, unique among all that run at the same time. Default: host name, process id and a random part. */
  readonly consumer?: string;
  /** Options passed on to ioredis (`tls`, `username`, `sentinels`, `family` …), but for those the transport sets itself. */
  readonly client?: Readonly<Record<string, unknown>>;
}

/** Names of the options that a user of the broker gives; the rest come from its common options. */
export const REDIS_OPTION_NAMES: readonly string[] = [
  "url",
  "prefix",
  "ordered",
  "partitions",
  "minIdleMs",
  "blockMs",
  "ownerLeaseMs",
  "retentionMs",
  "unsafeMaxLen",
  "consumer",
  "client",
];

/** The same with every default filled in. */
export interface ResolvedOptions {
  readonly url: string | undefined;
  readonly prefix: string;
  readonly ordered: boolean;
  readonly partitions: number;
  readonly minIdleMs: number;
  readonly blockMs: number;
  readonly ownerLeaseMs: number;
  readonly connectTimeoutMs: number;
  readonly commandTimeoutMs: number;
  readonly publishTimeoutMs: number;
  readonly maxBytes: number;
  readonly retentionMs: number | undefined;
  readonly unsafeMaxLen: number | undefined;
  readonly consumer: string | undefined;
  readonly client: Readonly<Record<string, unknown>>;
}

/** Client options that would break what the transport promises. */
const OURS: readonly string[] = [
  "autoResendUnfulfilledCommands",
  "autoResubscribe",
  "blockingTimeout",
  "commandTimeout",
  "enableAutoPipelining",
  "enableOfflineQueue",
  "keyPrefix",
  "lazyConnect",
  "maxRetriesPerRequest",
  "monitor",
  "protocol",
  "readOnly",
  "reconnectOnError",
  "replyMapping",
  "retryStrategy",
  "socketTimeout",
  "stringNumbers",
];

function whole(name: string, value: unknown, least: number, most: number): number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < least || value > most) {
    throw new InvalidOptionError(`${name} must be a whole number from ${least} to ${most}`, {
      details: { option: name },
    });
  }
  return value;
}

function text(name: string, value: unknown): string {
  // deno-lint-ignore no-control-regex
  if (typeof value !== "string" || value === "" || value.length > 512 || /[\u0000-\u001f]/.test(value)) {
    throw new InvalidOptionError(`${name} must be a text of 1 to 512 characters without control characters`, {
      details: { option: name },
    });
  }
  return value;
}

/** Checks options and fills in the defaults. No value is ever part of an error. */
export function resolveOptions(options: RedisTransportOptions): ResolvedOptions {
  const { url, client = {} } = options;
  if (url !== undefined && (typeof url !== "string" || !/^rediss?:\/\//.test(url))) {
    throw new InvalidOptionError("url must begin with redis:// or rediss://", { details: { option: "url" } });
  }
  for (const name of Object.keys(client)) {
    if (OURS.includes(name)) {
      throw new InvalidOptionError(`client.${name} is set by the transport and cannot be given`, {
        details: { option: `client.${name}` },
      });
    }
  }
  if (options.ordered !== undefined && typeof options.ordered !== "boolean") {
    throw new InvalidOptionError("ordered must be true or false", { details: { option: "ordered" } });
  }
  const optional = <T>(value: T | undefined, check: (value: T) => T): T | undefined =>
    value === undefined ? undefined : check(value);
  return {
    url,
    prefix: text("prefix", options.prefix ?? "xsm"),
    ordered: options.ordered ?? true,
    partitions: whole("partitions", options.partitions ?? 1, 1, 128),
    minIdleMs: whole("minIdleMs", options.minIdleMs ?? 60_000, 100, 86_400_000),
    blockMs: whole("blockMs", options.blockMs ?? 2_000, 10, 2_000),
    ownerLeaseMs: whole("ownerLeaseMs", options.ownerLeaseMs ?? 15_000, 300, 600_000),
    connectTimeoutMs: whole("connectTimeoutMs", options.connectTimeoutMs ?? 10_000, 1, 600_000),
    commandTimeoutMs: whole("commandTimeoutMs", options.commandTimeoutMs ?? 5_000, 10, 600_000),
    publishTimeoutMs: whole("publishTimeoutMs", options.publishTimeoutMs ?? 30_000, 10, 600_000),
    maxBytes: whole("maxBytes", options.maxBytes ?? 1_048_576, 1, 512 * 1024 * 1024),
    retentionMs: optional(options.retentionMs, (ms) => whole("retentionMs", ms, 1_000, Number.MAX_SAFE_INTEGER)),
    unsafeMaxLen: optional(options.unsafeMaxLen, (max) => whole("unsafeMaxLen", max, 1, Number.MAX_SAFE_INTEGER)),
    consumer: optional(options.consumer, (name) => text("consumer", name)),
    client,
  };
}
