/**
 * Kafka, against kafkajs.
 *
 * @module
 */
import { KafkaBroker } from "../../adapters/kafka/mod.ts";
import type { BenchBroker, BenchServer, OursOptions, Place } from "../support/broker.ts";
import { eventText, SOURCE, subjectOf } from "../support/event.ts";
import { type Clients, clients, consume, fill, makeTopic, publish } from "./kafka_raw.ts";

class KafkaBench implements BenchServer {
  readonly #brokers: string;
  readonly #raw: Clients;
  readonly #filled = new Map<number, string>();
  readonly #made: string[] = [];
  #connections = 0;
  #names = 0;

  constructor(brokers: string, raw: Clients) {
    this.#brokers = brokers;
    this.#raw = raw;
  }

  /** Order is the log's own, so there is no other mode. */
  ours({ leaseMs, url, ordered: _native, onReconnect, ...options }: OursOptions = {}): KafkaBroker {
    return new KafkaBroker({
      brokers: (url ?? this.#brokers).split(","),
      source: SOURCE,
      logger: false,
      ...(leaseMs === undefined ? {} : { sessionTimeoutMs: leaseMs }),
      onReconnect: () => {
        this.#connections++;
        onReconnect?.();
      },
      ...options,
    });
  }

  async stock(count: number): Promise<Place> {
    let topic = this.#filled.get(count);
    if (topic === undefined) {
      topic = await this.empty();
      this.#filled.set(count, topic);
      await fill(this.#raw, topic, count);
    }
    return { topic, group: `g${++this.#names}-${Date.now()}` };
  }

  async empty(): Promise<string> {
    const topic = `xsm-bench-${++this.#names}-${Date.now()}`;
    await makeTopic(this.#raw, topic);
    this.#made.push(topic);
    return topic;
  }

  readonly loops: BenchServer["loops"] = [
    {
      name: "simple loop",
      run: ({ topic, group }, count, handle) => consume(this.#raw, topic, group, count, handle, true),
    },
    {
      name: "commits not awaited",
      run: ({ topic, group }, count, handle) => consume(this.#raw, topic, group, count, handle, false),
    },
  ];

  readonly publishers: BenchServer["publishers"] = [
    { name: "256 sends of one", run: (topic, count) => publish(this.#raw, topic, count, 256, 1) },
    ...[1, 2, 4].map((lanes) => ({
      name: `${lanes} sends of ${256 / lanes}`,
      run: (topic: string, count: number) => publish(this.#raw, topic, count, lanes, 256 / lanes),
    })),
  ];

  oneAtATime(topic: string, count: number): Promise<void> {
    return publish(this.#raw, topic, count, 1, 1);
  }

  async send({ topic }: Place, n: number): Promise<void> {
    await this.#raw.producer.send({ topic, messages: [{ key: subjectOf(n), value: eventText(n) }] });
  }

  /** The server does not tell; what is asked is whether ours had to connect again. */
  connections(): Promise<number> {
    return Promise.resolve(this.#connections);
  }

  async close(): Promise<void> {
    await this.#raw.admin.deleteTopics({ topics: this.#made }).catch(() => {});
    await Promise.all([this.#raw.admin.disconnect(), this.#raw.producer.disconnect()]);
  }
}

/** Kafka. */
export const kafka: BenchBroker = {
  servers: ["kafka"],
  env: "XSM_KAFKA_BROKERS",
  // What is confirmed is in the page cache, which outlives the process.
  durable: {},
  counts: { run: 40_000, delay: 200_000, backlog: 1_000_000 },
  reference: { publish: 900, consume: 950 },
  lease: "the session",
  leaseMs: 6_000,
  open: async (url) => new KafkaBench(url, await clients(url)),
};
