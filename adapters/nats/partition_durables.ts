import type { ConsumerConfig } from "./api.ts";
import { nanos } from "./api.ts";
import type { NatsContext } from "./context.ts";
import { API, refusedAs } from "./errors.ts";
import type { Snapshot } from "./progress.ts";
import type { Topic } from "./topic_book.ts";

/** The durable that the owner of a partition reads. */
export interface Durable {
  readonly name: string;
  /** What the server had delivered before: nothing of it is missing if it says the same later. */
  readonly startsAfter: number;
}

/** What a durable is described as, by which ours are known among those of other names' owners. */
function descriptionOf(partition: number): string {
  return `xsm: owner of partition ${partition}`;
}

/** One durable of a partition that is there already. */
interface Found {
  readonly name: string;
  readonly generation: number;
  readonly floor: number;
  readonly delivered: number;
}

/**
 * The durables of a topic's partitions for one group. Each owner reads one of its own, made where its predecessor's ends, which
 * is removed then: so what was left unsettled comes again at once and in order, and a settle or a read of who owned the
 * partition before finds nobody.
 */
export class PartitionDurables {
  readonly #context: NatsContext;
  readonly #topic: Topic;
  readonly #group: string;

  constructor(context: NatsContext, topic: Topic, group: string) {
    this.#context = context;
    this.#topic = topic;
    this.#group = group;
  }

  /**
   * Makes the durable of `generation` behind everything that is settled, and removes earlier ones; `undefined` = a later one is
   * there, so that the partition is another's by now.
   */
  async takeOver(
    partition: number,
    generation: number,
    from: Snapshot,
  ): Promise<{ durable: Durable; from: Snapshot; deliveredTo: number } | undefined> {
    const before = await this.#find(partition);
    if (before.some((one) => one.generation > generation)) return undefined;
    const floor = before.reduce((most, one) => Math.max(most, one.floor), from.floor);
    const deliveredTo = before.reduce((most, one) => Math.max(most, one.delivered), 0);
    const done = from.done.filter(([, last]) => last > floor);
    const name = this.#topic.names.durable(this.#group, partition, generation);
    const earlier = before.filter((one) => one.generation < generation);
    // A stream that removes what is acked takes one reader a message: the earlier one has to go first. Nothing is lost by it.
    if (this.#topic.workQueue) await this.#remove(earlier);
    const made = await this.#make(name, partition, floor);
    if (!this.#topic.workQueue) await this.#remove(earlier);
    return { durable: { name, startsAfter: made }, from: { floor, done }, deliveredTo };
  }

  async #find(partition: number): Promise<Found[]> {
    const { api } = this.#context;
    const { names } = this.#topic;
    const found: Found[] = [];
    for (const name of await api.consumerNames(names.stream)) {
      const generation = names.generation(name, this.#group, partition);
      if (generation === undefined) continue;
      const info = await api.consumer(names.stream, name);
      if (info?.config.description !== descriptionOf(partition)) continue;
      found.push({
        name,
        generation,
        // Until it delivered something, a server may tell no floor.
        floor: Math.max(info.ack_floor.stream_seq, (info.config.opt_start_seq ?? 1) - 1),
        delivered: info.delivered.stream_seq,
      });
    }
    return found;
  }

  async #make(name: string, partition: number, floor: number): Promise<number> {
    const { api, options } = this.#context;
    const { stream } = this.#topic.names;
    const filter = this.#topic.names.filter(partition);
    const config: ConsumerConfig = {
      description: descriptionOf(partition),
      ...(floor === 0 || this.#topic.workQueue
        ? { deliver_policy: "all" }
        : { deliver_policy: "by_start_sequence", opt_start_seq: floor + 1 }),
      ack_policy: "explicit",
      ack_wait: nanos(options.ackWaitMs),
      max_deliver: -1,
      max_ack_pending: -1,
      ...(filter === undefined ? {} : { filter_subject: filter }),
    };
    try {
      return (await api.createConsumer(stream, name, config)).delivered.stream_seq;
    } catch (error) {
      // The answer to an earlier try was lost.
      const made = refusedAs(error, API.consumerExists) ? await api.consumer(stream, name) : undefined;
      if (made === undefined) throw error;
      return made.delivered.stream_seq;
    }
  }

  async #remove(durables: readonly Found[]): Promise<void> {
    for (const { name } of durables) await this.#context.api.deleteConsumer(this.#topic.names.stream, name);
  }
}
