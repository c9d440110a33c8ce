import { BrokerUnavailableError, type EdaError, isEdaError, PublishRefusedError } from "../../core/errors.ts";
import type { Outgoing, SendOutcome } from "../../core/transport.ts";
import type { Connection } from "./connection.ts";
import { isReply, publishRefusal } from "./errors.ts";
import { partitionOf } from "./keys.ts";
import { PUBLISH } from "./scripts/topics.ts";
import type { TopicBook } from "./topic_book.ts";
import type { Trimmer } from "./trimmer.ts";

/** The most that one command carries; a subject's next messages wait until it is answered. */
const MAX_MESSAGES = 256;
const MAX_CHARS = 4 * 1024 * 1024;

/**
 * Appends messages to streams.
 *
 * A batch for one partition is one script, so that a subject ends at its first refusal: plain pipelined XADDs would let a
 * later message pass an earlier one that was refused while memory was short. It also costs the client a third of what one
 * command a message costs it. A single message is a plain XADD.
 */
export class Publisher {
  readonly #connection: Connection;
  readonly #topics: TopicBook;
  readonly #trimmer: Trimmer;
  readonly #maxLen: string;
  /** Streams whose last send takes several commands: later sends wait for it. */
  readonly #busy = new Map<string, Promise<void>>();
  #preparing = 0;

  constructor(connection: Connection, topics: TopicBook, trimmer: Trimmer, unsafeMaxLen: number | undefined) {
    this.#connection = connection;
    this.#topics = topics;
    this.#trimmer = trimmer;
    this.#maxLen = unsafeMaxLen === undefined ? "" : String(unsafeMaxLen);
  }

  /** Sends in order; one outcome a message. */
  async send(name: string, messages: readonly Outgoing[]): Promise<readonly SendOutcome[]> {
    const topic = this.#topics.get(name);
    // A send that finds everything ready must not pass one that still waits.
    if (!this.#connection.live || !topic.checked || this.#preparing > 0) {
      this.#preparing++;
      try {
        await this.#connection.ready();
        await this.#topics.check(topic, this.#connection);
      } finally {
        this.#preparing--;
      }
    }
    const outcomes = new Array<SendOutcome>(messages.length).fill(undefined);
    if (topic.keys.partitions === 1) {
      await this.#append(topic.keys.streams[0]!, messages, undefined, outcomes);
    } else {
      const parts = new Map<number, number[]>();
      messages.forEach((message, at) => {
        const partition = partitionOf(message.subject, topic.keys.partitions);
        const part = parts.get(partition);
        if (part === undefined) parts.set(partition, [at]);
        else part.push(at);
      });
      await Promise.all(
        Array.from(parts, ([partition, at]) => this.#append(topic.keys.streams[partition]!, messages, at, outcomes)),
      );
    }
    for (const stream of topic.keys.streams) this.#trimmer.poke(this.#connection, name, stream);
    return outcomes;
  }

  /** Appends `messages`, or those at the positions `only`, to one stream, after what was sent there before. Never rejects. */
  #append(
    stream: string,
    messages: readonly Outgoing[],
    only: readonly number[] | undefined,
    outcomes: SendOutcome[],
  ): Promise<void> {
    const before = this.#busy.get(stream);
    if (before === undefined && fitsOne(messages, only)) return this.#appendAll(stream, messages, only, outcomes);
    const run = (): Promise<void> => this.#appendAll(stream, messages, only, outcomes);
    const work: Promise<void> = (before === undefined ? run() : before.then(run)).then(() => {
      if (this.#busy.get(stream) === work) this.#busy.delete(stream);
    });
    this.#busy.set(stream, work);
    return work;
  }

  async #appendAll(
    stream: string,
    messages: readonly Outgoing[],
    only: readonly number[] | undefined,
    outcomes: SendOutcome[],
  ): Promise<void> {
    const total = only?.length ?? messages.length;
    const ended = new Map<string, EdaError>();
    let next = 0;
    while (next < total) {
      const chunk: number[] = [];
      let chars = 0;
      while (next < total && chunk.length < MAX_MESSAGES) {
        const at = only === undefined ? next : only[next]!;
        const { body, subject } = messages[at]!;
        const first = subject === undefined ? undefined : ended.get(subject);
        if (first === undefined) {
          if (chunk.length > 0 && chars + body.length > MAX_CHARS) break;
          chunk.push(at);
          chars += body.length;
        } else {
          outcomes[at] = leftOut(first);
        }
        next++;
      }
      if (chunk.length > 0) await this.#appendChunk(stream, messages, chunk, outcomes, ended);
    }
  }

  async #appendChunk(
    stream: string,
    messages: readonly Outgoing[],
    chunk: readonly number[],
    outcomes: SendOutcome[],
    ended: Map<string, EdaError>,
  ): Promise<void> {
    const fail = (at: number, error: EdaError): void => {
      outcomes[at] = error;
      const { subject } = messages[at]!;
      if (subject !== undefined && !ended.has(subject)) ended.set(subject, error);
    };
    try {
      if (chunk.length === 1) {
        await this.#one(stream, messages[chunk[0]!]!);
        return;
      }
      const args = [this.#maxLen];
      for (const at of chunk) args.push(messages[at]!.subject ?? "", messages[at]!.body);
      const refused = await this.#connection.run(PUBLISH, [stream], args) as (number | string)[];
      for (let n = 0; n < refused.length; n += 2) {
        const at = chunk[refused[n] as number]!;
        const reply = refused[n + 1] as string;
        const { subject } = messages[at]!;
        const first = subject === undefined ? undefined : ended.get(subject);
        if (reply === "" && first !== undefined) outcomes[at] = leftOut(first);
        else fail(at, publishRefusal(new Error(reply.replace(/^-/, ""))));
      }
    } catch (cause) {
      const error = isReply(cause) ? publishRefusal(cause) : isEdaError(cause) ? cause : publishRefusal(cause);
      for (const at of chunk) fail(at, error);
    }
  }

  async #one(stream: string, message: Outgoing): Promise<void> {
    const trim = this.#maxLen === "" ? [] : ["MAXLEN", "~", this.#maxLen];
    await this.#connection.call("XADD", [stream, ...trim, "*", "ce", message.body, "subject", message.subject ?? ""]);
  }
}

/** Whether one command takes them all. */
function fitsOne(messages: readonly Outgoing[], only: readonly number[] | undefined): boolean {
  if ((only ?? messages).length > MAX_MESSAGES) return false;
  let chars = 0;
  if (only === undefined) { for (const { body } of messages) chars += body.length; }
  else for (const at of only) chars += messages[at]!.body.length;
  return chars <= MAX_CHARS;
}

/** For a message behind the first failure of its subject: it never left. */
function leftOut(first: EdaError): EdaError {
  const text = "not sent: an earlier message of its subject failed in the same batch";
  const options = { cause: first, details: { unsent: true } };
  return first.retriable ? new BrokerUnavailableError(text, options) : new PublishRefusedError(text, options);
}
