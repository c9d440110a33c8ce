import type { EdaError } from "../../core/errors.ts";
import type { ClientSlice, Dialling, HeadersSlice, MessageSlice, ServerInfo } from "./client.ts";
import { connectError, forbidden, unanswered, unsent } from "./errors.ts";

/** An answer to something that was sent; `status` is above 0 where it is a status line alone. */
export interface Reply {
  readonly status: number;
  readonly data: Uint8Array;
}

/** Told once: the answer, or why there is none. */
export type OnReply = (reply: Reply | undefined, error?: EdaError) => void;

/** What may be said of a message that is answered. */
export interface PostOptions {
  readonly headers?: HeadersSlice;
  /** Whether an answer is one; others are passed over. */
  readonly accept?: (reply: Reply) => boolean;
}

/** Something that reads a subject. */
export interface Listening {
  /** Ends it; resolves when all that had been sent was handed over. */
  drain(): Promise<void>;
  /** Ends it now. */
  end(): void;
}

interface Waiting {
  readonly what: string;
  readonly subject: string;
  readonly done: OnReply;
  readonly accept: PostOptions["accept"];
}

/** Something that reads, and is told when it cannot any more. */
interface Listener {
  /** What was asked so that something comes; a missing right to ask it ends the reading. */
  readonly asks: string | undefined;
  lost(error: EdaError): void;
}

/**
 * One socket. What waits for an answer, or reads, belongs to the socket it was sent on, and is told when that ends. All answers
 * come to one subject of replies.
 */
export class Line {
  readonly info: ServerInfo;
  readonly #client: ClientSlice;
  readonly #dialling: Dialling;
  readonly #inbox: string;
  readonly #waiting = new Map<string, Waiting>();
  readonly #listeners = new Set<Listener>();
  readonly #onLost: (line: Line) => void;
  #next = 0;
  #down = false;

  constructor(
    dialling: Dialling,
    client: ClientSlice,
    info: ServerInfo,
    inbox: string,
    onLost: (line: Line) => void,
  ) {
    this.#dialling = dialling;
    this.#client = client;
    this.info = info;
    this.#inbox = `${inbox}.`;
    this.#onLost = onLost;
    client.subscribe(`${inbox}.*`, { callback: (error, message) => error === null && this.#answered(message) });
    void client.closed().then((error) => this.lost(connectError(error ?? unsent("the connection closed"))));
    void this.#watch();
  }

  /** Listens to what the client tells: a right that is missing ends what waits for it, else it would wait for its deadline. */
  async #watch(): Promise<void> {
    for await (const { type, error } of this.#client.status()) {
      const { name, subject } = (error ?? {}) as { readonly name?: string; readonly subject?: string };
      if (type !== "error" || name !== "PermissionViolationError") continue;
      const replies = subject === `${this.#inbox}*`;
      for (const [token, waiting] of [...this.#waiting]) {
        if (waiting.subject !== subject && !replies) continue;
        this.#waiting.delete(token);
        waiting.done(undefined, forbidden(waiting.what, error));
      }
      for (const listener of [...this.#listeners]) {
        if (listener.asks === subject) listener.lost(forbidden("reading", error));
      }
    }
  }

  #answered(message: MessageSlice): void {
    const token = message.subject.slice(this.#inbox.length);
    const waiting = this.#waiting.get(token);
    if (waiting === undefined) return;
    const reply: Reply = { status: message.headers?.code ?? 0, data: message.data };
    if (reply.status === 0 && waiting.accept?.(reply) === false) return;
    this.#waiting.delete(token);
    waiting.done(reply);
  }

  /**
   * Sends one message that is answered; `done` is called once.
   *
   * @throws What the client refuses: it was not sent then.
   */
  post(what: string, subject: string, data: Uint8Array | string, done: OnReply, options: PostOptions): void {
    const token = (this.#next++).toString(36);
    const { headers, accept } = options;
    this.#waiting.set(token, { what, subject, done, accept });
    const reply = this.#inbox + token;
    try {
      this.#client.publish(subject, data, headers === undefined ? { reply } : { reply, headers });
    } catch (error) {
      this.#waiting.delete(token);
      if (!isClosed(error)) throw error;
      done(undefined, unsent("the connection is down"));
    }
  }

  /** Sends one message without waiting for an answer; one that comes goes to `reply`. */
  tell(subject: string, data: Uint8Array | string, reply: string | undefined): void {
    try {
      this.#client.publish(subject, data, reply === undefined ? {} : { reply });
    } catch (error) {
      if (!isClosed(error)) throw error;
    }
  }

  /** Reads a subject; see {@link Connection.listen}. */
  listen(
    subject: string,
    take: (message: MessageSlice) => void,
    lost: (error: EdaError) => void,
    asks: string | undefined,
  ): Listening {
    const subscription = this.#client.subscribe(subject, {
      callback: (error, message) => error === null ? take(message) : lost(forbidden("reading", error)),
    });
    const listener: Listener = { asks, lost };
    this.#listeners.add(listener);
    return {
      drain: async () => {
        this.#listeners.delete(listener);
        if (!this.#down) await this.#orLost(subscription.drain());
      },
      end: () => {
        this.#listeners.delete(listener);
        if (!this.#down) subscription.unsubscribe();
      },
    };
  }

  /** Resolves when the server has answered everything that was sent so far. */
  flush(): Promise<void> {
    return this.#orLost(this.#client.flush());
  }

  /** Settles like `work`, which the client leaves open when the connection ends, or rejects then. */
  #orLost(work: Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      const listener: Listener = { asks: undefined, lost: reject };
      this.#listeners.add(listener);
      work.finally(() => this.#listeners.delete(listener)).then(resolve, (error) => reject(connectError(error)));
    });
  }

  /** The socket is gone, or treated as gone; whatever waits for an answer is told. */
  lost(error: EdaError): void {
    if (this.#down) return;
    this.#down = true;
    this.#onLost(this);
    this.#dialling.destroy();
    const refused = error.code === "authentication-failed";
    const why = refused ? "the credentials are not good any more" : "the connection ended";
    for (const { what, done } of [...this.#waiting.values()]) done(undefined, unanswered(what, why, error));
    this.#waiting.clear();
    for (const listener of [...this.#listeners]) listener.lost(error);
    this.#listeners.clear();
  }

  /** Resolves when the client has let go of everything. */
  async gone(): Promise<void> {
    await this.#client.closed();
  }
}

/** Whether the client refuses because its socket is gone, which it learns before it tells us. */
function isClosed(error: unknown): boolean {
  return /^(?:Closed|Draining)ConnectionError$/.test(String((error as Error)?.name));
}
