import { BrokerUnavailableError, InvalidOptionError, PartitionMismatchError } from "../../core/errors.ts";
import type { ChannelSlice, OnChannel } from "./client.ts";
import type { Connection } from "./connection.ts";
import { channelFailure, harmless, inequivalent, missingPlugin, replyCode } from "./errors.ts";
import { type GroupNames, groupNames, type TopicNames, topicNames } from "./names.ts";
import { declareQueue } from "./queue.ts";
import type { ResolvedOptions } from "./resolve.ts";

/** A fact about a topic worth a line in the log. */
export type TopologySignal = (name: string, topic: string, details: Readonly<Record<string, string>>) => void;

/** The queues of one topic and group. */
export interface Queues extends GroupNames {
  /** Whether they count deliveries. */
  readonly counts: boolean;
}

/**
 * Exchanges, queues and bindings: declared once a connection and again after each loss, on a channel of its own, since a
 * declaration that is refused closes its channel. One at a time.
 */
export class Topology {
  readonly #connection: Connection;
  readonly #options: ResolvedOptions;
  readonly #signal: TopologySignal;
  readonly #published = new Map<string, TopicNames>();
  readonly #groups = new Map<string, Queues>();
  #channel: ChannelSlice | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(connection: Connection, options: ResolvedOptions, signal: TopologySignal) {
    this.#connection = connection;
    this.#options = options;
    this.#signal = signal;
  }

  /** Everything is declared anew before it is used again. */
  forget(): void {
    this.#published.clear();
    this.#groups.clear();
    this.#channel = undefined;
  }

  /** The same for one topic. */
  forgetTopic(topic: string): void {
    this.#published.delete(topic);
    for (const key of [...this.#groups.keys()]) if (key.endsWith(`\0${topic}`)) this.#groups.delete(key);
  }

  /** Where a topic is published, if that is known to stand. */
  ready(topic: string): TopicNames | undefined {
    return this.#published.get(topic);
  }

  /** Makes what publishing needs. */
  async publishing(topic: string): Promise<TopicNames> {
    return this.#published.get(topic) ?? await this.#inTurn(() => this.#forPublishing(topic));
  }

  /** Makes what a group's consumers need. */
  async consuming(topic: string, group: string): Promise<Queues> {
    const key = `${group}\0${topic}`;
    return this.#groups.get(key) ?? await this.#inTurn(async () => {
      const names = this.#options.create ? await this.#forPublishing(topic) : topicNames(topic, this.#options);
      if (!this.#options.create) await this.#checkPartitions(topic, names);
      const queues = this.#options.create
        ? await this.#createGroup(topic, group, names)
        : await this.#findGroup(topic, group, names);
      this.#groups.set(key, queues);
      return queues;
    });
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work, work);
    this.#turn = result.catch(() => {});
    return result;
  }

  readonly #on: OnChannel = async (use) => {
    await this.#connection.ready();
    this.#channel ??= await this.#connection.channel(false, () => this.#channel = undefined);
    const channel = this.#channel;
    try {
      return await use(channel);
    } catch (error) {
      if (this.#channel === channel) this.#channel = undefined;
      channel.close().catch(() => {});
      throw error;
    }
  };

  async #forPublishing(topic: string): Promise<TopicNames> {
    const known = this.#published.get(topic);
    if (known !== undefined) return known;
    const names = topicNames(topic, this.#options);
    const { create, exchange } = this.#options;
    await this.#checkPartitions(topic, names);
    if (names.exchange !== "" && (!create || exchange !== undefined)) {
      if (!await this.#exists("checkExchange", names.exchange)) throw missing("exchange", names.exchange);
    } else if (names.exchange !== "") {
      await this.#declareExchange(names.exchange, "fanout");
    }
    if (create && names.first !== undefined && !(this.#options.reference && exchange !== undefined)) {
      await this.#createQueues(topic, names.first, names.exchange);
    }
    this.#published.set(topic, names);
    return names;
  }

  /** Records the number of partitions, or compares it with the number that is recorded. */
  async #checkPartitions(topic: string, { partitions }: TopicNames): Promise<void> {
    if (partitions === undefined) return;
    if (!this.#options.create && !await this.#exists("checkExchange", partitions)) return;
    const recorded = await this.#record(partitions, String(this.#options.partitions));
    if (recorded === undefined || Number(recorded) === this.#options.partitions) return;
    const details = { topic, given: this.#options.partitions, recorded: Number(recorded) };
    throw new PartitionMismatchError(
      `partitions is ${details.given} here, but ${details.recorded} is recorded for topic "${topic}"`,
      { details },
    );
  }

  /**
   * What is recorded under a name: `value`, unless something was before. An exchange keeps its arguments and tells those who
   * declare it with others, so it can record a text. `undefined`: the user may not look.
   */
  async #record(name: string, value: string): Promise<string | undefined> {
    try {
      await this.#on((channel) =>
        channel.assertExchange(name, "fanout", {
          durable: true,
          internal: true,
          arguments: { "alternate-exchange": value },
        })
      );
      return value;
    } catch (error) {
      const found = inequivalent(error);
      if (found?.argument === "alternate-exchange") return found.current ?? "";
      if (!this.#options.create && replyCode(error) === 403) return undefined;
      throw found === undefined
        ? channelFailure("declaring the record of a topic", error)
        : foreign(name, found.argument);
    }
  }

  async #exists(check: "checkExchange" | "checkQueue", name: string): Promise<boolean> {
    try {
      await this.#on((channel) => channel[check](name) as Promise<unknown>);
      return true;
    } catch (error) {
      if (replyCode(error) === 404) return false;
      throw channelFailure("looking for the exchange or queue of a topic", error);
    }
  }

  async #declareExchange(name: string, type: string): Promise<void> {
    try {
      await this.#on((channel) => channel.assertExchange(name, type, { durable: true }));
    } catch (error) {
      const found = inequivalent(error);
      if (found !== undefined) throw foreign(name, found.argument);
      // An unknown type ends the whole connection.
      if (type !== "fanout" && replyCode(error) !== 403 && isUnknownType(error)) {
        throw missingPlugin({ cause: harmless(error) });
      }
      throw channelFailure("declaring the exchange of a topic", error);
    }
  }

  async #createGroup(topic: string, group: string, names: TopicNames): Promise<Queues> {
    if (names.first !== undefined) {
      const first = names.firstGroup === undefined ? group : await this.#record(names.firstGroup, group);
      if (first === group) return await this.#createQueues(topic, names.first, names.exchange);
    }
    const own = this.#options.reference ? names.first! : groupNames(topic, group, this.#options);
    return await this.#createQueues(topic, own, names.exchange);
  }

  /** Declares a group's queues, and binds them unless they are reached through the default exchange. */
  async #createQueues(topic: string, names: GroupNames, exchange: string): Promise<Queues> {
    const { bindings, exchange: given } = this.#options;
    const patterns = given === undefined ? [""] : bindings;
    if (names.hash !== undefined) await this.#declareExchange(names.hash, "x-consistent-hash");
    const counts = await this.#declareQueues(topic, names);
    try {
      await this.#on(async (channel) => {
        const target = names.hash;
        for (const queue of target === undefined ? [] : names.queues) await channel.bindQueue(queue, target!, "1");
        for (const pattern of exchange === "" ? [] : patterns) {
          if (target !== undefined) await channel.bindExchange(target, exchange, pattern);
          else for (const queue of names.queues) await channel.bindQueue(queue, exchange, pattern);
        }
      });
    } catch (error) {
      throw replyCode(error) === 404 ? missing("exchange", exchange) : channelFailure("binding a queue", error);
    }
    return { ...names, counts };
  }

  /** What is there for a group, without declaring anything: its own queues, else those of the first one. */
  async #findGroup(topic: string, group: string, names: TopicNames): Promise<Queues> {
    const own = this.#options.reference ? undefined : groupNames(topic, group, this.#options);
    if (own !== undefined && await this.#exists("checkQueue", own.queues[0]!)) return await this.#probed(topic, own);
    const { first, firstGroup } = names;
    const candidate = first ?? { queues: [topic] };
    if (!await this.#exists("checkQueue", candidate.queues[0]!)) throw missing("queue", candidate.queues[0]!);
    if (firstGroup !== undefined && await this.#exists("checkExchange", firstGroup)) {
      const recorded = await this.#record(firstGroup, group);
      if (recorded !== undefined && recorded !== group) throw missing("queue", own!.queues[0]!);
    }
    return await this.#probed(topic, candidate);
  }

  async #probed(topic: string, names: GroupNames): Promise<Queues> {
    for (const queue of names.queues) if (!await this.#exists("checkQueue", queue)) throw missing("queue", queue);
    return { ...names, counts: await this.#declareQueues(topic, names) };
  }

  /** Whether all of them count deliveries. */
  async #declareQueues(topic: string, { queues }: GroupNames): Promise<boolean> {
    let counts = true;
    for (const queue of queues) {
      const finding = await declareQueue(this.#on, queue, this.#options);
      counts &&= finding.counts;
      for (const argument of finding.differing) this.#signal("queue-arguments", topic, { argument });
    }
    return counts;
  }
}

function isUnknownType(error: unknown): boolean {
  return /unknown exchange type|invalid exchange type|COMMAND.INVALID|PRECONDITION/i.test(
    String((error as Error)?.message),
  ) ||
    replyCode(error) === 503;
}

/** It is missing, and may come (again). */
function missing(kind: "exchange" | "queue", name: string): BrokerUnavailableError {
  return new BrokerUnavailableError(`the ${kind} "${name}" does not exist, and this transport does not make it`, {
    details: { reason: `missing-${kind}` },
  });
}

function foreign(name: string, argument: string): InvalidOptionError {
  return new InvalidOptionError(
    `the exchange "${name}" is there already with another ${argument}: another system's? Choose another topic, or give exchange`,
    { details: { option: "topic", argument } },
  );
}
