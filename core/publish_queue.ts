import type { Clock } from "./clock.ts";
import { textOf } from "./codec.ts";
import type { Envelope } from "./envelope.ts";
import { type EdaError, PublishCapacityError, type PublishOutcome } from "./errors.ts";
import type { ToHost, ToSession } from "./session/messages.ts";

/** A frame is sent at this many messages, else in the next turn. */
const FRAME = 64;
const MAX_MESSAGES = 10_000;
const MAX_BYTES = 64 * 1024 * 1024;

/** Publishes of one topic on their way into one frame. */
interface Batch {
  readonly topic: string;
  readonly bodies: string[];
  readonly subjects: (string | undefined)[];
  readonly settle: ((error: EdaError | undefined) => void)[];
  size: number;
}

/** What is with the session and not answered. */
interface Pending {
  readonly settle: readonly ((error: EdaError | undefined) => void)[];
  readonly size: number;
}

/**
 * Gathers publishes of one turn into frames and matches their answers. Bounded: what would exceed the bounds is refused
 * unsent, so a broker that is away cannot fill the memory.
 */
export class PublishQueue {
  readonly #clock: Clock;
  readonly #nextCall: () => number;
  readonly #post: (message: ToSession) => void;
  readonly #batches = new Map<string, Batch>();
  readonly #pending = new Map<number, Pending>();
  readonly #idle: (() => void)[] = [];
  #messages = 0;
  #bytes = 0;
  #scheduled = false;

  constructor(clock: Clock, nextCall: () => number, post: (message: ToSession) => void) {
    this.#clock = clock;
    this.#nextCall = nextCall;
    this.#post = post;
  }

  /** Publishes that are not answered yet. */
  get size(): number {
    return this.#messages;
  }

  /** Publishes one; resolves when the broker has it. */
  publish<E extends Envelope>(topic: string, envelope: E): Promise<E> {
    return new Promise((resolve, reject) => {
      const text = textOf(envelope);
      const full = this.#reserve(1, text.length);
      if (full !== undefined) return reject(full);
      let batch = this.#batches.get(topic);
      if (batch === undefined) {
        this.#batches.set(topic, batch = { topic, bodies: [], subjects: [], settle: [], size: 0 });
      }
      batch.bodies.push(text);
      batch.subjects.push(envelope.subject);
      batch.size += text.length;
      batch.settle.push((error) => error === undefined ? resolve(envelope) : reject(error));
      if (batch.bodies.length >= FRAME) this.#send(batch);
      else if (!this.#scheduled) {
        this.#scheduled = true;
        this.#clock.turn(() => {
          this.#scheduled = false;
          this.flush();
        });
      }
    });
  }

  /** Publishes many as one chain: a subject ends at its first failure. Never rejects. */
  publishAll(topic: string, envelopes: readonly Envelope[], replay?: number): Promise<readonly PublishOutcome[]> {
    this.flush();
    return new Promise((resolve) => {
      const bodies = envelopes.map(textOf);
      const size = bodies.reduce((sum, body) => sum + body.length, 0);
      const full = this.#reserve(bodies.length, size);
      if (full !== undefined) return resolve(envelopes.map(({ id }) => ({ ok: false, id, error: full })));
      const errors = new Map<number, EdaError>();
      let left = bodies.length;
      const settle = envelopes.map((_, at) => (error: EdaError | undefined): void => {
        if (error !== undefined) errors.set(at, error);
        if (--left > 0) return;
        resolve(envelopes.map(({ id }, n) => {
          const failed = errors.get(n);
          return failed === undefined ? { ok: true, id } : { ok: false, id, error: failed };
        }));
      });
      const call = this.#nextCall();
      this.#pending.set(call, { settle, size });
      const subjects = envelopes.map((envelope) => envelope.subject);
      const counted = replay === undefined ? {} : { replay };
      this.#post({ k: "publish", call, topic, bodies, subjects, chained: true, ...counted });
    });
  }

  #reserve(messages: number, bytes: number): PublishCapacityError | undefined {
    const tooMany = this.#messages > 0 && this.#messages + messages > MAX_MESSAGES;
    if (tooMany || (this.#messages > 0 && this.#bytes + bytes > MAX_BYTES)) {
      return new PublishCapacityError(
        `not sent: ${
          this.#messages.toLocaleString("en")
        } messages wait for the broker already (at most 10,000 or 64 MiB); ` +
          "await earlier publishes, or use an outbox",
      );
    }
    this.#messages += messages;
    this.#bytes += bytes;
    return undefined;
  }

  #send(batch: Batch): void {
    this.#batches.delete(batch.topic);
    const call = this.#nextCall();
    this.#pending.set(call, { settle: batch.settle, size: batch.size });
    const { topic, bodies, subjects } = batch;
    this.#post({ k: "publish", call, topic, bodies, subjects, chained: false });
  }

  /** Sends what is gathered. */
  flush(): void {
    for (const batch of [...this.#batches.values()]) this.#send(batch);
  }

  /** The session's answer to one frame. */
  published(message: Extract<ToHost, { k: "published" }>): void {
    const pending = this.#take(message.call);
    if (pending === undefined) return;
    if (message.errors === undefined) {
      for (const settle of pending.settle) settle(undefined);
    } else {
      const errors = new Map(message.errors as readonly (readonly [number, EdaError])[]);
      pending.settle.forEach((settle, at) => settle(errors.get(at)));
    }
    this.#mayBeIdle();
  }

  #take(call: number): Pending | undefined {
    const pending = this.#pending.get(call);
    if (pending === undefined) return undefined;
    this.#pending.delete(call);
    this.#messages -= pending.settle.length;
    this.#bytes -= pending.size;
    return pending;
  }

  /** Everything that was sent fails with `sent`, what was not with `unsent`. */
  fail(sent: EdaError, unsent: EdaError): void {
    for (const call of [...this.#pending.keys()]) {
      for (const settle of this.#take(call)!.settle) settle(sent);
    }
    for (const batch of [...this.#batches.values()]) {
      this.#batches.delete(batch.topic);
      this.#messages -= batch.settle.length;
      this.#bytes -= batch.size;
      for (const settle of batch.settle) settle(unsent);
    }
    this.#mayBeIdle();
  }

  #mayBeIdle(): void {
    if (this.#messages === 0) { for (const wake of this.#idle.splice(0)) wake(); }
  }

  /** Resolves when everything is answered, or after `ms`. */
  quiet(ms: number): Promise<void> {
    if (this.#messages === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = this.#clock.timer(ms, resolve);
      this.#idle.push(() => {
        timer.cancel();
        resolve();
      });
    });
  }
}
