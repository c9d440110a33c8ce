import { InvalidOptionError } from "../../core/errors.ts";
import { checkOneOf, checkRange } from "../../core/options.ts";
import { type BrokerUrl, parseBrokerUrl } from "../../core/url.ts";
import type { RabbitMqTransportOptions } from "./options.ts";

/** One server and how to log in there, as amqplib takes it. */
export interface ServerAddress {
  readonly protocol: "amqp" | "amqps";
  readonly hostname: string;
  readonly port: number;
  readonly username: string;
  readonly password: string;
  /** Percent-encoded: the client decodes it. */
  readonly vhost: string;
  /** Seconds. */
  readonly heartbeat: number;
}

/** The same with every default filled in. */
export interface ResolvedOptions {
  readonly servers: readonly ServerAddress[];
  readonly ordered: boolean;
  readonly partitions: number;
  readonly create: boolean;
  readonly exchange: string | undefined;
  readonly bindings: readonly string[];
  readonly reference: boolean;
  readonly deadLetterExchange: string | undefined;
  readonly queueType: "quorum" | "classic";
  /** Arguments of a queue that the caller asked for by name: one that has others is refused. */
  readonly insisted: readonly string[];
  readonly queueArguments: Readonly<Record<string, string | number | boolean>>;
  readonly consumerTimeoutMs: number;
  readonly consumer: string | undefined;
  readonly connectTimeoutMs: number;
  readonly publishTimeoutMs: number;
  readonly maxBytes: number;
  readonly client: Readonly<Record<string, unknown>>;
}

/** Client options that would break what the transport promises. */
const OURS: readonly string[] = [
  "allowHalfOpen",
  "host",
  "lookup",
  "path",
  "port",
  "recovery",
  "signal",
  "socket",
  "timeout",
];

function invalid(option: string, text: string): InvalidOptionError {
  return new InvalidOptionError(text, { details: { option } });
}

function boolean(name: string, value: unknown): boolean {
  if (typeof value !== "boolean") throw invalid(name, `${name} must be true or false`);
  return value;
}

/** A name or pattern of AMQP: 1 to 255 bytes of UTF-8. */
function shortText(name: string, value: unknown): string {
  // deno-lint-ignore no-control-regex
  const fits = typeof value === "string" && value !== "" && !/[\u0000-\u001f]/.test(value) &&
    new TextEncoder().encode(value).byteLength <= 255;
  if (!fits) throw invalid(name, `${name} must be a text of 1 to 255 bytes without control characters`);
  return value;
}

function record(name: string, value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw invalid(name, `${name} must be an object`);
  }
  return value as Readonly<Record<string, unknown>>;
}

function parse(url: unknown): BrokerUrl {
  const parsed = parseBrokerUrl(url as string);
  if (parsed.scheme !== "amqp" && parsed.scheme !== "amqps") {
    throw invalid("url", "url must begin with amqp:// or amqps://");
  }
  const [unknown] = parsed.query.keys();
  if (unknown !== undefined) {
    throw invalid("url", `url: ${unknown} in the query is not used; there are options such as heartbeatMs and client`);
  }
  return parsed;
}

function serversOf(options: RabbitMqTransportOptions): ServerAddress[] {
  const url = parse(options.url ?? "amqp://localhost");
  const heartbeat = checkRange("heartbeatMs", options.heartbeatMs ?? 20_000, 1_000, 600_000);
  const protocol = url.scheme as "amqp" | "amqps";
  const anonymous = url.username === undefined && url.password === undefined;
  return url.hosts.map(({ host, port }) => ({
    protocol,
    hostname: host,
    port: port ?? (protocol === "amqp" ? 5672 : 5671),
    username: anonymous ? "guest" : url.username ?? "",
    password: anonymous ? "guest" : url.password ?? "",
    vhost: encodeURIComponent(url.path === undefined || url.path === "" ? "/" : url.path),
    heartbeat: Math.ceil(heartbeat / 1_000),
  }));
}

function queueArgumentsOf(options: RabbitMqTransportOptions): Record<string, string | number | boolean> {
  const given = record("queueArguments", options.queueArguments ?? {});
  for (const [name, value] of Object.entries(given)) {
    if (!["string", "number", "boolean"].includes(typeof value)) {
      throw invalid("queueArguments", `queueArguments.${name} must be a text, a number, or true or false`);
    }
    if (["x-queue-type", "x-single-active-consumer", "x-dead-letter-exchange"].includes(name)) {
      throw invalid("queueArguments", `queueArguments.${name} has an option of its own`);
    }
  }
  return given as Record<string, string | number | boolean>;
}

/** Checks options and fills in the defaults. No value is ever part of an error. */
export function resolveOptions(options: RabbitMqTransportOptions): ResolvedOptions {
  const client = record("client", options.client ?? {});
  for (const name of Object.keys(client)) {
    if (OURS.includes(name)) {
      throw invalid(`client.${name}`, `client.${name} is set by the transport and cannot be given`);
    }
  }
  const optional = <T>(value: unknown, check: (value: unknown) => T): T | undefined =>
    value === undefined ? undefined : check(value);
  const reference = options.compat !== undefined && checkOneOf("compat", options.compat, ["reference"]) === "reference";
  const ordered = boolean("ordered", options.ordered ?? true);
  const partitions = checkRange("partitions", options.partitions ?? 1, 1, 128);
  if (reference && ordered) {
    throw invalid("ordered", 'ordered must be false with compat: "reference": its consumers compete for one queue');
  }
  if (reference && partitions > 1) throw invalid("partitions", 'partitions must be 1 with compat: "reference"');
  const bindings: unknown = options.bindings ?? ["#"];
  if (!Array.isArray(bindings) || bindings.length === 0) {
    throw invalid("bindings", "bindings must be a list of at least one pattern");
  }
  const exchange = optional(options.exchange, (name) => shortText("exchange", name));
  if (options.bindings !== undefined && exchange === undefined) {
    throw invalid("bindings", "bindings are of an exchange that is there: give exchange too");
  }
  const deadLetterExchange = optional(options.deadLetterExchange, (name) => shortText("deadLetterExchange", name));
  const queueArguments = queueArgumentsOf(options);
  return {
    servers: serversOf(options),
    ordered,
    partitions,
    create: boolean("create", options.create ?? true),
    exchange,
    bindings: bindings.map((pattern) => shortText("bindings", pattern)),
    reference,
    deadLetterExchange,
    queueType: checkOneOf("queueType", options.queueType ?? "quorum", ["quorum", "classic"]),
    insisted: [
      ...(options.queueType === undefined ? [] : ["x-queue-type"]),
      ...(deadLetterExchange === undefined ? [] : ["x-dead-letter-exchange"]),
      ...Object.keys(queueArguments),
    ],
    queueArguments,
    consumerTimeoutMs: checkRange(
      "consumerTimeoutMs",
      options.consumerTimeoutMs ?? 1_800_000,
      1_000,
      Number.MAX_SAFE_INTEGER,
    ),
    consumer: optional(options.consumer, (name) => shortText("consumer", name)),
    connectTimeoutMs: checkRange("connectTimeoutMs", options.connectTimeoutMs ?? 10_000, 1, 3_600_000),
    publishTimeoutMs: checkRange("publishTimeoutMs", options.publishTimeoutMs ?? 30_000, 1, 3_600_000),
    maxBytes: checkRange("maxBytes", options.maxBytes ?? 1_048_576, 1, 536_870_912),
    client,
  };
}
