import { Buffer } from "node:buffer";
import { type Clock, pause } from "../../core/clock.ts";
import { BrokerUnavailableError, type EdaError, isEdaError, PublishRefusedError } from "../../core/errors.ts";
import { Fifo } from "../../core/fifo.ts";
import type { Outgoing, SendOutcome } from "../../core/transport.ts";
import { publishFailure, type SendFailure, sendFailureOf, typeOf } from "./errors.ts";
import { partitionOf } from "./murmur2.ts";
import type { Producers } from "./producer.ts";
import { PublishCall, type Waiting } from "./publish_call.ts";
import type { TopicBook } from "./topic_book.ts";
import { headersOf, keyOf } from "./wire.ts";

/** Most bytes of one partition in one request; a larger record goes alone. The default of max.message.bytes is 1,048,588. */
const PARTITION_BYTES = 900_000;
/** Most bytes of one request. */
const REQUEST_BYTES = 8 * 1024 * 1024;
/** How long records wait for a partition whose leader moves. */
const MOVE_MS = 1_500;
const LOOK_MS = 100;

/** What waits for one partition. */
class PartitionQueue {
  readonly items = new Fifo<Waiting>();
  readonly topic: string;
  readonly partition: number;
  busy = false;

  constructor(topic: string, partition: number) {
    this.topic = topic;
    this.partition = partition;
  }
}

/** How a request failed. `left`: some of it may have reached a server. */
interface Failed {
  readonly failure: SendFailure;
  readonly error: unknown;
  readonly left: boolean;
}

/** Records of one partition that are sent together. */
interface Run {
  readonly queue: PartitionQueue;
  readonly items: readonly Waiting[];
}

/**
 * Writes records: everything that waits for the partitions of one broker goes in one request, one request a broker at a time.
 *
 * The client tells only that a request failed, not for which of its partitions. Sending each of them again, alone and under
 * the same numbers, finds that out: what the server has it does not write again. The same with the records of a partition
 * that is refused as a whole, so that one record that is too large fails alone. A subject ends at its first failure.
 */
export class Publisher {
  readonly #producers: Producers;
  readonly #topics: TopicBook;
  readonly #clock: Clock;
  readonly #compression: number;
  readonly #timeoutMs: number;
  readonly #queues = new Map<string, PartitionQueue>();
  /** Brokers that are being written to. */
  readonly #busy = new Set<number>();
  /** By topic: settles when all calls so far are queued. */
  readonly #before = new Map<string, Promise<void>>();
  #turn = 0;

  constructor(producers: Producers, topics: TopicBook, clock: Clock, compression: number, timeoutMs: number) {
    this.#producers = producers;
    this.#topics = topics;
    this.#clock = clock;
    this.#compression = compression;
    this.#timeoutMs = timeoutMs;
  }

  /** Sends in order; one outcome a message. */
  send(topic: string, messages: readonly Outgoing[]): Promise<readonly SendOutcome[]> {
    const known = this.#topics.known(topic);
    const before = this.#before.get(topic);
    const call = new PublishCall(messages.length);
    if (known !== undefined && before === undefined) {
      this.#queue(topic, known.leaders.length, messages, call);
      return call.done;
    }
    const mine = (before ?? Promise.resolve()).then(async () => {
      try {
        const { leaders } = await this.#topics.ready(topic);
        this.#queue(topic, leaders.length, messages, call);
      } catch (error) {
        call.fail(asPublishError(error));
      }
    }).finally(() => {
      if (this.#before.get(topic) === mine) this.#before.delete(topic);
    });
    this.#before.set(topic, mine);
    return call.done;
  }

  #queue(topic: string, partitions: number, messages: readonly Outgoing[], call: PublishCall): void {
    const leaders = new Set<number>();
    messages.forEach(({ body, subject }, at) => {
      const key = keyOf(subject);
      const partition = key === null ? this.#turn++ % partitions : partitionOf(key, partitions);
      const record = { key, value: body, headers: headersOf(body), partition };
      this.#queueOf(topic, partition).items.push({ record, subject, call, at, bytes: Buffer.byteLength(body) });
      leaders.add(this.#leaderOf(topic, partition));
    });
    // What is published in one turn goes in one request.
    this.#clock.turn(() => leaders.forEach((leader) => this.#kick(leader)));
  }

  #queueOf(topic: string, partition: number): PartitionQueue {
    const key = `${partition} ${topic}`;
    let queue = this.#queues.get(key);
    if (queue === undefined) this.#queues.set(key, queue = new PartitionQueue(topic, partition));
    return queue;
  }

