/** Options of the Kafka transport. Plain data, so that they can cross to a worker. */
export interface KafkaTransportOptions {
  /** `kafka://a:9092,b:9092`: brokers to begin with, port 9092 where none is given. This or `brokers`. No credentials in it. */
  readonly url?: string;
  /** The same as a list of `host:port`. Default `["127.0.0.1:9092"]`. */
  readonly brokers?: readonly string[];
  /**
   * Partitions of a topic, 1 to 10,000: with so many it is created, and one that has another number is refused. Default: 1 for
   * a new topic, and any number of an existing one.
   */
  readonly partitions?: number;
  /** Copies of each partition of a topic that is created, 1 to 32,767. Default: what the cluster is set to. */
  readonly replicationFactor?: number;
  /** Whether a topic that does not exist is created. Default true; `false`: it is refused, publishing and subscribing. */
  readonly createTopics?: boolean;
  /** Settings of topics that are created, such as `{ "retention.ms": "604800000" }`. Default: those of the cluster. */
  readonly topicConfig?: Readonly<Record<string, string>>;
  /**
   * How long the group may hear nothing of a member before its partitions go to others, 1,000 to 1,800,000 ms, within the
   * cluster's own bounds (6,000 to 1,800,000 by default). Default 15,000.
   */
  readonly sessionTimeoutMs?: number;
  /** How long a rebalance waits for a member, 1,000 to 3,600,000 ms. Default 30,000. */
  readonly rebalanceTimeoutMs?: number;
  /**
   * How far a partition is read past its oldest unsettled message, in messages, 1 to 100,000. Default 1,000. As many may come
   * again after a crash.
   */
  readonly maxUncommitted?: number;
  /** How records are compressed. `gzip` comes with the client; others need a codec, see `clientModule`. Default `none`. */
  readonly compression?: KafkaCompression;
  /** 1 to 600,000 ms, default 10,000. */
  readonly connectTimeoutMs?: number;
  /** How long any other request may stay unanswered, 10 to 600,000 ms. Default 5,000. */
  readonly commandTimeoutMs?: number;
  /** The same for publishing. Default 30,000. */
  readonly publishTimeoutMs?: number;
  /** The largest envelope in bytes; told in the capabilities. Default 1,048,576. */
  readonly maxBytes?: number;
  /** Options passed on to kafkajs (`ssl`, `sasl`, `clientId` …), but for those the transport sets itself. */
  readonly client?: Readonly<Record<string, unknown>>;
}

/** Names of compressions, as Kafka has them. */
export type KafkaCompression = "none" | "gzip" | "snappy" | "lz4" | "zstd";

/** Names of the options that a user of the broker gives; the rest come from its common options. */
export const KAFKA_OPTION_NAMES: readonly string[] = [
  "url",
  "brokers",
  "partitions",
  "replicationFactor",
  "createTopics",
  "topicConfig",
  "sessionTimeoutMs",
  "rebalanceTimeoutMs",
  "maxUncommitted",
  "compression",
  "client",
];
