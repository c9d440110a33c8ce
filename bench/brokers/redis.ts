/**
 * Redis Streams, against ioredis.
 *
 * @module
 */
import { TopicKeys } from "../../adapters/redis/keys.ts";
import { RedisStreamsBroker } from "../../adapters/redis/mod.ts";
import type { BenchBroker, BenchServer, OursOptions, Place } from "../support/broker.ts";
import { eventText, SOURCE, subjectOf } from "../support/event.ts";
import {
  type Client,
  client,
  doubleLoop,
  fill,
  publishOneByOne,
  publishPipelined,
  serverCpu,
  simpleLoop,
} from "./redis_raw.ts";

const PREFIX = "xsm-bench";
const streamOf = (topic: string): string => new TopicKeys(PREFIX, topic, 1).streams[0]!;

class RedisBench implements BenchServer {
  readonly #url: string;
  readonly #raw: Client;
  readonly #auto: Client;
  /** Streams that are filled already: each reader has a group of its own. */
  readonly #filled = new Map<number, string>();
  #names = 0;

  constructor(url: string, raw: Client, auto: Client) {
    this.#url = url;
    this.#raw = raw;
    this.#auto = auto;
  }

  ours({ leaseMs, ...options }: OursOptions = {}): RedisStreamsBroker {
    const lease = leaseMs === undefined
      ? {}
      : options.ordered === false
      ? { minIdleMs: leaseMs }
      : { ownerLeaseMs: leaseMs };
    return new RedisStreamsBroker({
      url: this.#url,
      prefix: PREFIX,
      source: SOURCE,
      logger: false,
      ...lease,
      ...options,
    });
  }

  async stock(count: number, reader: "ordered" | "unordered" | "raw"): Promise<Place> {
    let topic = this.#filled.get(count);
    if (topic === undefined) {
      this.#filled.set(count, topic = this.#topic());
      await fill(this.#raw, streamOf(topic), count);
    }
    const group = `g${++this.#names}`;
    if (reader === "raw") await this.#raw.xgroup("CREATE", streamOf(topic), group, "0");
    return { topic, group };
  }

  #topic(): string {
    return `t${++this.#names}-${Date.now()}`;
  }

  async empty(): Promise<string> {
    await this.#clear();
    return this.#topic();
  }

  readonly loops: BenchServer["loops"] = [
    {
      name: "simple loop",
      run: ({ topic, group }, count, handle) => simpleLoop(this.#raw, streamOf(topic), group, count, handle),
    },
    {
      name: "double loop",
      run: ({ topic, group }, count, handle) => doubleLoop(this.#raw, streamOf(topic), group, count, handle),
    },
  ];

  readonly publishers: BenchServer["publishers"] = [
    { name: "auto-pipelining", run: (topic, count) => publishOneByOne(this.#auto, streamOf(topic), count, 256) },
    { name: "no pipeline", run: (topic, count) => publishOneByOne(this.#raw, streamOf(topic), count, 256) },
    ...[1, 2, 4].map((lanes) => ({
      name: `${lanes} pipelines of ${256 / lanes}`,
      run: (topic: string, count: number) => publishPipelined(this.#raw, streamOf(topic), count, 256 / lanes, lanes),
    })),
  ];

  oneAtATime(topic: string, count: number): Promise<void> {
    return publishOneByOne(this.#raw, streamOf(topic), count, 1);
  }

  /** On a connection of its own: the server may have been away. */
  async send({ topic }: Place, n: number): Promise<void> {
    const raw = await client(this.#url);
    await raw.xadd(streamOf(topic), "*", "ce", eventText(n), "subject", subjectOf(n));
    raw.disconnect();
  }

  serverCpu(): Promise<number> {
    return serverCpu(this.#raw);
  }

  async connections(): Promise<number> {
    return Number((await this.#raw.info("stats")).match(/total_connections_received:(\d+)/)?.[1]);
  }

  /** Removes what was published, and leaves what is stocked. */
  async #clear(): Promise<void> {
    const kept = new Set([...this.#filled.values()].map(streamOf));
    const keys = (await this.#raw.keys(`*${PREFIX}:stream:*`)).filter((key) => !kept.has(key));
    if (keys.length > 0) await this.#raw.del(keys);
  }

  async close(): Promise<void> {
    this.#filled.clear();
    await this.#clear().catch(() => {});
    this.#raw.disconnect();
    this.#auto.disconnect();
  }
}

/** Redis Streams. */
export const redis: BenchBroker = {
  servers: ["redis8", "redis", "valkey"],
  env: "XSM_REDIS_URL",
  durable: { args: ["--appendonly", "yes", "--appendfsync", "always"] },
  counts: { run: 40_000, delay: 200_000, backlog: 1_000_000 },
  reference: { publish: 2_800, consume: 2_000 },
  lease: "the lease",
  leaseMs: 15_000,
  open: async (url) => new RedisBench(url, await client(url), await client(url, { enableAutoPipelining: true })),
};
