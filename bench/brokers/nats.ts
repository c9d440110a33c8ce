/**
 * NATS JetStream, against `@nats-io/jetstream`.
 *
 * @module
 */
import { NatsJetStreamBroker } from "../../adapters/nats/mod.ts";
import type { BenchBroker, BenchServer, OursOptions, Place } from "../support/broker.ts";
import { eventText, SOURCE, subjectOf } from "../support/event.ts";
import {
  type Client,
  client,
  consumeLoop,
  fill,
  makeDurable,
  makeStream,
  publishBatches,
  publishInFlight,
  removeStream,
  twoLoops,
} from "./nats_raw.ts";

class NatsBench implements BenchServer {
  readonly #url: string;
  readonly #raw: Client;
  /** Streams that are filled already: each reader has a group of its own. */
  readonly #filled = new Map<number, string>();
  readonly #published: string[] = [];
  #names = 0;
  #looks = 0;

  constructor(url: string, raw: Client) {
    this.#url = url;
    this.#raw = raw;
  }

  ours({ leaseMs, ...options }: OursOptions = {}): NatsJetStreamBroker {
    const lease = leaseMs === undefined ? {} : { ownerLeaseMs: leaseMs, ackWaitMs: leaseMs };
    return new NatsJetStreamBroker({ url: this.#url, source: SOURCE, logger: false, ...lease, ...options });
  }

  async stock(count: number, reader: "ordered" | "unordered" | "raw"): Promise<Place> {
    let topic = this.#filled.get(count);
    if (topic === undefined) {
      this.#filled.set(count, topic = this.#topic());
      await makeStream(this.#raw, topic);
      await fill(this.#raw, topic, count);
    }
    const group = `g${++this.#names}`;
    if (reader === "raw") await makeDurable(this.#raw, topic, group);
    return { topic, group };
  }

  #topic(): string {
    return `bench-${++this.#names}-${Date.now()}`;
  }

  async empty(): Promise<string> {
    await this.#clear();
    const topic = this.#topic();
    this.#published.push(topic);
    return topic;
  }

  readonly loops: BenchServer["loops"] = [
    {
      name: "consume()",
      run: ({ topic, group }, count, handle) => consumeLoop(this.#raw, topic, group, count, handle),
    },
    {
      name: "two consume()",
      run: ({ topic, group }, count, handle) => twoLoops(this.#raw, topic, group, count, handle),
    },
  ];

  readonly publishers: BenchServer["publishers"] = [
    { name: "256 in flight", run: (topic, count) => publishInFlight(this.#raw, topic, count, 256) },
    { name: "batches of 256", run: (topic, count) => publishBatches(this.#raw, topic, count) },
  ];

  oneAtATime(topic: string, count: number): Promise<void> {
    return publishInFlight(this.#raw, topic, count, 1);
  }

  /** On a connection of its own: the server may have been away. */
  async send({ topic }: Place, n: number): Promise<void> {
    const raw = await client(this.#url);
    await raw.request(`${topic}.${subjectOf(n)}`, eventText(n), { timeout: 5_000 });
    await raw.close();
  }

  /** The server numbers its clients; those of this look are left out. */
  async connections(): Promise<number> {
    const raw = await client(this.#url);
    const number = raw.info!.client_id;
    await raw.close();
    return number - ++this.#looks;
  }

  /** Removes what was published, and leaves what is stocked. */
  async #clear(): Promise<void> {
    for (const topic of this.#published.splice(0)) await removeStream(this.#raw, topic);
  }

  async close(): Promise<void> {
    this.#published.push(...this.#filled.values());
    this.#filled.clear();
    await this.#clear().catch(() => {});
    await this.#raw.close();
  }
}

/** NATS JetStream. */
export const nats: BenchBroker = {
  servers: ["nats", "nats215", "nats29"],
  env: "XSM_NATS_URL",
  // Its streams are files, and what a process had written outlives it.
  durable: {},
  counts: { run: 40_000, delay: 100_000, backlog: 1_000_000 },
  // Not measured: the first reference system states no figures for NATS; these are those of its Redis.
  reference: { publish: 2_800, consume: 2_000 },
  lease: "the ack wait",
  leaseMs: 15_000,
  open: async (url) => new NatsBench(url, await client(url)),
};