  #leaderOf(topic: string, partition: number): number {
    return this.#topics.known(topic)?.leaders[partition] ?? -1;
  }

  #kick(leader: number): void {
    if (this.#busy.has(leader)) return;
    const runs = this.#take(leader);
    if (runs.length === 0) return;
    this.#busy.add(leader);
    void this.#write(runs).finally(() => {
      this.#busy.delete(leader);
      for (const { queue } of runs) queue.busy = false;
      for (const at of new Set([leader, ...runs.map(({ queue }) => this.#leaderOf(queue.topic, queue.partition))])) {
        this.#kick(at);
      }
    });
  }

  #take(leader: number): Run[] {
    const runs: Run[] = [];
    let bytes = 0;
    for (const queue of this.#queues.values()) {
      if (bytes >= REQUEST_BYTES) break;
      if (queue.busy || queue.items.length === 0 || this.#leaderOf(queue.topic, queue.partition) !== leader) continue;
      const items: Waiting[] = [];
      let mine = 0;
      for (let next = queue.items.peek(); next !== undefined; next = queue.items.peek()) {
        if (items.length > 0 && mine + next.bytes > PARTITION_BYTES) break;
        queue.items.shift();
        const ended = next.call.endedBy(next);
        if (ended !== undefined) {
          next.call.settle(next, behind(ended));
          continue;
        }
        items.push(next);
        mine += next.bytes;
      }
      if (items.length === 0) continue;
      bytes += mine;
      queue.busy = true;
      runs.push({ queue, items });
    }
    return runs;
  }

  async #write(runs: readonly Run[]): Promise<void> {
    const until = this.#clock.monotonic() + MOVE_MS;
    let failed = await this.#try(runs);
    if (failed === undefined) return confirm(runs);
    if (failed.failure === "unsent" || failed.failure === "unknown") return refuse(runs, failed);
    if (runs.length > 1) {
      if (!failed.left) this.#mayForget(failed);
      for (const run of runs) await this.#write([run]);
      return;
    }
    const [run] = runs as readonly [Run];
    while ((failed.failure === "moved" || failed.failure === "sequence") && this.#clock.monotonic() < until) {
      this.#mayForget(failed);
      await pause(this.#clock, LOOK_MS);
      if (failed.failure === "moved") await this.#topics.refresh(run.queue.topic).catch(() => {});
      failed = await this.#try([run]);
      if (failed === undefined) return confirm(runs);
    }
    if (failed.failure !== "refused" || run.items.length === 1) return refuse(runs, failed);
    for (const item of run.items) {
      const ended = item.call.endedBy(item);
      if (ended !== undefined) item.call.settle(item, behind(ended));
      else await this.#write([{ queue: run.queue, items: [item] }]);
    }
  }

  /** A client that once wrote to a topic asks for it for ever, and for no other one, also when it is gone. */
  #mayForget({ error }: Failed): void {
    if (typeOf(error) === "UNKNOWN_TOPIC_OR_PARTITION") this.#producers.retire();
  }

  async #try(runs: readonly Run[]): Promise<Failed | undefined> {
    let left = false;
    try {
      await this.#producers.use(async (client, gate) => {
        const before = gate.produced;
        try {
          await client.sendBatch({
            acks: -1,
            timeout: this.#timeoutMs,
            compression: this.#compression,
            topicMessages: runs.map(({ queue, items }) => ({
              topic: queue.topic,
              messages: items.map(({ record }) => record),
            })),
          });
        } catch (error) {
          left = gate.produced > before;
          const failure = sendFailureOf(error);
          if (failure !== "refused" && failure !== "moved") this.#producers.retire();
          throw error;
        }
      });
      return undefined;
    } catch (error) {
      const failure = sendFailureOf(error);
      if (failure !== "unsent" && failure !== "unknown") return { failure, error, left };
      // After a failure the client connects anew, and tells how that ended: whether anything left, only the sockets know.
      return { failure: left ? "unknown" : "unsent", error, left };
    }
  }
}

function confirm(runs: readonly Run[]): void {
  for (const { items } of runs) for (const item of items) item.call.settle(item, undefined);
}

function refuse(runs: readonly Run[], { failure, error }: Failed): void {
  for (const { items } of runs) for (const item of items) item.call.settle(item, publishFailure(failure, error));
}

/** For a record behind the first failure of its subject: it never left. */
function behind(first: EdaError): EdaError {
  const text = "not sent: an earlier message of its subject failed";
  const options = { cause: first, details: { unsent: true } };
  return first.retriable ? new BrokerUnavailableError(text, options) : new PublishRefusedError(text, options);
}

function asPublishError(error: unknown): EdaError {
  return isEdaError(error) ? error : publishFailure("unsent", error);
}
