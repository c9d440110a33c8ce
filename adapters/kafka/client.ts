/**
 * The slice of kafkajs 2.2 that is used, and how its clients are made.
 *
 * @module
 */
import type { Buffer } from "node:buffer";
import { ClientMissingError, InvalidOptionError } from "../../core/errors.ts";
import type { Gate } from "./gate.ts";
import type { ResolvedOptions } from "./resolve.ts";
import type { RecordIn } from "./wire.ts";

/** Where a partition is. */
export interface PartitionMetadata {
  readonly partitionId: number;
  readonly leader: number;
}

/** Offsets of a partition's ends. */
export interface PartitionEnds {
  readonly partition: number;
  readonly low: string;
  readonly high: string;
}

/** Administration of topics, and questions. */
export interface AdminSlice {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  describeCluster(): Promise<unknown>;
  fetchTopicMetadata(options: { readonly topics: readonly string[] }): Promise<{
    readonly topics: readonly { readonly name: string; readonly partitions: readonly PartitionMetadata[] }[];
  }>;
  createTopics(options: object): Promise<boolean>;
  fetchTopicOffsets(topic: string): Promise<readonly PartitionEnds[]>;
  fetchOffsets(options: { readonly groupId: string; readonly topics: readonly string[] }): Promise<
    readonly { readonly partitions: readonly { readonly partition: number; readonly offset: string }[] }[]
  >;
}

/** One record to send, its partition chosen. */
export interface ProducedRecord {
  readonly key: Uint8Array | null;
  readonly value: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly partition: number;
}

/** Sends records. */
export interface ProducerSlice {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  sendBatch(batch: {
    readonly acks: -1;
    readonly timeout: number;
    readonly compression: number;
    readonly topicMessages: readonly { readonly topic: string; readonly messages: readonly ProducedRecord[] }[];
  }): Promise<unknown>;
}

/** Records of one partition as fetched. */
export interface BatchSlice {
  readonly topic: string;
  readonly partition: number;
  readonly highWatermark: string;
  /** The offset that was asked for. */
  readonly fetchedOffset: string;
  readonly messages: readonly RecordIn[];
  lastOffset(): string;
}

/** What the client hands a handler of batches. */
export interface BatchPayload {
  readonly batch: BatchSlice;
  resolveOffset(offset: string): void;
  heartbeat(): Promise<void>;
  /** Commits in one try, in the group's generation of the moment. */
  commitOffsetsIfNecessary(offsets: {
    readonly topics: readonly {
      readonly topic: string;
      readonly partitions: readonly { readonly partition: number; readonly offset: string }[];
    }[];
  }): Promise<void>;
}

/** A member of a group. */
export interface ConsumerSlice {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  subscribe(options: { readonly topics: readonly string[]; readonly fromBeginning: boolean }): Promise<void>;
  run(options: {
    readonly autoCommit: false;
    readonly eachBatchAutoResolve: false;
    readonly partitionsConsumedConcurrently: number;
    readonly eachBatch: (payload: BatchPayload) => Promise<void>;
  }): Promise<void>;
  pause(partitions: readonly { readonly topic: string; readonly partitions: readonly number[] }[]): void;
  resume(partitions: readonly { readonly topic: string; readonly partitions: readonly number[] }[]): void;
  seek(position: { readonly topic: string; readonly partition: number; readonly offset: string }): void;
  on(event: string, listener: (event: { readonly payload: never }) => void): () => void;
}

/** Bytes that members of a group tell each other. */
export interface AssignerProtocol {
  readonly MemberMetadata: {
    encode(metadata: { version: number; topics: readonly string[]; userData: Buffer }): Buffer;
    decode(bytes: Uint8Array): { readonly topics: readonly string[]; readonly userData: Buffer | null };
  };
  readonly MemberAssignment: {
    encode(assignment: { version: number; assignment: Record<string, number[]>; userData: Buffer }): Buffer;
  };
}

