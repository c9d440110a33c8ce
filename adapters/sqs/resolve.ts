import { InvalidOptionError } from "../../core/errors.ts";
import { checkRange } from "../../core/options.ts";
import { parseBrokerUrl } from "../../core/url.ts";
import { MOST_BYTES } from "./limits.ts";
import { isQueueUrl, queueNameProblem } from "./names.ts";
import type { SqsTransportOptions } from "./options.ts";

/** The same with every default filled in. */
export interface ResolvedOptions {
  readonly endpoint: string | undefined;
  readonly region: string | undefined;
  /** `undefined` = the default, true, but an existing standard queue is not passed over. */
  readonly ordered: boolean | undefined;
  readonly queues: Readonly<Record<string, string>>;
  readonly create: boolean;
  readonly visibilityTimeoutMs: number;
  /** Already cut to half of the visibility timeout. */
  readonly waitMs: number;
  readonly connectTimeoutMs: number;
  readonly commandTimeoutMs: number;
  readonly maxBytes: number;
  readonly client: Readonly<Record<string, unknown>>;
}

/** Client options that would break what the transport promises, or that have an option of their own here. */
const OURS: readonly string[] = [
  "apiVersion",
  "endpoint",
  "maxAttempts",
  "md5",
  "region",
  "retryMode",
  "retryStrategy",
  "useQueueUrlAsEndpoint",
];

function wrong(option: string, must: string): InvalidOptionError {
  return new InvalidOptionError(`${option} must ${must}`, { details: { option } });
}

function flag(option: string, value: unknown): void {
  if (value !== undefined && typeof value !== "boolean") throw wrong(option, "be true or false");
}

/** Whole seconds, since that is what SQS counts in. */
function seconds(option: string, value: unknown, least: number, most: number): number {
  const ms = checkRange(option, value, least, most);
  if (ms % 1_000 !== 0) throw wrong(option, "be whole seconds, a multiple of 1,000");
  return ms;
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Endpoint and region out of a `sqs:` URL. */
function fromUrl(url: unknown): { readonly endpoint: string | undefined; readonly region: string | undefined } {
  const { scheme, hosts, username, password, path, query } = parseBrokerUrl(url as string);
  if (scheme !== "sqs") throw wrong("url", "begin with sqs:");
  if (username !== undefined || password !== undefined) {
    throw wrong(
      "url",
      "hold no credentials: the SDK finds them by itself, or give them through client or clientModule",
    );
  }
  if (hosts.length > 1) throw wrong("url", "name one host at most");
  if (path !== undefined && path !== "") throw wrong("url", "have no path: queues are found by their topics' names");
  for (const name of query.keys()) {
    if (name !== "region" && name !== "tls") {
      throw wrong("url", "have no other options in its query than region and tls");
    }
  }
  const tls = query.get("tls") ?? "true";
  if (tls !== "true" && tls !== "false") throw wrong("url", "say tls=true or tls=false");
  const [host] = hosts;
  if (host === undefined) return { endpoint: undefined, region: query.get("region") };
  const name = host.host.includes(":") ? `[${host.host}]` : host.host;
  const port = host.port === undefined ? "" : `:${host.port}`;
  return { endpoint: `${tls === "true" ? "https" : "http"}://${name}${port}`, region: query.get("region") };
}

function endpointOf(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== "string" || !/^https?:\/\//.test(value) || !URL.canParse(value)) {
    throw wrong("endpoint", "be a URL that begins with https:// or http://");
  }
  const { username, password } = new URL(value);
  if (username !== "" || password !== "") throw wrong("endpoint", "hold no credentials");
  return value;
}

function queuesOf(value: unknown): Readonly<Record<string, string>> {
  if (value === undefined) return {};
  if (!isPlainObject(value)) throw wrong("queues", "be an object of queue names or URLs by topic");
  for (const queue of Object.values(value)) {
    if (typeof queue !== "string") throw wrong("queues", "be an object of queue names or URLs by topic");
    const problem = isQueueUrl(queue) ? undefined : queueNameProblem(queue);
    if (problem !== undefined) throw wrong("queues", `hold URLs or names of queues: ${problem}`);
  }
  return value as Readonly<Record<string, string>>;
}

/** Checks options and fills in the defaults. No value is ever part of an error. */
export function resolveOptions(options: SqsTransportOptions): ResolvedOptions {
  const { url, region, client = {} } = options;
  if (!isPlainObject(client)) throw wrong("client", "be an object of options of SQSClient");
  for (const name of Object.keys(client)) {
    if (OURS.includes(name)) {
      throw new InvalidOptionError(`client.${name} is set by the transport and cannot be given`, {
        details: { option: `client.${name}` },
      });
    }
  }
  if (region !== undefined && (typeof region !== "string" || !/^[a-z0-9-]{1,64}$/.test(region))) {
    throw wrong("region", "be the name of a region, such as eu-central-1");
  }
  flag("ordered", options.ordered);
  flag("create", options.create);
  const endpoint = endpointOf(options.endpoint);
  const given = url === undefined ? undefined : fromUrl(url);
  if (given?.endpoint !== undefined && endpoint !== undefined) {
    throw wrong("endpoint", "not be given beside a host in url");
  }
  if (given?.region !== undefined && region !== undefined) throw wrong("region", "not be given beside a region in url");
  const visibilityTimeoutMs = seconds("visibilityTimeoutMs", options.visibilityTimeoutMs ?? 30_000, 2_000, 43_200_000);
  const waitMs = seconds("waitMs", options.waitMs ?? 20_000, 1_000, 20_000);
  return {
    endpoint: endpoint ?? given?.endpoint,
    region: region ?? given?.region,
    ordered: options.ordered,
    queues: queuesOf(options.queues),
    create: options.create ?? true,
    visibilityTimeoutMs,
    waitMs: Math.min(waitMs, Math.floor(visibilityTimeoutMs / 2_000) * 1_000),
    connectTimeoutMs: checkRange("connectTimeoutMs", options.connectTimeoutMs ?? 10_000, 1, 3_600_000),
    commandTimeoutMs: checkRange("commandTimeoutMs", options.commandTimeoutMs ?? 5_000, 1, 3_600_000),
    maxBytes: checkRange("maxBytes", options.maxBytes ?? MOST_BYTES, 1, 134_217_728),
    client,
  };
}
