/**
 * The raw client: what somebody who knows kafkajs well would write without this library.
 *
 * @module
 */
import { randomUUID } from "node:crypto";
import { type Admin, Kafka, logLevel, Partitioners, type Producer } from "kafkajs";
import type { RawEvent } from "../support/broker.ts";
import { eventText, freshOrder, SOURCE, subjectOf, TYPE } from "../support/event.ts";

/** Connected clients. */
export interface Clients {
  readonly kafka: Kafka;
  readonly admin: Admin;
  readonly producer: Producer;
}

/** Connects them. */
export async function clients(brokers: string): Promise<Clients> {
  const kafka = new Kafka({ clientId: "raw", brokers: brokers.split(","), logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
  const producer = kafka.producer({
    createPartitioner: Partitioners.DefaultPartitioner,
    allowAutoTopicCreation: false,
  });
  await Promise.all([admin.connect(), producer.connect()]);
  return { kafka, admin, producer };
}

/** Makes a topic of one partition. */
export async function makeTopic({ admin, producer }: Clients, topic: string): Promise<void> {
  await admin.createTopics({ topics: [{ topic, numPartitions: 1 }] });
  // The producer has to learn of it.
  for (let tries = 0;; tries++) {
    try {
      return void await producer.send({ topic, messages: [] });
    } catch (error) {
      if (tries === 20) throw error;
    }
  }
}

/** Appends `count` events to a topic. */
export async function fill({ producer }: Clients, topic: string, count: number): Promise<void> {
  for (let at = 0; at < count; at += 1_000) {
    const messages = Array.from({ length: Math.min(1_000, count - at) }, (_, n) => ({
      key: subjectOf(at + n),
      value: eventText(at + n),
    }));
    await producer.send({ topic, messages });
  }
}

/** Reads, parses, processes and commits batch by batch; `awaits` each commit before the next batch, or only the last one. */
export async function consume(
  { kafka }: Clients,
  topic: string,
  group: string,
  count: number,
  handle: (event: RawEvent) => void,
  awaits: boolean,
): Promise<void> {
  const consumer = kafka.consumer({ groupId: group, maxWaitTimeInMs: 100 });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  let done = 0;
  let committing: Promise<unknown> = Promise.resolve();
  await new Promise<void>((resolve, reject) => {
    void consumer.run({
      autoCommit: false,
      eachBatch: async ({ batch, commitOffsetsIfNecessary }) => {
        for (const { value } of batch.messages) handle(JSON.parse(value!.toString()) as RawEvent);
        done += batch.messages.length;
        const offset = String(BigInt(batch.lastOffset()) + 1n);
        committing = commitOffsetsIfNecessary({
          topics: [{ topic, partitions: [{ partition: batch.partition, offset }] }],
        });
        if (awaits || done >= count) await committing;
        if (done >= count) resolve();
      },
    }).catch(reject);
  });
  await consumer.disconnect();
}

function fresh(n: number): { key: string; value: string } {
  const subject = subjectOf(n);
  const value = JSON.stringify({
    specversion: "1.0",
    id: randomUUID(),
    source: SOURCE,
    type: TYPE,
    subject,
    time: new Date().toISOString(),
    datacontenttype: "application/json",
    data: freshOrder(),
  });
  return { key: subject, value };
}

/** Publishes `count` events, `lanes` requests of `size` at a time. */
export async function publish(
  { producer }: Clients,
  topic: string,
  count: number,
  lanes: number,
  size: number,
): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) {
      const messages = [];
      while (next < count && messages.length < size) messages.push(fresh(next++));
      await producer.send({ topic, acks: -1, messages });
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}
