import { InvalidOptionError } from "../../core/errors.ts";
import type { TransportEvents } from "../../core/transport.ts";
import type { Api } from "./api.ts";
import { asError, isDenied, isQueueMissing, nameOf } from "./errors.ts";
import { LONGEST_RETENTION_S, MOST_BYTES } from "./limits.ts";
import { noOrder, type QueueName, queueOf } from "./names.ts";
import type { ResolvedOptions } from "./resolve.ts";

/** A queue that is there. */
export interface Queue {
  readonly topic: string;
  readonly url: string;
  readonly fifo: boolean;
  /** The largest message that it takes, bytes. */
  readonly maxBytes: number;
  /** Whether we may look at its counts. */
  readonly readable: boolean;
}

type Attributes = Readonly<Record<string, string>>;

const ASKED = ["MaximumMessageSize", "MessageRetentionPeriod", "RedrivePolicy"] as const;

/** Finds the queue of a topic, or creates it, and looks at what may lose messages there. Once for each, until it is forgotten. */
export class QueueBook {
  readonly #api: Api;
  readonly #options: ResolvedOptions;
  readonly #events: () => TransportEvents;
  readonly #known = new Map<string, Queue>();
  readonly #finding = new Map<string, Promise<Queue>>();

  constructor(api: Api, options: ResolvedOptions, events: () => TransportEvents) {
    this.#api = api;
    this.#options = options;
    this.#events = events;
  }

  /** The queue, if it was found already. */
  known(topic: string): Queue | undefined {
    return this.#known.get(topic);
  }

  /** The queue of a topic; rejects with one of our errors. */
  find(topic: string): Promise<Queue> {
    const known = this.#known.get(topic);
    if (known !== undefined) return Promise.resolve(known);
    let finding = this.#finding.get(topic);
    if (finding === undefined) {
      finding = this.#find(topic).finally(() => this.#finding.delete(topic));
      this.#finding.set(topic, finding);
    }
    return finding;
  }

  /** It is not there any more: looks for it anew, and creates it, when it is needed. */
  forget(queue: Queue): void {
    if (this.#known.get(queue.topic) !== queue) return;
    this.#known.delete(queue.topic);
    this.#events().signal("queue-lost", queue.topic);
  }

  async #find(topic: string): Promise<Queue> {
    const name = queueOf(topic, this.#options);
    const url = name.url ?? await this.#urlOf(name.name) ?? await this.#create(name);
    const attributes = await this.#attributes(url);
    if (attributes === undefined) this.#events().signal("queue-attributes-denied", topic);
    else this.#tell(topic, attributes);
    const largest = Number(attributes?.["MaximumMessageSize"]);
    const queue = {
      topic,
      url,
      fifo: name.fifo,
      maxBytes: largest > 0 ? largest : MOST_BYTES,
      readable: attributes !== undefined,
    };
    this.#known.set(topic, queue);
    return queue;
  }

  async #urlOf(name: string): Promise<string | undefined> {
    try {
      return (await this.#api.call<{ readonly QueueUrl: string }>("GetQueueUrl", { QueueName: name })).QueueUrl;
    } catch (error) {
      if (isQueueMissing(error)) return undefined;
      throw asError("GetQueueUrl", error);
    }
  }

  async #create({ name, fifo, standard }: QueueName): Promise<string> {
    if (standard !== undefined && await this.#urlOf(standard) !== undefined) throw noOrder();
    const { create, visibilityTimeoutMs } = this.#options;
    if (!create) {
      throw new InvalidOptionError("the queue of this topic does not exist, and create is false", {
        details: { option: "create" },
      });
    }
    const attributes: Attributes = {
      // What we own loses none sooner.
      MessageRetentionPeriod: String(LONGEST_RETENTION_S),
      VisibilityTimeout: String(visibilityTimeoutMs / 1_000),
      // An event has one subject, so duplicates are sought within it, which lets subjects go beside each other.
      ...(fifo
        ? { FifoQueue: "true", DeduplicationScope: "messageGroup", FifoThroughputLimit: "perMessageGroupId" }
        : {}),
    };
    try {
      const made = await this.#api.call<{ readonly QueueUrl: string }>("CreateQueue", {
        QueueName: name,
        Attributes: attributes,
      });
      return made.QueueUrl;
    } catch (error) {
      // Somebody else was first, with other attributes.
      const url = nameOf(error) === "QueueNameExists" ? await this.#urlOf(name) : undefined;
      if (url !== undefined) return url;
      throw asError("CreateQueue", error);
    }
  }

  /** `undefined` = we may not look. */
  async #attributes(url: string): Promise<Attributes | undefined> {
    try {
      const answer = await this.#api.call<{ readonly Attributes?: Attributes }>("GetQueueAttributes", {
        QueueUrl: url,
        AttributeNames: ASKED,
      });
      return answer.Attributes ?? {};
    } catch (error) {
      if (isDenied(error)) return undefined;
      if (isQueueMissing(error)) {
        throw new InvalidOptionError("the queue that queues names for this topic does not exist", {
          details: { option: "queues" },
        });
      }
      throw asError("GetQueueAttributes", error);
    }
  }

  /** What takes messages away behind our back. */
  #tell(topic: string, attributes: Attributes): void {
    const policy = attributes["RedrivePolicy"];
    if (policy !== undefined && policy !== "") {
      const most = Number(/"maxReceiveCount"\s*:\s*"?(\d+)/.exec(policy)?.[1] ?? 0);
      this.#events().signal("redrive-policy", topic, { maxReceiveCount: most });
    }
    const seconds = Number(attributes["MessageRetentionPeriod"] ?? LONGEST_RETENTION_S);
    if (seconds < LONGEST_RETENTION_S) {
      this.#events().signal("short-retention", topic, { retentionMs: seconds * 1_000 });
    }
  }
}
