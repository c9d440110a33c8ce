import { type Clock, pause } from "../../core/clock.ts";
import {
  BrokerUnavailableError,
  type EdaError,
  EnvelopeTooLargeError,
  OutcomeUnknownError,
} from "../../core/errors.ts";
import type { Outgoing, SendOutcome } from "../../core/transport.ts";
import type { Api } from "./api.ts";
import { entryError, isCodeForNow, isForNow, isQueueMissing, publishError } from "./errors.ts";
import { MOST_A_CALL } from "./limits.ts";
import type { Queue, QueueBook } from "./queue_book.ts";
import { type Entry, entryOf, isIntact, sizeOf } from "./wire.ts";

/** Batches of one topic in flight. */
const MOST_FLYING = 16;
/** How far is looked for messages of free subjects. */
const LOOK_AHEAD = 500;
/** How often a message is tried that SQS did not take through no fault of it. */
const TRIES = 4;
const AGAIN_MS = 100;
/** What a batch may weigh whatever its queue takes as one message. */
const LEAST_BATCH_BYTES = 262_144;

interface Item {
  readonly entry: Entry;
  readonly bytes: number;
  readonly subject: string | undefined;
  tries: number;
  done(outcome: SendOutcome): void;
}

interface Answer {
  readonly Successful?: readonly { readonly Id?: string; readonly MD5OfMessageBody?: string }[];
  readonly Failed?: readonly { readonly Id?: string; readonly Code?: string; readonly SenderFault?: boolean }[];
}

/**
 * Publishes on one topic, in batches. Messages of one subject are never in two batches at a time, so none overtakes another;
 * what SQS throttles is tried again with backoff, alone, unless a later one of its subject is stored already.
 */
export class Sender {
  readonly #api: Api;
  readonly #book: QueueBook;
  readonly #clock: Clock;
  readonly #topic: string;
  #waiting: Item[] = [];
  readonly #busy = new Set<string>();
  #flying = 0;
  #generation = 0;

  constructor(api: Api, book: QueueBook, clock: Clock, topic: string) {
    this.#api = api;
    this.#book = book;
    this.#clock = clock;
    this.#topic = topic;
  }

  /** One outcome a message. */
  async send(messages: readonly Outgoing[]): Promise<readonly SendOutcome[]> {
    const queue = this.#book.known(this.#topic) ?? await this.#book.find(this.#topic);
    const outcomes = messages.map((message) =>
      new Promise<SendOutcome>((done) => {
        const entry = entryOf(message, queue.fifo);
        const bytes = sizeOf(entry);
        if (bytes > queue.maxBytes) return done(tooLarge());
        this.#waiting.push({ entry, bytes, subject: message.subject, tries: 0, done });
      })
    );
    this.#next(queue);
    return await Promise.all(outcomes);
  }

  /** Nothing that waits is sent any more. */
  reset(why: string): void {
    this.#generation++;
    for (const item of this.#waiting.splice(0)) {
      item.done(new BrokerUnavailableError(`not sent to SQS: ${why}`));
    }
  }

  #next(queue: Queue): void {
    while (this.#flying < MOST_FLYING) {
      const batch = this.#take(queue);
      if (batch.length === 0) return;
      void this.#fly(queue, batch);
    }
  }

  /** The next batch of messages whose subjects are not on their way. */
  #take(queue: Queue): Item[] {
    const room = Math.max(queue.maxBytes, LEAST_BATCH_BYTES);
    const batch: Item[] = [];
    const skipped: Item[] = [];
    const behind = new Set<string>();
    let bytes = 0;
    let seen = 0;
    for (; seen < this.#waiting.length && seen < LOOK_AHEAD && batch.length < MOST_A_CALL; seen++) {
      const item = this.#waiting[seen]!;
      const { subject } = item;
      const blocked = subject !== undefined && (this.#busy.has(subject) || behind.has(subject));
      if (blocked || bytes + item.bytes > room) {
        skipped.push(item);
        if (subject !== undefined) behind.add(subject);
      } else {
        batch.push(item);
        bytes += item.bytes;
      }
    }
    this.#waiting.splice(0, seen, ...skipped);
    return batch;
  }

  async #fly(queue: Queue, batch: readonly Item[]): Promise<void> {
    const subjects = batch.flatMap(({ subject }) => subject ?? []);
    for (const subject of subjects) this.#busy.add(subject);
    this.#flying++;
    let now = queue;
    try {
      now = await this.#send(queue, batch);
    } finally {
      for (const subject of subjects) this.#busy.delete(subject);
      this.#flying--;
      this.#next(now);
    }
  }

  /** Sends until each has its outcome; answers the queue, which may be a new one. */
  async #send(queue: Queue, batch: readonly Item[]): Promise<Queue> {
    const generation = this.#generation;
    let now = queue;
    for (let left = batch; left.length > 0;) {
      let failure: unknown;
      try {
        left = this.#answered(left, await this.#call(now, left));
      } catch (error) {
        failure = error;
      }
      if (failure !== undefined) {
        const lost = isQueueMissing(failure);
        const again = (lost || isForNow(failure)) && left.every((item) => ++item.tries < TRIES);
        try {
          if (!again) throw publishError(failure);
          if (lost) {
            this.#book.forget(now);
            now = await this.#book.find(this.#topic);
          }
        } catch (error) {
          for (const item of left) item.done(error as EdaError);
          return now;
        }
      }
      if (left.length === 0) return now;
      await pause(this.#clock, AGAIN_MS * 2 ** (left[0]!.tries - 1) * (0.5 + this.#clock.random() / 2));
      if (generation !== this.#generation) {
        for (const item of left) item.done(new BrokerUnavailableError("not sent to SQS: the connection was replaced"));
        return now;
      }
    }
    return now;
  }

  async #call(queue: Queue, batch: readonly Item[]): Promise<Answer> {
    const Entries = batch.map(({ entry }, at) => ({ Id: String(at), ...entry }));
    return await this.#api.call<Answer>("SendMessageBatch", { QueueUrl: queue.url, Entries });
  }

  /** Tells each its outcome; answers those to be tried again. */
  #answered(batch: readonly Item[], { Successful = [], Failed = [] }: Answer): Item[] {
    const stored = new Map(Successful.map((one) => [one.Id, one]));
    const failed = new Map(Failed.map((one) => [one.Id, one]));
    const again: Item[] = [];
    batch.forEach((item, at) => {
      const ok = stored.get(String(at));
      const no = failed.get(String(at));
      if (ok !== undefined) return item.done(outcomeOf(item.entry, ok.MD5OfMessageBody));
      if (no === undefined) return item.done(new OutcomeUnknownError("SQS did not say what became of the message"));
      const overtaken = item.subject !== undefined &&
        batch.some((other, place) => place > at && other.subject === item.subject);
      const passes = no.SenderFault !== true || isCodeForNow(no.Code);
      if (passes && !overtaken && ++item.tries < TRIES) again.push(item);
      else item.done(entryError(no.Code, no.SenderFault === true));
    });
    return again;
  }
}

function outcomeOf({ MessageBody }: Entry, md5: string | undefined): SendOutcome {
  if (isIntact(MessageBody, md5)) return undefined;
  return new OutcomeUnknownError("the checksum that SQS answered is not that of the message");
}

function tooLarge(): EdaError {
  return new EnvelopeTooLargeError("the message, with its attributes, is larger than its queue takes; it was not sent");
}
