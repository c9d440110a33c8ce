import { InvalidOptionError } from "../../core/errors.ts";
import type { RedisTransportOptions } from "./options.ts";

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
  if (typeof client !== "object" || client === null || Array.isArray(client)) {
    throw new InvalidOptionError("client must be an object of options of ioredis", { details: { option: "client" } });
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
