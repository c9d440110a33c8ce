import { type Clock, pause } from "../../core/clock.ts";
import { BrokerUnavailableError, type EdaError } from "../../core/errors.ts";
import { assigners } from "./assigner.ts";
import type { BatchPayload, ConsumerSlice } from "./client.ts";
import type { KafkaContext } from "./context.ts";
import { failureOf } from "./errors.ts";
import { Gate } from "./gate.ts";

/** How long the server may wait for records before it answers a fetch. */
export const FETCH_MS = 500;
const HEARTBEAT_MS = 500;
const PARTITION_BYTES = 1_048_576;
const FETCH_BYTES = 10_485_760;
/** Partitions whose handler may wait at the same time. */
const CONCURRENT = 64;
/**
 * How long leaving waits for what keeps it: joining, then the answer of the group. One that goes without a word is waited for
 * by the others until its session ends.
 */
const LEAVE_MS = 2_500;
/** The same while no broker answers. */
const CUT_OFF_MS = 300;
/** How long the group takes from letting everybody in to telling who has what; past it, nothing is handed out any more. */
const SYNC_MS = 2_000;

/** What a member tells its subscription. */
export interface MemberEvents {
  /** The partitions that are ours. */
  owned(): readonly number[];
  /** These partitions are ours. `continuous`: we had a part in every division of the group since the last time. */
  joined(partitions: readonly number[], continuous: boolean): void;
  /** The group divides its partitions anew; what is committed now still counts. */
  rebalancing(): void;
  /** Ours until then, on the monotonic clock. */
  lease(until: number): void;
  batch(payload: BatchPayload): Promise<void>;
  /** Records from `first` on were fetched of which none is to be read: aborted, or marks of transactions. */
  nothingIn(partition: number, first: bigint, next: bigint, end: bigint): void;
  /** No broker answers. It goes on trying. */
  troubled(error: EdaError): void;
  /** A broker answered. */
  heard(): void;
  /** It has ended, and is of no use any more. */
  crashed(error: EdaError): void;
}

/** What the client says of a batch that was handled. */
interface BatchEnd {
  readonly partition: number;
  /** Records that were handed over. */
  readonly batchSize: number;
  readonly firstOffset: string | null;
  readonly lastOffset: string;
  readonly highWatermark: string;
}

/**
 * One member of a group, reading one topic.
 *
 * It keeps its place over lost connections: the client tries again for ever, since a new member would have to wait until the
 * group gives up the old one.
 */
export class Member {
  readonly #context: KafkaContext;
  readonly #topic: string;
  readonly #group: string;
  readonly #events: MemberEvents;
  readonly #clock: Clock;
  readonly #gate: Gate;
  #consumer: ConsumerSlice | undefined;
  #payload: BatchPayload | undefined;
  #memberId: string | undefined;
  /** How often it asked to be let in since it was last. */
  #asked = 0;
  #sentAt = { Heartbeat: 0, SyncGroup: 0 };
  #leaseUntil = 0;
  #heardAt: number;
  #joined = false;
  #ended = false;
  #wakeLeaving: () => void = () => {};

  constructor(context: KafkaContext, topic: string, group: string, events: MemberEvents) {
    this.#context = context;
    this.#topic = topic;
    this.#group = group;
    this.#events = events;
    this.#clock = context.clock;
    this.#heardAt = this.#clock.monotonic();
    this.#gate = new Gate({ lost: () => this.#troubled("the connection was lost") });
  }

  /** Whether it is in the group and no division is under way. */
  get joined(): boolean {
    return this.#joined && this.#asked === 0;
  }

  /** For how long no broker has answered, milliseconds. */
  get silentMs(): number {
    return this.#clock.monotonic() - this.#heardAt;
  }

  /** Connects and joins. What becomes of it, the events tell. */
  start(): void {
    void this.#start().catch((error) => this.#crash(error));
  }

