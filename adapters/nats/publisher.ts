import { BrokerUnavailableError, type EdaError, OutcomeUnknownError, PublishRefusedError } from "../../core/errors.ts";
import type { Outgoing, SendOutcome } from "../../core/transport.ts";
import type { Api } from "./api.ts";
import type { HeadersSlice } from "./client.ts";
import type { Connection } from "./connection.ts";
import { ApiRefusal, connectError, overPayload, publishRefusal } from "./errors.ts";
import type { Reply } from "./line.ts";
import type { Topic, TopicBook } from "./topic_book.ts";
import { CONTENT_TYPE, messageId } from "./wire.ts";

const utf8 = new TextDecoder();

/** How a stream answers a message. */
interface StoreAnswer {
  readonly stream?: string;
  readonly seq?: number;
  readonly duplicate?: boolean;
  readonly error?: { readonly code?: number; readonly err_code?: number; readonly description?: string };
}

/** Publishes messages, all in one write, and waits for the stream's confirmation of each. */
export class Publisher {
  readonly #connection: Connection;
  readonly #api: Api;
  readonly #topics: TopicBook;
  readonly #headers: () => HeadersSlice;
  #preparing = 0;

  constructor(connection: Connection, api: Api, topics: TopicBook, headers: () => HeadersSlice) {
    this.#connection = connection;
    this.#api = api;
    this.#topics = topics;
    this.#headers = headers;
  }

  /** Sends in order; one outcome a message. The server may refuse a message and take the next. */
  async send(name: string, messages: readonly Outgoing[]): Promise<readonly SendOutcome[]> {
    const topic = this.#topics.get(name);
    // A send that finds everything ready must not pass one that still waits.
    if (!this.#connection.live || !topic.checked || this.#preparing > 0) {
      this.#preparing++;
      try {
        await this.#connection.ready();
        await this.#topics.check(topic, this.#api);
      } finally {
        this.#preparing--;
      }
    }
    return await this.#connection.within(
      new Promise((resolve) => {
        const outcomes = new Array<SendOutcome>(messages.length).fill(undefined);
        let left = messages.length;
        messages.forEach((message, at) =>
          this.#post(topic, message, (outcome) => {
            outcomes[at] = outcome;
            if (--left === 0) resolve(outcomes);
          })
        );
      }),
    );
  }

  #post(topic: Topic, message: Outgoing, done: (outcome: SendOutcome) => void): void {
    const headers = this.#headers();
    headers.set("Nats-Msg-Id", messageId(message.body, message.replay));
    headers.set("content-type", CONTENT_TYPE);
    let answer: StoreAnswer | undefined;
    // Anyone may answer a subject; only a stream says where it put the message.
    const accept = (reply: Reply): boolean => (answer = read(reply)) !== undefined;
    try {
      this.#connection.post("a message", topic.names.subject(message.subject), message.body, (reply, error) => {
        if (error !== undefined) return done(error);
        if (reply!.status > 0) return done(this.#noStream(topic));
        done(outcomeOf(answer!, message, topic));
      }, { headers, accept });
    } catch (error) {
      done(/max_payload/.test((error as Error)?.message) ? overPayload() : connectError(error));
    }
  }

  #noStream(topic: Topic): EdaError {
    // The next send makes the stream, or finds it where the server was only starting.
    topic.checked = false;
    return new BrokerUnavailableError(`not sent: no stream takes topic "${topic.name}" at this moment`, {
      details: { topic: topic.name, unsent: true },
    });
  }
}

function read(reply: Reply): StoreAnswer | undefined {
  try {
    const answer = JSON.parse(utf8.decode(reply.data)) as StoreAnswer | null;
    const stored = typeof answer?.stream === "string" && typeof answer.seq === "number";
    return stored || typeof answer?.error?.err_code === "number" ? answer! : undefined;
  } catch {
    return undefined;
  }
}

function outcomeOf(answer: StoreAnswer, message: Outgoing, topic: Topic): SendOutcome {
  const { error, stream, duplicate } = answer;
  if (error !== undefined) {
    return publishRefusal(new ApiRefusal(error.code ?? 0, error.err_code ?? 0, error.description ?? "refused"));
  }
  if (stream !== topic.names.stream) {
    return new OutcomeUnknownError(`a stream of another name took a message of topic "${topic.name}"`);
  }
  if (duplicate === true && message.replay !== undefined) {
    return new PublishRefusedError("NATS took the replay for one that it has already, and dropped it");
  }
  return undefined;
}
