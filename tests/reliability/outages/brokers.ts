/**
 * The brokers that a run of outages can be made on: a further one is one more entry.
 *
 * @module
 */
import { KafkaBroker } from "../../../adapters/kafka/mod.ts";
import { NatsJetStreamBroker } from "../../../adapters/nats/mod.ts";
import { RabbitMqBroker } from "../../../adapters/rabbitmq/mod.ts";
import { RedisStreamsBroker } from "../../../adapters/redis/mod.ts";
import { SqsBroker } from "../../../adapters/sqs/mod.ts";
import type { AsyncBroker } from "../../../core/broker.ts";
import { openKafkaDoor } from "../../support/kafka_door.ts";
import { type Proxy, type Server, type StartOptions, startProxy } from "../../support/test.ts";
import { KEEPS } from "../../support/bed/sqs_kind.ts";

/** What can happen to a server: SIGKILL and a restart; cut off and refused; silent; SIGSTOP. */
export type OutageKind = "kill" | "cut" | "black hole" | "freeze";

/** What a broker of a run is made with. */
export interface BrokerSettings {
  /** Of the proxy in front of the server. */
  readonly url: string;
  /** Sets the names of this run apart: a prefix, or a part of the topic's name. */
  readonly prefix: string;
  readonly group: string;
  readonly partitions: number;
  readonly prefetch: number;
  readonly isolation: "worker" | "inline";
}

/** A proxy, and how a broker is made that stays behind it. */
export interface Proxied {
  readonly proxy: Proxy;
  readonly url: string;
}

/** One kind of broker. */
export interface BrokerKind {
  /** Starts the server so that what it confirmed survives SIGKILL. */
  readonly start: StartOptions;
  /** Puts a proxy in front of the server; by default before its port. */
  proxy?(server: Server): Promise<Proxied>;
  /** Outages after which what was delivered and not settled may come out of its subject's order: the broker's document says so. */
  readonly reorders?: readonly OutageKind[];
  /** A broker with `ordered: true`. */
  make(settings: BrokerSettings): AsyncBroker;
}

const common = ({ group, isolation, prefetch }: BrokerSettings) => ({
  group,
  isolation,
  prefetch,
  source: "/outages",
  logger: false as const,
});

const redis: BrokerKind = {
  start: { args: ["--appendonly", "yes", "--appendfsync", "always"] },
  make: (settings) => {
    const { url, prefix, partitions } = settings;
    return new RedisStreamsBroker({ ...common(settings), url, prefix, partitions });
  },
};

const kafka: BrokerKind = {
  // What is confirmed is in the page cache, which outlives the process.
  start: {},
  proxy: async (server) => {
    const { proxy, brokers } = await openKafkaDoor(server);
    return { proxy, url: `kafka://${brokers}` };
  },
  make: (settings) => {
    const { url, partitions } = settings;
    return new KafkaBroker({ ...common(settings), url, partitions });
  },
};

const nats: BrokerKind = {
  // Its streams are files, and what a process had written outlives it.
  start: {},
  make: (settings) => {
    const { url, partitions } = settings;
    return new NatsJetStreamBroker({ ...common(settings), url, partitions });
  },
};

/** Its queues are durable and its confirmations come after the write. A run has a server of its own, so names need no prefix. */
const rabbitmq: BrokerKind = {
  start: {},
  reorders: ["kill"],
  make: (settings) => new RabbitMqBroker({ ...common(settings), url: settings.url, partitions: settings.partitions }),
};

const sqs: BrokerKind = {
  start: { args: [KEEPS] },
  make: (settings) =>
    new SqsBroker({
      ...common(settings),
      endpoint: settings.url,
      region: "us-east-1",
      client: { credentials: { accessKeyId: "test", secretAccessKey: "test" } },
      // The emulator hands messages to reads whose client is gone, and then hides them for so long.
      visibilityTimeoutMs: 4_000,
      waitMs: 1_000,
    }),
};

/** By the name of the server. */
const KINDS: Readonly<Record<string, BrokerKind>> = {
  kafka,
  redis,
  redis8: redis,
  valkey: redis,
  nats,
  nats29: nats,
  nats215: nats,
  rabbitmq,
  rabbitmq310: rabbitmq,
  sqs,
};

/** A proxy in front of a server of this kind. */
export async function proxyOf(kind: BrokerKind, server: Server): Promise<Proxied> {
  if (kind.proxy !== undefined) return await kind.proxy(server);
  const proxy = await startProxy({ port: server.port });
  return { proxy, url: proxy.url(server.url) };
}

/** The kind of broker for a server. */
export function brokerKind(server: string): BrokerKind {
  const kind = KINDS[server];
  if (kind === undefined) throw new TypeError(`No outages on "${server}": use ${Object.keys(KINDS).join(", ")}`);
  return kind;
}
