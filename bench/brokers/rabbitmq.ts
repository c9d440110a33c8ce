/**
 * RabbitMQ, against amqplib.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { RabbitMqBroker } from "../../adapters/rabbitmq/mod.ts";
import { queueArguments } from "../../adapters/rabbitmq/queue.ts";
import { resolveOptions } from "../../adapters/rabbitmq/resolve.ts";
import { rabbitmqctl } from "../../tests/support/bed/rabbitmq_kind.ts";
import { privateServer } from "../../tests/support/bed/server.ts";
import type { BenchBroker, BenchServer, OursOptions, Place } from "../support/broker.ts";
import { eventText, SOURCE, subjectOf } from "../support/event.ts";
import { type Client, client, fill, loop, onChannel, publishOneByOne, publishRounds } from "./rabbitmq_raw.ts";

class RabbitMqBench implements BenchServer {
  readonly #url: string;
  readonly #raw: Client;
  readonly #made: string[] = [];
  #names = 0;

  constructor(url: string, raw: Client) {
    this.#url = url;
    this.#raw = raw;
  }

  ours({ leaseMs, ...options }: OursOptions = {}): RabbitMqBroker {
    const lease = leaseMs === undefined ? {} : { heartbeatMs: leaseMs };
    return new RabbitMqBroker({ url: this.#url, source: SOURCE, logger: false, ...lease, ...options });
  }

  async stock(count: number, reader: "ordered" | "unordered" | "raw"): Promise<Place> {
    const topic = await this.#topic(reader === "ordered");
    await fill(this.#raw, topic, count);
    return { topic, group: "bench" };
  }

  /** A topic as ours would make it: an exchange and the queue of the first group. */
  async #topic(ordered: boolean): Promise<string> {
    const topic = `bench-${++this.#names}-${Date.now()}`;
    this.#made.push(topic);
    await onChannel(this.#raw, async (channel) => {
      await channel.assertExchange(topic, "fanout", { durable: true });
      await channel.assertQueue(topic, { durable: true, arguments: queueArguments(resolveOptions({ ordered })) });
      await channel.bindQueue(topic, topic, "");
    });
    return topic;
  }

  async empty(): Promise<string> {
    await this.#clear();
    return await this.#topic(true);
  }

  readonly loops: BenchServer["loops"] = [
    { name: "ack each", run: ({ topic }, count, handle) => loop(this.#raw, topic, count, handle, 1) },
    { name: "ack every 64th", run: ({ topic }, count, handle) => loop(this.#raw, topic, count, handle, 64) },
  ];

  readonly publishers: BenchServer["publishers"] = [
    { name: "a callback each", run: (topic, count) => publishOneByOne(this.#raw, topic, count, 256) },
    { name: "rounds of 256", run: (topic, count) => publishRounds(this.#raw, topic, count, 256) },
  ];

  oneAtATime(topic: string, count: number): Promise<void> {
    return publishOneByOne(this.#raw, topic, count, 1);
  }

  /** On a connection of its own: the server may have been away. */
  async send({ topic }: Place, n: number): Promise<void> {
    const raw = await client(this.#url);
    await onChannel(raw, async (channel) => {
      channel.sendToQueue(topic, Buffer.from(eventText(n)), {
        persistent: true,
        headers: { ce_subject: subjectOf(n) },
      });
      await channel.waitForConfirms();
    });
    await raw.close();
  }

  async connections(): Promise<number> {
    const server = privateServer(Number(new URL(this.#url).port));
    if (server === undefined) throw new Error("connections can be counted on a server of the bed only");
    const { stdout } = await rabbitmqctl(server, [
      "eval",
      "[{_, Created, _, _, _, _, _, _}] = ets:lookup(connection_churn_metrics, node()), Created.",
    ]);
    return Number(stdout.trim());
  }

  async #clear(): Promise<void> {
    for (const topic of this.#made.splice(0)) {
      await onChannel(this.#raw, async (channel) => {
        await channel.deleteQueue(topic);
        for (const name of [topic, `${topic}::partitions`, `${topic}::group`]) await channel.deleteExchange(name);
      });
    }
  }

  async close(): Promise<void> {
    await this.#clear().catch(() => {});
    await this.#raw.close().catch(() => {});
  }
}

/** RabbitMQ. */
export const rabbitmq: BenchBroker = {
  servers: ["rabbitmq", "rabbitmq310"],
  env: "XSM_RABBITMQ_URL",
  durable: {},
  counts: { run: 20_000, delay: 100_000, backlog: 500_000 },
  reference: { publish: 1_100, consume: 1_300 },
  lease: "the heartbeat",
  leaseMs: 5_000,
  open: async (url) => new RabbitMqBench(url, await client(url)),
};
