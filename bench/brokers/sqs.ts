/**
 * Amazon SQS, against the SDK; both on FIFO queues of the emulator, which has one message of a subject in flight.
 *
 * @module
 */
import type { SQSClient } from "@aws-sdk/client-sqs";
import { SqsBroker } from "../../adapters/sqs/mod.ts";
import { KEEPS } from "../../tests/support/bed/sqs_kind.ts";
import type { BenchBroker, BenchServer, OursOptions, Place } from "../support/broker.ts";
import { SOURCE } from "../support/event.ts";
import {
  ACCESS,
  client,
  dropQueue,
  fill,
  loop,
  makeQueue,
  publishBatches,
  publishOneByOne,
  sendOne,
} from "./sqs_raw.ts";

class SqsBench implements BenchServer {
  readonly #endpoint: string;
  readonly #raw: SQSClient;
  /** Queue URLs by topic. */
  readonly #queues = new Map<string, string>();
  #names = 0;

  constructor(endpoint: string) {
    this.#endpoint = endpoint;
    this.#raw = client(endpoint);
  }

  ours({ leaseMs, url, ...options }: OursOptions = {}): SqsBroker {
    const { region, credentials } = ACCESS;
    return new SqsBroker({
      endpoint: url ?? this.#endpoint,
      region,
      client: { credentials },
      source: SOURCE,
      logger: false,
      ...(leaseMs === undefined ? {} : { visibilityTimeoutMs: Math.max(2_000, 1_000 * Math.ceil(leaseMs / 1_000)) }),
      ...options,
    });
  }

  async stock(count: number, reader: "ordered" | "unordered" | "raw"): Promise<Place> {
    const topic = await this.#make(reader !== "unordered");
    await fill(this.#raw, this.#queues.get(topic)!, count);
    return { topic, group: "bench" };
  }

  async #make(fifo: boolean): Promise<string> {
    const topic = `bench-${++this.#names}-${Date.now()}`;
    this.#queues.set(topic, await makeQueue(this.#raw, fifo ? `${topic}.fifo` : topic));
    return topic;
  }

  async empty(): Promise<string> {
    await this.#clear();
    return await this.#make(true);
  }

  readonly loops: BenchServer["loops"] = [1, 4].map((lanes) => ({
    name: lanes === 1 ? "simple loop" : `${lanes} loops`,
    run: ({ topic }, count, handle) => loop(this.#raw, this.#queues.get(topic)!, count, lanes, handle),
  }));

  readonly publishers: BenchServer["publishers"] = [
    { name: "a call each", run: (topic, count) => publishOneByOne(this.#raw, this.#queues.get(topic)!, count, 256) },
    ...[1, 4, 16].map((lanes) => ({
      name: `${lanes} batches of 10`,
      run: (topic: string, count: number) => publishBatches(this.#raw, this.#queues.get(topic)!, count, lanes),
    })),
  ];

  oneAtATime(topic: string, count: number): Promise<void> {
    return publishOneByOne(this.#raw, this.#queues.get(topic)!, count, 1);
  }

  async send({ topic }: Place, n: number): Promise<void> {
    await sendOne(this.#raw, this.#queues.get(topic)!, n);
  }

  /** The emulator does not count them; a broker that lost its connection says so by `onDisconnect`. */
  connections(): Promise<number> {
    return Promise.resolve(0);
  }

  async #clear(): Promise<void> {
    for (const [topic, url] of this.#queues) {
      await dropQueue(this.#raw, url);
      this.#queues.delete(topic);
    }
  }

  async close(): Promise<void> {
    await this.#clear().catch(() => {});
    this.#raw.destroy();
  }
}

/** Amazon SQS. */
export const sqs: BenchBroker = {
  servers: ["sqs"],
  env: "XSM_SQS_ENDPOINT",
  durable: { args: [KEEPS] },
  counts: { run: 4_000, delay: 10_000, backlog: 20_000 },
  // Not measured: the emulator is not the service.
  reference: { publish: 0, consume: 0 },
  lease: "the visibility timeout",
  leaseMs: 15_000,
  open: (url) => Promise.resolve(new SqsBench(url)),
};
