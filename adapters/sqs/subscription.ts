import type { Clock } from "../../core/clock.ts";
import { InvalidOptionError, isEdaError } from "../../core/errors.ts";
import type { FetchRequest, NativeOutcome, Raw, TransportEvents } from "../../core/transport.ts";
import type { Api } from "./api.ts";
import { Handled, Held, type SqsNative } from "./held.ts";
import { MOST_A_CALL } from "./limits.ts";
import { Poll } from "./poll.ts";
import type { Queue, QueueBook } from "./queue_book.ts";
import { type Message, Reader } from "./reader.ts";
import type { ResolvedOptions } from "./resolve.ts";
import { Settles } from "./settles.ts";

/** Reads beside each other while there is a backlog. */
const READS = 8;
/** How long leaving waits for a read that waits at SQS, before it gives it up. */
const GRACE_MS = 250;
/** How long an answer of SQS may be on its way, at least. */
const ON_ITS_WAY_MS = 50;
const LAG_MS = 30_000;
const NEVER = new AbortController().signal;

/** What a subscription needs of its transport. */
export interface SqsContext {
  readonly api: Api;
  readonly book: QueueBook;
  readonly clock: Clock;
  readonly options: ResolvedOptions;
  readonly events: TransportEvents;
}

/**
 * One topic and group: the consumers of a queue.
 *
 * A fetch takes what the waiting read brought. Without a backlog that is all; while the queue has more than one read takes,
 * reads that do not wait fill it up, several beside each other: SQS locks a message group while one of it is held, so they
 * bring none out of order.
 */
export class Subscription {
  readonly group: string;
  readonly #context: SqsContext;
  readonly #topic: string;
  readonly #reader: Reader;
  readonly #settles: Settles;
  readonly #poll: Poll;
  readonly #held = new Held();
  readonly #handled = new Handled();
  readonly #goingBack = new Set<Promise<void>>();
  #url: string | undefined;
  #backlog = false;
  #told = false;
  #lagAt = 0;
  #stopping: Promise<void> | undefined;

