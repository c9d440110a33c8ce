import { type Clock, pause } from "../../core/clock.ts";
import { BrokerUnavailableError, InvalidOptionError, PartitionMismatchError } from "../../core/errors.ts";
import type { Admin } from "./admin.ts";
import type { PartitionMetadata } from "./client.ts";
import { failureOf, invalidTopic, typeOf } from "./errors.ts";
import type { ResolvedOptions } from "./resolve.ts";

/** A topic as the cluster has it. */
export interface Topic {
  readonly name: string;
  /** The leader's node by partition. */
  readonly leaders: readonly number[];
}

/** Between two looks at a topic that has no leader yet. */
const LOOK_MS = 50;
/** What a record takes beside its envelope: key, headers, framing. */
const RECORD_MARGIN = 65_536;
/** The cluster's own default of max.message.bytes. */
const MESSAGE_BYTES = 1_048_588;

/** The topics in use: whether they exist, with how many partitions, and where. Makes those that do not exist. */
export class TopicBook {
  readonly #admin: Admin;
  readonly #clock: Clock;
  readonly #options: ResolvedOptions;
  readonly #known = new Map<string, Topic>();
  readonly #asked = new Map<string, Promise<Topic>>();

  constructor(admin: Admin, clock: Clock, options: ResolvedOptions) {
    this.#admin = admin;
    this.#clock = clock;
    this.#options = options;
  }

  /** What is known of a topic. */
  known(name: string): Topic | undefined {
    return this.#known.get(name);
  }

  /**
   * A topic that exists and has leaders.
   *
   * @throws InvalidOptionError for a name that Kafka does not take, and for a topic that does not exist and may not be created.
   * @throws PartitionMismatchError
   */
  async ready(name: string): Promise<Topic> {
    return this.#known.get(name) ?? await this.refresh(name);
  }

  /** The same, asking anew. Calls at the same time share one question. */
  refresh(name: string): Promise<Topic> {
    let asked = this.#asked.get(name);
    if (asked === undefined) {
      asked = this.#find(name).finally(() => this.#asked.delete(name));
      this.#asked.set(name, asked);
    }
    return asked;
  }

  /** How many partitions a topic has; 0 = it does not exist. */
  async count(name: string): Promise<number> {
    try {
      const { topics } = await this.#admin.raw((admin) => admin.fetchTopicMetadata({ topics: [name] }));
      return topics.find((topic) => topic.name === name)?.partitions.length ?? 0;
    } catch (error) {
      if (typeOf(error) === "UNKNOWN_TOPIC_OR_PARTITION") return 0;
      throw error;
    }
  }

  async #find(name: string): Promise<Topic> {
    if (!/^[\w.-]{1,249}$/.test(name) || name === "." || name === "..") throw invalidTopic();
    const until = this.#clock.monotonic() + this.#options.commandTimeoutMs;
    for (;;) {
      const partitions = await this.#look(name);
      if (partitions !== undefined) return this.#note(name, partitions);
      if (this.#clock.monotonic() > until) throw new BrokerUnavailableError("the topic has no leader yet");
      await pause(this.#clock, LOOK_MS);
    }
  }

  /** The partitions of a topic; undefined while it has no leaders. Creates it where it does not exist. */
  async #look(name: string): Promise<readonly PartitionMetadata[] | undefined> {
    try {
      const { topics } = await this.#admin.raw((admin) => admin.fetchTopicMetadata({ topics: [name] }));
      const partitions = topics.find((topic) => topic.name === name)?.partitions ?? [];
      return partitions.length > 0 && partitions.every(({ leader }) => leader >= 0) ? partitions : undefined;
    } catch (error) {
      const type = typeOf(error);
      if (type === "LEADER_NOT_AVAILABLE") return undefined;
      if (type !== "UNKNOWN_TOPIC_OR_PARTITION") throw failureOf("looking up a topic", error);
    }
    if (!this.#options.createTopics) {
      throw new InvalidOptionError("the topic does not exist, and createTopics is false", {
        details: { option: "createTopics" },
      });
    }
    await this.#create(name);
    return undefined;
  }

  async #create(topic: string): Promise<void> {
    const { partitions, replicationFactor, topicConfig, maxBytes } = this.#options;
    const config = {
      ...(maxBytes + RECORD_MARGIN > MESSAGE_BYTES ? { "max.message.bytes": String(maxBytes + RECORD_MARGIN) } : {}),
      ...topicConfig,
    };
    await this.#admin.call("creating a topic", (admin) =>
      admin.createTopics({
        waitForLeaders: false,
        timeout: this.#options.commandTimeoutMs,
        topics: [{
          topic,
          numPartitions: partitions ?? 1,
          replicationFactor: replicationFactor ?? -1,
          configEntries: Object.entries(config).map(([name, value]) => ({ name, value })),
        }],
      }));
  }

  #note(name: string, partitions: readonly PartitionMetadata[]): Topic {
    const wanted = this.#options.partitions;
    if (wanted !== undefined && wanted !== partitions.length) {
      throw new PartitionMismatchError(
        `the topic has ${partitions.length} partitions and the option says ${wanted}: all users of a topic must agree`,
        { details: { recorded: partitions.length, given: wanted } },
      );
    }
    const leaders: number[] = [];
    for (const { partitionId, leader } of partitions) leaders[partitionId] = leader;
    const topic = { name, leaders };
    this.#known.set(name, topic);
    return topic;
  }
}