/** One client. */
export interface KafkaSlice {
  admin(options?: object): AdminSlice;
  producer(options: object): ProducerSlice;
  consumer(options: object): ConsumerSlice;
}

/** What the package exports. */
export interface KafkaModule {
  readonly Kafka: new (options: Readonly<Record<string, unknown>>) => KafkaSlice;
  readonly AssignerProtocol: AssignerProtocol;
}

/** How often and how long a client tries again. */
export interface RetrySettings {
  readonly retries: number;
  readonly initialRetryTime?: number;
  readonly maxRetryTime?: number;
  readonly restartOnFailure?: () => Promise<boolean>;
}

/** Makes a client whose sockets are behind a gate. */
export type ClientFactory = (gate: Gate, requestTimeoutMs: number, retry?: RetrySettings) => KafkaSlice;

const INSTALL = "the npm package kafkajs is not installed: `npm install kafkajs`, `deno add npm:kafkajs` or " +
  "`bun add kafkajs`";

/** Loads kafkajs when it is needed, so that this package works without it for those who use other brokers. */
export async function loadClient(): Promise<KafkaModule> {
  let module: Partial<KafkaModule> & { readonly default?: Partial<KafkaModule> };
  try {
    module = await import("kafkajs") as never;
  } catch (cause) {
    throw new ClientMissingError(INSTALL, { cause });
  }
  const found = module.Kafka === undefined ? module.default : module;
  if (typeof found?.Kafka !== "function" || found.AssignerProtocol === undefined) {
    throw new ClientMissingError("the installed kafkajs is not one this adapter knows: version 2.2.4 or later 2.x");
  }
  await cureIdleTimers();
  return found as KafkaModule;
}

interface QueueInternals {
  pending: readonly unknown[];
  throttledUntil: number;
  scheduleCheckPendingRequests(): void;
}

/**
 * The client's queue of requests re-arms a timer for ever while nothing waits in it, with a delay far below 0: each runtime
 * warns of that, and an idle connection wakes a thousand times a second. With nothing waiting there is nothing to check; what
 * is queued later arms the timer itself.
 */
async function cureIdleTimers(): Promise<void> {
  try {
    // @ts-ignore: the client has no types for its inner files
    const module = await import("kafkajs/src/network/requestQueue/index.js") as {
      readonly default?: { readonly prototype?: QueueInternals & { [CURED]?: true } };
    };
    const queue = module.default?.prototype;
    const original = queue?.scheduleCheckPendingRequests;
    if (queue === undefined || typeof original !== "function" || queue[CURED] === true) return;
    queue[CURED] = true;
    queue.scheduleCheckPendingRequests = function (this: QueueInternals): void {
      if (this.pending.length > 0) original.call(this);
    };
  } catch {
    // A bundle that left this file out has the warnings, and works.
  }
}

const CURED = Symbol.for("xsm-eda.kafkajs.idle-timers-cured");

const silent = (): () => void => () => {};

/** A factory of clients with the user's options and ours. */
export function clientFactory({ Kafka }: KafkaModule, options: ResolvedOptions): ClientFactory {
  // No retries of its own but one for each further broker it may begin with.
  const rounds = { retries: options.brokers.length - 1, initialRetryTime: 20, maxRetryTime: 100 };
  return (gate, requestTimeoutMs, retry = rounds) => {
    try {
      return new Kafka({
        clientId: "xsm-eda",
        ...options.client,
        brokers: [...options.brokers],
        connectionTimeout: options.connectTimeoutMs,
        requestTimeout: requestTimeoutMs,
        enforceRequestTimeout: true,
        retry: { factor: 0.2, multiplier: 2, ...retry },
        socketFactory: gate.create,
        logLevel: 0,
        logCreator: silent,
      });
    } catch {
      // Whatever it says may quote what it was given.
      throw new InvalidOptionError("kafkajs does not accept the client options", { details: { option: "client" } });
    }
  };
}
