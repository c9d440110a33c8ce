/**
 * One envelope on its way through the dispatcher, from the broker, a timer, a replay or a direct call.
 *
 * @module
 */
import type { Delivery } from "../contract.ts";
import type { Envelope } from "../envelope.ts";
import type { DeadLetter, DeadLetterReason, FailureCount, ReceiptKey, TimerRow } from "../store/contract.ts";
import type { Outcome } from "./outcomes.ts";

/** Where a job comes from and who wants to know how it ends. */
export interface JobOrigin {
  /** The broker's delivery, for what came from a broker. */
  readonly delivery?: Delivery;
  /** The timer that fired. */
  readonly timer?: TimerRow;
  /** The dead letter that is replayed. */
  readonly replays?: DeadLetter;
  /** Told the first outcome; then the job ends, whatever it was. */
  readonly once?: (outcome: Outcome, error: unknown) => void;
  /** Told when it ended for good. */
  readonly ended?: () => void;
}

/** What a failed attempt leads to, until it is stored. */
export interface Verdict {
  readonly error: unknown;
  /** `failures` = counts, and is the end of it once the limit is reached. Anything else is the end at once. */
  readonly kind: "failures" | "at_once";
  readonly reason: DeadLetterReason;
  /** Later events of the subject may go first: it waits for the one that creates its instance. */
  readonly missing: boolean;
  /** The count, once stored. */
  count?: FailureCount;
  /** The record, made once so that writing it again writes the same. */
  letter?: DeadLetter;
}

/** One envelope and what the dispatcher knows of it. */
export class Job {
  readonly topic: string;
  readonly envelope: Envelope;
  readonly consumer: string;
  readonly origin: JobOrigin;
  /** Order of arrival. */
  readonly seq: number;
  /** Monotonic ms. */
  readonly arrivedAt: number;
  /** Attempts before the next one, the broker's and ours. */
  attempt: number;
  /** Whether a handler saw {@link envelope}: the next attempt then reads it anew. */
  touched = false;
  /** Failures stored so far, as far as known here. */
  failures = 0;
  /** Failures in a row that were not its own: store down, conflicts. */
  setbacks = 0;
  verdict: Verdict | undefined;
  /** Monotonic ms before which it is not tried again by itself. */
  dueAt = 0;
  /** The attempt whose handler is waited for. */
  running: { abandon(): void } | undefined;
  /** It ended here: whatever its handler still does has no effect. */
  ended = false;
  #key: ReceiptKey | undefined;

  constructor(
    topic: string,
    envelope: Envelope,
    consumer: string,
    origin: JobOrigin,
    seq: number,
    arrivedAt: number,
  ) {
    this.topic = topic;
    this.envelope = envelope;
    this.consumer = consumer;
    this.origin = origin;
    this.seq = seq;
    this.arrivedAt = arrivedAt;
    this.attempt = origin.delivery?.attempt ?? 0;
  }

  /** The identity of the event for this consumer. */
  get key(): ReceiptKey {
    return this.#key ??= { consumer: this.consumer, source: this.envelope.source, id: this.envelope.id };
  }

  /** Whether the broker took the delivery away. */
  get lost(): boolean {
    const { delivery } = this.origin;
    return delivery !== undefined && (delivery.lost ?? delivery.signal.aborted);
  }
}
