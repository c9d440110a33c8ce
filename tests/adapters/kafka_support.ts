/** What tests of the Kafka adapter do past it: write records, and ask the server what it knows. */
import { Kafka, logLevel, type Message, Partitioners } from "kafkajs";
import { loadClient } from "../../adapters/kafka/client.ts";
import { until } from "../support/test.ts";

/** A client of the test's own. */
export interface Hand {
  readonly kafka: Kafka;
  /** Writes records; makes the topic, with one partition or as many as are asked for, where it does not exist. */
  write(topic: string, messages: readonly Message[], partitions?: number): Promise<void>;
  /** Makes a topic. */
  make(topic: string, partitions: number, config?: Readonly<Record<string, string>>): Promise<void>;
  /** The offsets that a group committed, by partition; -1 = none. */
  committed(topic: string, group: string): Promise<bigint[]>;
  /** One past the newest record, by partition. */
  ends(topic: string): Promise<bigint[]>;
  /** How many members a group has, once each knows its partitions; 0 while they are divided. */
  members(group: string): Promise<number>;
  close(): Promise<void>;
}

/** Connects to the brokers in a list. */
export async function openHand(brokers: string): Promise<Hand> {
  // With its timers cured, so that a warning in these tests is one of the adapter's.
  await loadClient();
  const kafka = new Kafka({ clientId: "test", brokers: brokers.split(","), logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
  const producer = kafka.producer({
    createPartitioner: Partitioners.DefaultPartitioner,
    allowAutoTopicCreation: false,
  });
  await Promise.all([admin.connect(), producer.connect()]);
  const sorted = <T extends { readonly partition: number }>(list: readonly T[]): T[] =>
    [...list].sort((a, b) => a.partition - b.partition);
  const hand: Hand = {
    kafka,
    make: async (topic, partitions, config = {}) => {
      const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }));
      await admin.createTopics({ topics: [{ topic, numPartitions: partitions, configEntries }], waitForLeaders: true });
    },
    write: async (topic, messages, partitions = 1) => {
      await hand.make(topic, partitions).catch(() => {});
      await until(() => producer.send({ topic, messages: [...messages] }).then(() => true), { what: "a leader" });
    },
    committed: async (topic, group) => {
      const [found] = await admin.fetchOffsets({ groupId: group, topics: [topic] });
      return sorted(found!.partitions).map(({ offset }) => BigInt(offset));
    },
    ends: async (topic) => sorted(await admin.fetchTopicOffsets(topic)).map(({ high }) => BigInt(high)),
    members: async (group) => {
      const { state, members } = (await admin.describeGroups([group])).groups[0]!;
      return state === "Stable" ? members.length : 0;
    },
    close: async () => {
      await Promise.all([producer.disconnect(), admin.disconnect()]);
    },
  };
  return hand;
}

/** A record as it stands in the log. */
export interface Stored {
  readonly partition: number;
  readonly offset: bigint;
  readonly key: string | null;
  readonly value: string | null;
  readonly headers: Readonly<Record<string, string>>;
}

/** Reads everything that a topic holds at this moment, in the order of each partition. */
export async function readLog(hand: Hand, topic: string): Promise<Stored[]> {
  const wanted = (await hand.ends(topic)).reduce((sum, end) => sum + Number(end), 0);
  const stored: Stored[] = [];
  if (wanted === 0) return stored;
  const consumer = hand.kafka.consumer({ groupId: `log-${topic}-${Math.random()}`, maxWaitTimeInMs: 100 });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachMessage: ({ partition, message }) => {
      stored.push({
        partition,
        offset: BigInt(message.offset),
        key: message.key?.toString() ?? null,
        value: message.value?.toString() ?? null,
        headers: Object.fromEntries(
          Object.entries(message.headers ?? {}).map(([name, value]) => [name, String(value)]),
        ),
      });
      return Promise.resolve();
    },
  });
  try {
    await until(() => stored.length >= wanted, { what: `${wanted} records in the log`, timeoutMs: 20_000 });
  } finally {
    await consumer.disconnect();
  }
  return stored.sort((a, b) => a.partition - b.partition || Number(a.offset - b.offset));
}

/** The data of each record, in the order of the log. */
export function dataOf(stored: readonly Stored[]): unknown[] {
  return stored.map(({ value }) => (JSON.parse(value!) as { readonly data: unknown }).data);
}
