import type { Clock } from "../../core/clock.ts";
import type { Api } from "./api.ts";
import { asError } from "./errors.ts";
import type { SqsNative } from "./held.ts";
import type { Queue } from "./queue_book.ts";
import { deliveriesOf, isIntact, type Received, SYSTEM_ATTRIBUTES } from "./wire.ts";

/** One message as it came. */
export interface Message {
  readonly native: SqsNative;
  readonly body: string;
  readonly deliveries: number;
  /** Whether its checksum is that of its body. */
  readonly intact: boolean;
}

/** How messages are asked for. */
export interface ReaderOptions {
  readonly visibilityTimeoutMs: number;
  /** Beyond the wait at SQS. */
  readonly commandTimeoutMs: number;
}

interface Attempt {
  readonly id: string;
  readonly max: number;
  readonly since: number;
}

/** Receives messages of one queue, one call at a time or several beside each other. */
export class Reader {
  readonly #api: Api;
  readonly #clock: Clock;
  readonly #options: ReaderOptions;
  /** FIFO: receives without an answer. SQS hands out the same messages again to the same attempt. */
  #unanswered: Attempt[] = [];

  constructor(api: Api, clock: Clock, options: ReaderOptions) {
    this.#api = api;
    this.#clock = clock;
    this.#options = options;
  }

  /** At most `max` messages, 1 to 10, waiting for the first one for whole seconds. */
  async receive(queue: Queue, max: number, waitSeconds: number, signal?: AbortSignal): Promise<readonly Message[]> {
    const since = this.#clock.monotonic();
    const { visibilityTimeoutMs, commandTimeoutMs } = this.#options;
    const attempt = queue.fifo ? this.#attempt(max, since) : undefined;
    const input = {
      QueueUrl: queue.url,
      MaxNumberOfMessages: attempt?.max ?? max,
      WaitTimeSeconds: waitSeconds,
      VisibilityTimeout: visibilityTimeoutMs / 1_000,
      MessageSystemAttributeNames: SYSTEM_ATTRIBUTES,
      ...(attempt === undefined ? {} : { ReceiveRequestAttemptId: attempt.id }),
    };
    const options = { withinMs: waitSeconds * 1_000 + commandTimeoutMs, ...(signal === undefined ? {} : { signal }) };
    let found: readonly Received[];
    try {
      const answer = await this.#api.call<{ readonly Messages?: readonly Received[] }>(
        "ReceiveMessage",
        input,
        options,
      );
      found = answer.Messages ?? [];
    } catch (error) {
      const failure = asError("ReceiveMessage", error);
      if (attempt !== undefined && failure.code !== "authentication-failed") {
        this.#unanswered.push({ ...attempt, since });
      }
      throw failure;
    }
    return found.map((message) => toMessage(message, since));
  }

  /** One that got no answer, while what it may have brought is still hidden; else a new one. */
  #attempt(max: number, now: number): Attempt {
    this.#unanswered = this.#unanswered.filter(({ since }) => now - since < this.#options.visibilityTimeoutMs);
    const at = this.#unanswered.findIndex((attempt) => attempt.max <= max);
    const [again] = at === -1 ? [] : this.#unanswered.splice(at, 1);
    return again ?? { id: this.#newId(), max, since: now };
  }

  #newId(): string {
    const part = (): string => Math.floor(this.#clock.random() * 36 ** 10).toString(36).padStart(10, "0");
    return `xsm-${part()}${part()}`;
  }
}

function toMessage(received: Received, since: number): Message {
  const { Body = "", MessageId = "", ReceiptHandle = "", Attributes } = received;
  return {
    native: {
      receipt: ReceiptHandle,
      messageId: MessageId,
      group: Attributes?.["MessageGroupId"],
      since,
      state: "held",
    },
    body: Body,
    deliveries: deliveriesOf(received),
    intact: isIntact(Body, received.MD5OfBody),
  };
}
