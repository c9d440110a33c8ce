import { InvalidOptionError } from "../../core/errors.ts";
import { checkOneOf, checkRange } from "../../core/options.ts";
import { parseBrokerUrl } from "../../core/url.ts";
import type { NatsTransportOptions } from "./options.ts";

/** The same with every default filled in. */
export interface ResolvedOptions {
  /** `host:port`, one or more. */
  readonly servers: readonly string[];
  readonly user: string | undefined;
  readonly password: string | undefined;
  /** Whether the URL asks for TLS. */
  readonly tls: boolean;
  readonly ordered: boolean;
  readonly partitions: number;
  readonly create: boolean;
  readonly ackWaitMs: number;
  readonly ownerLeaseMs: number;
  readonly storage: "file" | "memory";
  readonly replicas: number;
  readonly duplicateWindowMs: number;
  readonly unsafeMaxAgeMs: number | undefined;
  readonly bucket: string;
  readonly domain: string | undefined;
  readonly consumer: string | undefined;
  readonly credentialsFile: string | undefined;
  readonly nkeySeed: string | undefined;
  readonly connectTimeoutMs: number;
  readonly commandTimeoutMs: number;
  readonly publishTimeoutMs: number;
  readonly maxBytes: number;
  readonly client: Readonly<Record<string, unknown>>;
}

/** Client options that would break what the transport promises. */
const OURS: readonly string[] = [
  "ignoreAuthErrorAbort",
  "maxReconnectAttempts",
  "noEcho",
  "port",
  "reconnect",
  "reconnectDelayHandler",
  "reconnectJitter",
  "reconnectJitterTLS",
  "reconnectTimeWait",
  "reconnectToServer",
  "servers",
  "timeout",
  "verbose",
  "waitOnFirstConnect",
];

function wrong(option: string, what: string): InvalidOptionError {
  return new InvalidOptionError(`${option} must be ${what}`, { details: { option } });
}

function flag(name: string, value: unknown): boolean {
  if (typeof value !== "boolean") throw wrong(name, "true or false");
  return value;
}

function text(name: string, value: unknown): string {
  // deno-lint-ignore no-control-regex
  if (typeof value !== "string" || value === "" || value.length > 512 || /[\u0000-\u001f]/.test(value)) {
    throw wrong(name, "a text of 1 to 512 characters without control characters");
  }
  return value;
}

/** The servers and credentials that a URL names. */
function addressOf(url: string | undefined): Pick<ResolvedOptions, "servers" | "user" | "password" | "tls"> {
  if (url === undefined) return { servers: ["127.0.0.1:4222"], user: undefined, password: undefined, tls: false };
  const parsed = parseBrokerUrl(url);
  if (parsed.scheme !== "nats" && parsed.scheme !== "tls") throw wrong("url", "one that begins with nats:// or tls://");
  if ((parsed.path ?? "") !== "" || parsed.query.size > 0) {
    throw wrong("url", "scheme, user and hosts only: options are given beside it");
  }
  const servers = parsed.hosts.map(({ host, port }) => `${host.includes(":") ? `[${host}]` : host}:${port ?? 4222}`);
  return { servers, user: parsed.username, password: parsed.password, tls: parsed.scheme === "tls" };
}

/** Checks options and fills in the defaults. No value is ever part of an error. */
export function resolveOptions(options: NatsTransportOptions): ResolvedOptions {
  const { client = {} } = options;
  if (typeof client !== "object" || client === null || Array.isArray(client)) {
    throw wrong("client", "an object of options of @nats-io/transport-node");
  }
  const taken = Object.keys(client).find((name) => OURS.includes(name));
  if (taken !== undefined) {
    throw new InvalidOptionError(`client.${taken} is set by the transport and cannot be given`, {
      details: { option: `client.${taken}` },
    });
  }
  const bucket: unknown = options.bucket ?? "xsm";
  if (typeof bucket !== "string" || !/^[\w-]{1,32}$/.test(bucket)) {
    throw wrong("bucket", "a text of 1 to 32 letters, digits, _ and -");
  }
  const domain: unknown = options.domain;
  if (domain !== undefined && (typeof domain !== "string" || !/^[\w-]{1,64}$/.test(domain))) {
    throw wrong("domain", "a text of 1 to 64 letters, digits, _ and -");
  }
  const optional = <T>(value: T | undefined, check: (value: T) => T): T | undefined =>
    value === undefined ? undefined : check(value);
  const day = 86_400_000;
  return {
    ...addressOf(options.url),
    ordered: flag("ordered", options.ordered ?? true),
    partitions: checkRange("partitions", options.partitions ?? 1, 1, 128),
    create: flag("create", options.create ?? true),
    ackWaitMs: checkRange("ackWaitMs", options.ackWaitMs ?? 30_000, 100, day),
    ownerLeaseMs: checkRange("ownerLeaseMs", options.ownerLeaseMs ?? 15_000, 300, 600_000),
    storage: checkOneOf("storage", options.storage ?? "file", ["file", "memory"]),
    replicas: checkRange("replicas", options.replicas ?? 1, 1, 5),
    duplicateWindowMs: checkRange("duplicateWindowMs", options.duplicateWindowMs ?? 120_000, 100, day),
    unsafeMaxAgeMs: optional(
      options.unsafeMaxAgeMs,
      (ms) => checkRange("unsafeMaxAgeMs", ms, 1_000, 9_000_000_000_000),
    ),
    bucket,
    domain: domain as string | undefined,
    consumer: optional(options.consumer, (name) => text("consumer", name)),
    credentialsFile: optional(options.credentialsFile, (path) => text("credentialsFile", path)),
    nkeySeed: optional(options.nkeySeed, (seed) => text("nkeySeed", seed)),
    connectTimeoutMs: checkRange("connectTimeoutMs", options.connectTimeoutMs ?? 10_000, 1, 600_000),
    commandTimeoutMs: checkRange("commandTimeoutMs", options.commandTimeoutMs ?? 5_000, 10, 600_000),
    publishTimeoutMs: checkRange("publishTimeoutMs", options.publishTimeoutMs ?? 30_000, 10, 600_000),
    maxBytes: checkRange("maxBytes", options.maxBytes ?? 1_048_576, 1, 512 * 1024 * 1024),
    client,
  };
}
