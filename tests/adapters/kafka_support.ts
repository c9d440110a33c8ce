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
  /** How many members a group has. */
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
    members: async (group) => (await admin.describeGroups([group])).groups[0]!.members.length,
    close: async () => {
      await Promise.all([producer.disconnect(), admin.disconnect()]);
    },
  };
  return hand;
}
