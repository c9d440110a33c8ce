import { Backoff, type Clock, pause } from "../../core/clock.ts";
import { BrokerUnavailableError, isEdaError, PublishRefusedError } from "../../core/errors.ts";
import type { Outgoing, SendOutcome } from "../../core/transport.ts";
import type { Connection } from "./connection.ts";
import { unsent } from "./errors.ts";
import type { TopicNames } from "./names.ts";
import { PublishChannel, type Published } from "./publish_channel.ts";
import type { ResolvedOptions } from "./resolve.ts";
import type { Topology } from "./topology.ts";
import { short } from "./wire.ts";

/** How long a queue that was just made may refuse what comes, because it has no leader yet. */
const COLD_MS = 2_000;

/**
 * Publishes with confirms and `mandatory`, on a connection of its own: while the server blocks publishers, consumers go on.
 *
 * RabbitMQ refuses a message and accepts the next, so the session hands over one message a subject at a time where that
 * matters; what is given goes out at once, in order. Only the first message over a channel goes alone: its queue may be so new
 * that it refuses what comes, and what follows must not pass it then.
 */
export class Publisher {
  readonly #clock: Clock;
  readonly #connection: Connection;
  readonly #topology: Topology;
  readonly #options: ResolvedOptions;
  readonly #channels = new Map<string, PublishChannel>();
  readonly #opening = new Map<string, Promise<PublishChannel>>();
  /** Sends that wait for their topic or channel: later ones of the topic wait behind them. */
  readonly #waiting = new Map<string, Promise<unknown>>();
  #keyless = 0;

  constructor(clock: Clock, connection: Connection, topology: Topology, options: ResolvedOptions) {
    this.#clock = clock;
    this.#connection = connection;
    this.#topology = topology;
    this.#options = options;
  }

  /** Sends in order; one outcome a message. */
  async send(topic: string, messages: readonly Outgoing[]): Promise<readonly SendOutcome[]> {
    const names = this.#topology.ready(topic);
    const channel = this.#channels.get(topic);
    const before = this.#waiting.get(topic);
    const isWarm = names !== undefined && channel?.usable === true && channel.warm && this.#connection.live;
    if (isWarm && before === undefined) {
      return await this.#sendOn(channel, topic, names, messages);
    }
    let sent: Promise<readonly SendOutcome[]> | undefined;
    const ready = (async () => {
      await before?.catch(() => {});
      const { channel, names } = await this.#prepare(topic);
      const send = (some: readonly Outgoing[]) => this.#sendOn(channel, topic, names, some);
      let first: SendOutcome[] = [];
      if (!channel.warm && messages.length > 0) {
        first = [await this.#patiently(async () => (await send(messages.slice(0, 1)))[0])];
        channel.warm = first[0] === undefined;
      }
      sent = send(messages.slice(first.length)).then((rest) => [...first, ...rest]);
    })();
    this.#waiting.set(topic, ready);
    try {
      await ready;
    } finally {
      if (this.#waiting.get(topic) === ready) this.#waiting.delete(topic);
    }
    return await sent!;
  }

  /** Tries again what a new queue refuses. */
  async #patiently<T>(publish: () => Promise<T>): Promise<T> {
    const until = this.#clock.monotonic() + COLD_MS;
    const backoff = new Backoff(this.#clock, 20, 200);
    for (;;) {
      const outcome = await publish();
      const isNack = isEdaError(outcome) && outcome.details["reason"] === "nack";
      if (!isNack || this.#clock.monotonic() >= until) return outcome;
      await pause(this.#clock, backoff.next());
    }
  }

  async #prepare(topic: string): Promise<{ channel: PublishChannel; names: TopicNames }> {
    await this.#connection.ready();
    let names: TopicNames;
    try {
      names = await this.#topology.publishing(topic);
    } catch (error) {
      if (!isEdaError(error) || error.details["reason"] !== "missing-exchange") throw error;
      throw new PublishRefusedError(error.message, { details: error.details });
    }
    const open = this.#channels.get(topic);
    if (open?.usable === true) return { channel: open, names };
    let opening = this.#opening.get(topic);
    if (opening === undefined) {
      opening = this.#open(topic, names.exchange).finally(() => this.#opening.delete(topic));
      this.#opening.set(topic, opening);
    }
    return { channel: await opening, names };
  }

  async #open(topic: string, exchange: string): Promise<PublishChannel> {
    const opened: { channel?: PublishChannel; ended?: { readonly error: unknown } } = {};
    const channel = await this.#connection.channel(true, (error) => {
      opened.ended = { error };
      opened.channel?.end(error);
      if (this.#channels.get(topic) === opened.channel) this.#channels.delete(topic);
      // An exchange that is gone has to be made again.
      this.#topology.forgetTopic(topic);
    });
    const found = opened.channel = new PublishChannel(channel, exchange);
    if (opened.ended === undefined) this.#channels.set(topic, found);
    else found.end(opened.ended.error);
    return found;
  }

  async #sendOn(
    channel: PublishChannel,
    topic: string,
    names: TopicNames,
    messages: readonly Outgoing[],
  ): Promise<readonly SendOutcome[]> {
    if (this.#connection.blocked) {
      const error = new BrokerUnavailableError(
        "not sent: RabbitMQ blocks publishers (it is short of memory or of disk space)",
        { details: { reason: "blocked" } },
      );
      return messages.map(() => error);
    }
    // Earlier than the session's own deadline, which would end the consumers' connection too.
    const timer = this.#clock.timer(
      this.#options.publishTimeoutMs * 0.9,
      () => this.#connection.reset("a publish was not confirmed in time"),
    );
    try {
      return await Promise.all(messages.map((message) => this.#one(channel, topic, names, message)));
    } finally {
      timer.cancel();
    }
  }

  async #one(channel: PublishChannel, topic: string, names: TopicNames, message: Outgoing): Promise<SendOutcome> {
    const key = this.#routingKey(topic, names, message);
    const closed = (): BrokerUnavailableError => unsent("the channel closed before the message was sent");
    let outcome: Published = await channel.publish(message, key, closed);
    // Queues of our own making that are gone can be made again, and nobody has what was returned.
    if (outcome === "unroutable" && this.#options.create && this.#options.exchange === undefined) {
      this.#topology.forgetTopic(topic);
      try {
        const { channel: current } = await this.#prepare(topic);
        outcome = await this.#patiently(() => current.publish(message, key, closed));
      } catch (error) {
        return isEdaError(error) ? error : unsent("the topic could not be declared again", error);
      }
    }
    return outcome === "unroutable"
      ? new PublishRefusedError("unroutable: no queue is bound for this message", { details: { reason: "unroutable" } })
      : outcome;
  }

  #routingKey(topic: string, names: TopicNames, { subject }: Outgoing): string {
    if (names.exchange === "") return topic;
    if (subject !== undefined) return short(subject);
    // Without a subject there is no order: the messages are spread.
    return this.#options.partitions > 1 ? String(this.#keyless++ % 65_536) : "";
  }
}