  constructor(context: SqsContext, topic: string, group: string) {
    const { api, clock, options } = context;
    this.group = group;
    this.#context = context;
    this.#topic = topic;
    this.#reader = new Reader(api, clock, options);
    this.#settles = new Settles(api, clock, options.visibilityTimeoutMs);
    this.#poll = new Poll(
      this.#reader,
      clock,
      options.visibilityTimeoutMs / 4,
      () => api.generation,
      (queue, messages) => this.#giveBack(queue, messages.map(({ native }) => native)),
    );
  }

  async fetch(request: FetchRequest): Promise<readonly Raw[]> {
    const { book, clock, events } = this.#context;
    const queue = book.known(this.#topic) ?? await book.find(this.#topic);
    this.#url = queue.url;
    if (!this.#told) {
      this.#told = true;
      events.topic(this.#topic, this.group, "active");
    }
    const from = clock.monotonic();
    this.#tellLag(queue, from);
    try {
      const messages = await this.#read(queue, request);
      if (this.#stopping !== undefined) {
        this.#giveBack(queue, messages.map(({ native }) => native));
        return [];
      }
      return this.#takeIn(queue, messages, from);
    } catch (error) {
      if (!isEdaError(error) || error.cause === undefined || (error.cause as Error).name !== "QueueDoesNotExist") {
        throw error;
      }
      book.forget(queue);
      return [];
    }
  }

  async #read(queue: Queue, { max, waitMs, signal }: FetchRequest): Promise<readonly Message[]> {
    const poll = this.#poll;
    const found = await this.#filled(queue, max, poll.take(max, false));
    if (found.length > 0) return found;
    if (waitMs < 1) return await this.#probe(queue, max);
    const waitSeconds = this.#context.options.waitMs / 1_000;
    // One less, so that there is room for a probe beside it.
    poll.start(queue, Math.min(MOST_A_CALL, Math.max(1, max - 1)), waitSeconds);
    await poll.wait(waitMs, signal);
    const brought = poll.take(max, true);
    this.#backlog = brought.length > 0 && poll.wasFull;
    return await this.#filled(queue, max, brought);
  }

  /** Adds what there is to `found`, up to `max`, while there is a backlog. */
  async #filled(queue: Queue, max: number, found: readonly Message[]): Promise<readonly Message[]> {
    let all = found;
    try {
      while (this.#backlog) {
        const room = max - all.length - this.#poll.promised;
        const news = room < 1 ? [] : await this.#now(queue, room);
        if (news.length === 0) break;
        all = [...all, ...news];
      }
    } catch (error) {
      // What came already counts more.
      if (all.length === 0) throw error;
    }
    return all;
  }

  /** Reads what is there now, several reads beside each other; what some of them bring counts more than that others fail. */
  async #now(queue: Queue, room: number): Promise<readonly Message[]> {
    const sizes: number[] = [];
    for (let left = room; left > 0 && sizes.length < READS; left -= MOST_A_CALL) {
      sizes.push(Math.min(left, MOST_A_CALL));
    }
    const reads = await Promise.allSettled(sizes.map((size) => this.#reader.receive(queue, size, 0)));
    const messages = reads.flatMap((read) => read.status === "fulfilled" ? read.value : []);
    const failure = reads.find((read) => read.status === "rejected");
    if (failure !== undefined && messages.length === 0) throw failure.reason;
    // SQS may bring less than there is, so half of what was asked for speaks of more.
    this.#backlog = 2 * messages.length >= Math.min(room, sizes.length * MOST_A_CALL);
    return messages;
  }

  /**
   * Finds out whether there is nothing. A read that does not wait asks a part of SQS's servers, so a standard queue is asked
   * with the shortest wait. Where the waiting read takes the whole window, it is that one which answers when there is
   * something.
   */
  async #probe(queue: Queue, max: number): Promise<readonly Message[]> {
    const { api, clock } = this.#context;
    const poll = this.#poll;
    const size = Math.min(max - poll.promised, MOST_A_CALL);
    const from = clock.monotonic();
    if (size > 0) {
      const messages = await this.#reader.receive(queue, size, queue.fifo ? 0 : 1);
      this.#backlog = messages.length >= size;
      if (messages.length > 0) return messages;
    } else {
      // Any call tells how long an answer takes.
      await api.call("GetQueueAttributes", { QueueUrl: queue.url, AttributeNames: ["QueueArn"] }).catch(() => {});
    }
    // What there was the waiting read may have been given, and its answer may be on its way.
    await poll.wait(Math.max(ON_ITS_WAY_MS, 2 * (clock.monotonic() - from)), NEVER);
    return poll.take(max, true);
  }

  /** Those to hand out; what was handled before is deleted, and what came damaged goes back with the rest of its group. */
  #takeIn(queue: Queue, messages: readonly Message[], from: number): Raw[] {
    const { clock, events, options } = this.#context;
    const now = clock.monotonic();
    const raws: Raw[] = [];
    const handled: SqsNative[] = [];
    const damaged: SqsNative[] = [];
    for (const { native, body, deliveries, intact } of messages) {
      // An answer that was read too late, as by a process that was frozen: it is another's.
      if (now - native.since >= options.visibilityTimeoutMs) continue;
      if (this.#handled.has(native)) handled.push(native);
      else if (!intact || damaged.some(({ group }) => group !== undefined && group === native.group)) {
        damaged.push(native);
      } else {
        this.#held.add(native);
        // The session counts from when it asked, which for what the waiting read brought is later.
        const leaseMs = options.visibilityTimeoutMs - Math.max(0, from - native.since);
        raws.push({ body, native, partition: 0, deliveries, leaseMs });
      }
    }
    if (damaged.length > 0) {
      events.signal("damaged", this.#topic, { count: damaged.length });
      this.#giveBack(queue, damaged);
    }
    if (handled.length > 0) {
      events.signal("deleted-again", this.#topic, { count: handled.length });
      this.#delete(queue.url, handled).catch(() => {});
    }
    return raws;
  }

  #tellLag(queue: Queue, now: number): void {
    if (now < this.#lagAt || !queue.readable) return;
    this.#lagAt = now + LAG_MS;
    const name = "ApproximateNumberOfMessages";
    const { api, events } = this.#context;
    api.call<{ readonly Attributes?: Readonly<Record<string, string>> }>("GetQueueAttributes", {
      QueueUrl: queue.url,
      AttributeNames: [name],
    }).then(({ Attributes }) => events.lag(this.#topic, this.group, Number(Attributes?.[name] ?? 0)), () => {});
  }

  async ack(natives: readonly SqsNative[]): Promise<readonly NativeOutcome[]> {
    if (this.#url === undefined) return natives.map(() => "stale");
    const outcomes = await this.#delete(this.#url, natives);
    this.#loseGroups(natives, outcomes);
    return outcomes;
  }

  async #delete(url: string, natives: readonly SqsNative[]): Promise<readonly NativeOutcome[]> {
    const ours = natives.filter(({ state }) => state === "held" || state === "deleting");
    try {
      return await this.#settles.delete(url, natives);
    } finally {
      for (const native of ours) {
        if (native.state === "deleted") this.#handled.remove(native);
        else this.#handled.add(native);
        if (native.state !== "held") this.#held.remove(native);
      }
    }
  }

  async extend(natives: readonly SqsNative[]): Promise<readonly NativeOutcome[]> {
    if (this.#url === undefined) return natives.map(() => "stale");
    const outcomes = await this.#settles.extend(this.#url, natives);
    return this.#loseGroups(natives, outcomes);
  }

  async release(natives: readonly SqsNative[], delayMs: number): Promise<readonly NativeOutcome[]> {
    for (const native of natives) this.#held.remove(native);
    if (this.#url === undefined) return natives.map(() => "stale");
    return await this.#settles.release(this.#url, natives, delayMs);
  }

  /**
   * One of a message group is no longer ours, so it comes again: what of the group is behind it must not be handled before,
   * and goes back too. Answers the outcomes with those of the group.
   */
  #loseGroups(natives: readonly SqsNative[], outcomes: readonly NativeOutcome[]): readonly NativeOutcome[] {
    const lost = natives.filter((native, at) =>
      outcomes[at] === "stale" && native.group !== undefined && native.state !== "replaced"
    );
    if (lost.length === 0) return outcomes;
    const others = new Set(lost.flatMap((native) => this.#held.others(native)));
    for (const native of lost) {
      this.#held.remove(native);
      // Past the longest time that SQS lets one be held it is still hidden; at once it is another's.
      if (native.state === "held") others.add(native);
    }
    const elsewhere = [...others].filter((native) => !natives.includes(native));
    if (others.size > 0) this.release([...others], 0).catch(() => {});
    if (elsewhere.length > 0) {
      this.#context.events.lost(this.#topic, this.group, elsewhere, "an earlier message of its group was lost");
    }
    return natives.map((native, at) => others.has(native) ? "stale" : outcomes[at]!);
  }

  #giveBack(queue: Queue, natives: readonly SqsNative[]): void {
    if (natives.length === 0) return;
    const going = this.#settles.release(queue.url, natives, 0).then(() => {}, () => {})
      .finally(() => this.#goingBack.delete(going));
    this.#goingBack.add(going);
  }

  /** Ends reading; what still comes goes back. */
  stop(): Promise<void> {
    return this.#stopping ??= (async () => {
      await this.#poll.stop(GRACE_MS);
      await Promise.all(this.#goingBack);
    })();
  }
}

/** A queue has one group: two would share its messages. */
export function secondGroup(): InvalidOptionError {
  return new InvalidOptionError(
    "this broker reads the topic in another group already, and a queue of SQS has no groups: all its readers share its " +
      "messages; for a second service, have each event put on a queue of its own",
    { details: { option: "group" } },
  );
}
