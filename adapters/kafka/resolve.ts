import { InvalidOptionError } from "../../core/errors.ts";
import { checkOneOf, checkRange } from "../../core/options.ts";
import { parseBrokerUrl } from "../../core/url.ts";
import type { KafkaCompression, KafkaTransportOptions } from "./options.ts";

/** The same with every default filled in. */
export interface ResolvedOptions {
  readonly brokers: readonly string[];
  readonly partitions: number | undefined;
  readonly replicationFactor: number | undefined;
  readonly createTopics: boolean;
  readonly topicConfig: Readonly<Record<string, string>>;
  readonly sessionTimeoutMs: number;
  readonly rebalanceTimeoutMs: number;
  readonly maxUncommitted: number;
  /** Its number on the wire. */
  readonly compression: number;
  readonly connectTimeoutMs: number;
  readonly commandTimeoutMs: number;
  readonly publishTimeoutMs: number;
  readonly maxBytes: number;
  readonly client: Readonly<Record<string, unknown>>;
}

/** Client options that would break what the transport promises. */
const OURS: readonly string[] = [
  "brokers",
  "connectionTimeout",
  "enforceRequestTimeout",
  "logCreator",
  "logLevel",
  "requestTimeout",
  "retry",
  "socketFactory",
];

/** At the number that stands on the wire. */
const COMPRESSIONS: readonly KafkaCompression[] = ["none", "gzip", "snappy", "lz4", "zstd"];

const PORT = 9092;

function wrong(option: string, what: string): InvalidOptionError {
  return new InvalidOptionError(`${option} must be ${what}`, { details: { option } });
}

function brokersOf({ url, brokers }: KafkaTransportOptions): readonly string[] {
  if (url !== undefined && brokers !== undefined) {
    throw new InvalidOptionError("url and brokers name the same thing: give one of them", {
      details: { option: "brokers" },
    });
  }
  if (url === undefined) {
    const list: unknown = brokers ?? [`127.0.0.1:${PORT}`];
    const isBroker = (item: unknown): boolean => typeof item === "string" && /^[^\s/@,]+:\d{1,5}$/.test(item);
    if (!Array.isArray(list) || list.length === 0 || !list.every(isBroker)) {
      throw wrong("brokers", "a list of texts of the form host:port");
    }
    return [...list] as string[];
  }
  const { scheme, hosts, username, password, path, query } = parseBrokerUrl(url);
  if (scheme !== "kafka") throw wrong("url", "a text that begins with kafka://");
  if (username !== undefined || password !== undefined) {
    throw new InvalidOptionError("url: credentials belong into client.sasl, which names their mechanism as well", {
      details: { option: "url" },
    });
  }
  if ((path !== undefined && path !== "") || query.size > 0) {
    throw new InvalidOptionError("url: names brokers only; options go beside it", { details: { option: "url" } });
  }
  return hosts.map(({ host, port }) => `${host.includes(":") ? `[${host}]` : host}:${port ?? PORT}`);
}

function configOf(config: unknown): Readonly<Record<string, string>> {
  if (
    typeof config !== "object" || config === null || Array.isArray(config) ||
    !Object.values(config).every((value) => typeof value === "string")
  ) {
    throw wrong("topicConfig", "an object of texts");
  }
  return config as Readonly<Record<string, string>>;
}

/** Checks options and fills in the defaults. No value is ever part of an error. */
export function resolveOptions(options: KafkaTransportOptions): ResolvedOptions {
  const { client = {}, createTopics = true } = options;
  if (typeof client !== "object" || client === null || Array.isArray(client)) {
    throw wrong("client", "an object of options of kafkajs");
  }
  for (const name of Object.keys(client)) {
    if (!OURS.includes(name)) continue;
    throw new InvalidOptionError(`client.${name} is set by the transport and cannot be given`, {
      details: { option: `client.${name}` },
    });
  }
  if (typeof createTopics !== "boolean") throw wrong("createTopics", "true or false");
  const optional = (name: "partitions" | "replicationFactor", most: number): number | undefined =>
    options[name] === undefined ? undefined : checkRange(name, options[name], 1, most);
  return {
    brokers: brokersOf(options),
    partitions: optional("partitions", 10_000),
    replicationFactor: optional("replicationFactor", 32_767),
    createTopics,
    topicConfig: configOf(options.topicConfig ?? {}),
    sessionTimeoutMs: checkRange("sessionTimeoutMs", options.sessionTimeoutMs ?? 15_000, 1_000, 1_800_000),
    rebalanceTimeoutMs: checkRange("rebalanceTimeoutMs", options.rebalanceTimeoutMs ?? 30_000, 1_000, 3_600_000),
    maxUncommitted: checkRange("maxUncommitted", options.maxUncommitted ?? 1_000, 1, 100_000),
    compression: COMPRESSIONS.indexOf(checkOneOf("compression", options.compression ?? "none", COMPRESSIONS)),
    connectTimeoutMs: checkRange("connectTimeoutMs", options.connectTimeoutMs ?? 10_000, 1, 3_600_000),
    commandTimeoutMs: checkRange("commandTimeoutMs", options.commandTimeoutMs ?? 5_000, 1, 3_600_000),
    publishTimeoutMs: checkRange("publishTimeoutMs", options.publishTimeoutMs ?? 30_000, 1, 3_600_000),
    maxBytes: checkRange("maxBytes", options.maxBytes ?? 1_048_576, 1, 134_217_728),
    client,
  };
}