  async #start(): Promise<void> {
    const { options, create, protocol, instance, topics } = this.#context;
    const retry = {
      retries: Number.MAX_SAFE_INTEGER,
      initialRetryTime: 50,
      maxRetryTime: 300,
      restartOnFailure: () => Promise.resolve(false),
    };
    const consumer = create(this.#gate, options.commandTimeoutMs, retry).consumer({
      groupId: this.#group,
      partitionAssigners: assigners({
        protocol,
        instance,
        partitionsOf: (topic) => topics.count(topic),
        // Past the lease they may be another member's.
        owned: () => this.#clock.monotonic() < this.#leaseUntil ? this.#events.owned() : [],
        joining: () => void this.#asked++,
      }),
      sessionTimeout: options.sessionTimeoutMs,
      rebalanceTimeout: options.rebalanceTimeoutMs,
      heartbeatInterval: Math.min(HEARTBEAT_MS, Math.floor(options.sessionTimeoutMs / 4)),
      maxWaitTimeInMs: FETCH_MS,
      maxBytesPerPartition: PARTITION_BYTES,
      maxBytes: FETCH_BYTES,
      allowAutoTopicCreation: false,
      retry,
    });
    this.#consumer = consumer;
    this.#listen(consumer);
    await consumer.connect();
    await consumer.subscribe({ topics: [this.#topic], fromBeginning: true });
    await consumer.run({
      autoCommit: false,
      // What is not taken in is fetched again.
      eachBatchAutoResolve: false,
      partitionsConsumedConcurrently: CONCURRENT,
      eachBatch: (payload) => {
        this.#payload = payload;
        return this.#events.batch(payload);
      },
    });
  }

  #listen(consumer: ConsumerSlice): void {
    const on = <T>(name: string, listener: (payload: T) => void): void => {
      consumer.on(`consumer.${name}`, ({ payload }) => this.#ended || listener(payload));
    };
    on<{ apiName: string; duration: number }>(
      "network.request",
      ({ apiName, duration }) => this.#answered(apiName, duration),
    );
    on("network.request_timeout", () => {
      this.#gate.cut();
      this.#troubled("a request was not answered in time");
    });
    on("heartbeat", () => this.#lease(this.#sentAt.Heartbeat + this.#context.options.sessionTimeoutMs));
    on("rebalancing", () => this.#events.rebalancing());
    on<{ memberId: string; memberAssignment: Record<string, number[]> }>("group_join", (joined) => this.#letIn(joined));
    on<BatchEnd>("end_batch_process", ({ partition, batchSize, firstOffset, lastOffset, highWatermark }) => {
      if (batchSize > 0 || firstOffset === null) return;
      this.#events.nothingIn(partition, BigInt(firstOffset), BigInt(lastOffset) + 1n, BigInt(highWatermark));
    });
    on<{ error: unknown }>("crash", ({ error }) => this.#crash(error));
    // A crash is told after the end that it leads to.
    on("stop", () => void this.#clock.timer(1_000, () => this.#crash(undefined)));
  }

  #answered(request: string, durationMs: number): void {
    const now = this.#clock.monotonic();
    this.#heardAt = now;
    this.#events.heard();
    // The wall clock measured it, which may have jumped.
    if (request === "Heartbeat" || request === "SyncGroup") this.#sentAt[request] = now - Math.max(0, durationMs);
    else if (request === "JoinGroup" && this.#joined) this.#lease(Math.min(this.#leaseUntil, now + SYNC_MS));
  }

  #letIn({ memberId, memberAssignment }: { memberId: string; memberAssignment: Record<string, number[]> }): void {
    const continuous = this.#joined && this.#asked === 1 && memberId === this.#memberId;
    this.#memberId = memberId;
    this.#joined = true;
    this.#asked = 0;
    this.#leaseUntil = this.#sentAt.SyncGroup + this.#context.options.sessionTimeoutMs;
    this.#events.joined(memberAssignment[this.#topic] ?? [], continuous);
    this.#events.lease(this.#leaseUntil);
    this.#wakeLeaving();
  }

  #lease(until: number): void {
    this.#leaseUntil = until;
    this.#events.lease(until);
  }

  #troubled(why: string): void {
    if (!this.#ended) this.#events.troubled(new BrokerUnavailableError(`consuming is interrupted: ${why}`));
  }

  #crash(error: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#gate.close();
    this.#wakeLeaving();
    this.#events.crashed(
      error === undefined
        ? new BrokerUnavailableError("the consumer stopped by itself")
        : failureOf("consuming", error),
    );
  }

  /** Commits in one try, as the member we are now. Rejects with the client's own error. */
  async commit(offsets: readonly { readonly partition: number; readonly offset: bigint }[]): Promise<void> {
    if (this.#payload === undefined) throw new BrokerUnavailableError("nothing was read yet");
    const partitions = offsets.map(({ partition, offset }) => ({ partition, offset: String(offset) }));
    await this.#payload.commitOffsetsIfNecessary({ topics: [{ topic: this.#topic, partitions }] });
  }

  /** Fetches of this partition begin there. */
  seek(partition: number, offset: bigint): void {
    this.#consumer?.seek({ topic: this.#topic, partition, offset: String(offset) });
  }

  /** Fetches nothing of these partitions, or does again. */
  pause(partitions: readonly number[], on: boolean): void {
    const consumer = this.#consumer;
    if (consumer === undefined || this.#ended) return;
    const list = [{ topic: this.#topic, partitions }];
    if (on) consumer.pause(list);
    else consumer.resume(list);
  }

  /** Replaces every connection. */
  cut(): void {
    this.#gate.cut();
  }

  /** Leaves the group, at once where nothing keeps it, and ends. `answers`: whether a broker does. Never rejects. */
  async stop(answers: boolean): Promise<void> {
    const waitMs = answers ? LEAVE_MS : CUT_OFF_MS;
    const consumer = this.#consumer;
    if (this.#ended || consumer === undefined) return this.#end();
    // Leaving while it is let in would leave a member behind that nobody is.
    if (!this.joined) await this.#orLate(waitMs, new Promise<void>((resolve) => this.#wakeLeaving = resolve));
    if (this.#ended) return;
    this.#ended = true;
    const leaving = consumer.disconnect().catch(() => {});
    this.#gate.cutFetches();
    await this.#orLate(waitMs, leaving);
    this.#end();
  }

  #end(): void {
    this.#ended = true;
    this.#gate.close();
  }

  async #orLate(waitMs: number, work: Promise<void>): Promise<void> {
    const late = new AbortController();
    await Promise.race([work, pause(this.#clock, waitMs, late.signal)]);
    late.abort();
  }
}
