import { BrokerUnavailableError, InvalidOptionError, PartitionMismatchError } from "../../core/errors.ts";
import { type Api, nanos, type StreamConfig, type StreamInfo } from "./api.ts";
import { API, refusal, refusedAs } from "./errors.ts";
import { TopicNames } from "./names.ts";
import type { ResolvedOptions } from "./resolve.ts";

/** One topic as far as this transport knows it. */
export interface Topic {
  readonly name: string;
  readonly names: TopicNames;
  /** When its stream was made, as the server tells it: another one under the same name has another time. */
  created: string;
  /** Whether the stream removes what is acked, so that no two durables may read the same. */
  workQueue: boolean;
  /** Whether the stream was looked at on the present connection, and is as it should be. */
  checked: boolean;
  checking: Promise<void> | undefined;
}

/** What a book needs to know. */
export type TopicOptions = Pick<
  ResolvedOptions,
  "partitions" | "create" | "storage" | "replicas" | "duplicateWindowMs" | "unsafeMaxAgeMs"
>;

/**
 * The topics in use: their streams are made where they are missing, and looked at once after every connect. The subjects of a
 * stream say how many partitions it has, so that all who use a topic divide it alike: a subject whose partition moved would
 * lose its order.
 */
export class TopicBook {
  readonly #options: TopicOptions;
  readonly #limits: (topic: string, limits: string) => void;
  readonly #topics = new Map<string, Topic>();

  /** @param limits Told of a stream that removes messages by itself, with the names of its limits. */
  constructor(options: TopicOptions, limits: (topic: string, limits: string) => void) {
    this.#options = options;
    this.#limits = limits;
  }

  /** The topic called `name`. */
  get(name: string): Topic {
    let topic = this.#topics.get(name);
    if (topic === undefined) {
      const names = new TopicNames(name, this.#options.partitions);
      topic = { name, names, created: "", workQueue: false, checked: false, checking: undefined };
      this.#topics.set(name, topic);
    }
    return topic;
  }

  /** Sees to it that the stream is there and divided as it should be. */
  check(topic: Topic, api: Api): Promise<void> {
    if (topic.checked) return Promise.resolve();
    return topic.checking ??= this.#look(topic, api).catch((error) => {
      throw refusal("looking at the stream", error);
    }).finally(() => topic.checking = undefined);
  }

  async #look(topic: Topic, api: Api): Promise<void> {
    const info = await api.stream(topic.names.stream) ?? await this.#make(topic, api);
    this.#mustFit(topic, info.config);
    const limits = limitsOf(info.config);
    if (limits !== "" && topic.created !== info.created) this.#limits(topic.name, limits);
    topic.created = info.created;
    topic.workQueue = info.config.retention === "workqueue";
    topic.checked = true;
  }

  async #make(topic: Topic, api: Api): Promise<StreamInfo> {
    const { create, storage, replicas, duplicateWindowMs, unsafeMaxAgeMs } = this.#options;
    const { stream, subjects } = topic.names;
    if (!create) {
      throw new BrokerUnavailableError(
        `topic "${topic.name}" has no stream, and it may not be made (create is false)`,
        { details: { topic: topic.name } },
      );
    }
    // The server refuses a window for duplicates that is longer than messages live.
    const window = Math.min(duplicateWindowMs, unsafeMaxAgeMs ?? Infinity);
    try {
      return await api.call<StreamInfo>(`STREAM.CREATE.${stream}`, {
        name: stream,
        subjects,
        retention: "limits",
        storage,
        num_replicas: replicas,
        discard: "old",
        max_msgs: -1,
        max_bytes: -1,
        max_msg_size: -1,
        max_msgs_per_subject: -1,
        max_consumers: -1,
        max_age: unsafeMaxAgeMs === undefined ? 0 : nanos(unsafeMaxAgeMs),
        duplicate_window: nanos(window),
        allow_direct: true,
      });
    } catch (error) {
      // Another member made it in the same moment, perhaps otherwise.
      const info = refusedAs(error, API.streamExists) ? await api.stream(stream) : undefined;
      if (info === undefined) throw error;
      return info;
    }
  }

  #mustFit(topic: Topic, config: StreamConfig): void {
    const { stream, subjects, partitions } = topic.names;
    const found = config.subjects ?? [];
    const whole = found.some((subject) => [`${stream}.>`, `${stream}.*`, ">", "*.>", "*.*"].includes(subject));
    const parts = found.filter((subject) =>
      /^\d+\.\*$/.test(subject.slice(stream.length + 1)) && subject.startsWith(`${stream}.`)
    );
    const recorded = whole ? 1 : parts.length;
    if (recorded === partitions && (whole || subjects.every((subject) => found.includes(subject)))) return;
    if (recorded > 0) {
      throw new PartitionMismatchError(
        `partitions is ${partitions} here, but the stream of topic "${topic.name}" has ${recorded}`,
        { details: { topic: topic.name, given: partitions, recorded } },
      );
    }
    throw new InvalidOptionError(
      `the stream of topic "${topic.name}" is there and takes other subjects: it must take its own name, a dot and >`,
      { details: { topic: topic.name } },
    );
  }

  /** Everything is looked at anew before it is used again. */
  forget(): void {
    for (const topic of this.#topics.values()) topic.checked = false;
  }
}

/** Names of the limits by which a stream removes messages, read or not. */
function limitsOf(config: StreamConfig): string {
  const old = config.discard !== "new";
  const found: string[] = [];
  if ((config.max_age ?? 0) > 0) found.push("max_age");
  if (old && (config.max_msgs ?? -1) > 0) found.push("max_msgs");
  if (old && (config.max_bytes ?? -1) > 0) found.push("max_bytes");
  if (old && (config.max_msgs_per_subject ?? -1) > 0) found.push("max_msgs_per_subject");
  if (config.retention === "interest") found.push("interest");
  return found.join(" ");
}
