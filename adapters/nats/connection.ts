import { type Clock, type Timer, withDeadline } from "../../core/clock.ts";
import { BrokerUnavailableError, ClosedError, type EdaError, ServerUnsupportedError } from "../../core/errors.ts";
import type { ClientSlice, Dialler, Dialling, HeadersSlice, MessageSlice, ServerInfo, SubscriptionSlice } from "./client.ts";
import { connectError, forbidden, unanswered, unsent } from "./errors.ts";

/** The oldest server that has what is used here. */
const OLDEST = [2, 9] as const;
/** How long a goodbye may take. */
const CLOSE_MS = 1_000;

/** An answer to something that was sent; `status` is above 0 where it is a status line alone. */
export interface Reply {
  readonly status: number;
  readonly data: Uint8Array;
}

/** Told once: the answer, or why there is none. */
export type OnReply = (reply: Reply | undefined, error?: EdaError) => void;

interface Waiting {
  readonly what: string;
  readonly subject: string;
  readonly done: OnReply;
  /** Whether an answer is one; others are passed over. */
  readonly accept: ((reply: Reply) => boolean) | undefined;
}

/** Something that reads, and is told when it cannot any more. */
interface Listener {
  /** What was asked so that something comes; a missing right to ask it ends the reading. */
  readonly asks: string | undefined;
  lost(error: EdaError): void;
}

/** One socket. What waits for an answer, or reads, belongs to the socket it was sent on. */
interface Line {
  readonly dialling: Dialling;
  readonly client: ClientSlice;
  readonly info: ServerInfo;
  readonly inbox: string;
  readonly waiting: Map<string, Waiting>;
  readonly listeners: Set<Listener>;
  next: number;
  down: boolean;
}

/** What all connections of a transport share. */
export interface ConnectionSettings {
  readonly clock: Clock;
  readonly dialler: Dialler;
  readonly connectTimeoutMs: number;
  /** Told after each connect. */
  readonly connected: () => void;
}

/** Something that reads a subject. */
export interface Listening {
  /** Ends it; resolves when all that had been sent was handed over. */
  drain(): Promise<void>;
  /** Ends it now. */
  end(): void;
}

/**
 * One connection to a server that is replaced when it fails, never repaired: what was sent on a socket that is gone is told
 * as unanswered, and nothing is sent twice. All answers come to one subject of replies.
 */
export class Connection {
  readonly #settings: ConnectionSettings;
  readonly #deadlineMs: number;
  #line: Line | undefined;
  #connecting: Promise<void> | undefined;
  #dialling: Dialling | undefined;
  #closed = false;

  constructor(settings: ConnectionSettings, deadlineMs: number) {
    this.#settings = settings;
    this.#deadlineMs = deadlineMs;
  }

  /** Whether it stands, as far as we know. */
  get live(): boolean {
    return this.#line !== undefined;
  }

  /** What the server said of itself; only while it stands. */
  get info(): ServerInfo | undefined {
    return this.#line?.info;
  }

  /** Resolves when it stands; callers share one attempt. */
  ready(): Promise<void> {
    if (this.#closed) return Promise.reject(new ClosedError("the broker is closed; make a new one"));
    if (this.#line !== undefined) return Promise.resolve();
    return this.#connecting ??= this.#connect().finally(() => this.#connecting = undefined);
  }

  async #connect(): Promise<void> {
    const { clock, dialler, connectTimeoutMs } = this.#settings;
    const dialling = this.#dialling = dialler.dial();
    let client: ClientSlice;
    try {
      client = await withDeadline(clock, connectTimeoutMs, dialling.connected, () => unsent("it did not answer in time"));
    } catch (error) {
      dialling.destroy();
      throw connectError(error);
    } finally {
      this.#dialling = undefined;
    }
    const info = client.info;
    if (info === undefined || this.#closed) {
      dialling.destroy();
      throw unsent("the connection closed");
    }
    try {
      mustBeNew(info);
      this.#line = this.#use(dialling, client, info);
    } catch (error) {
      dialling.destroy();
      throw connectError(error);
    }
    this.#settings.connected();
  }

  #use(dialling: Dialling, client: ClientSlice, info: ServerInfo): Line {
    const inbox = this.#settings.dialler.inbox();
    const line: Line = {
      dialling,
      client,
      info,
      inbox: `${inbox}.`,
      waiting: new Map(),
      listeners: new Set(),
      next: 0,
      down: false,
    };
    client.subscribe(`${inbox}.*`, { callback: (error, message) => this.#answered(line, error, message) });
    void client.closed().then((error) => this.#lost(line, connectError(error ?? unsent("the connection closed"))));
    void this.#watch(line);
    return line;
  }

  /** Listens to what the client tells: a right that is missing ends what waits for it, else it would wait for its deadline. */
  async #watch(line: Line): Promise<void> {
    for await (const { type, error } of line.client.status()) {
      const { name, subject } = (error ?? {}) as { readonly name?: string; readonly subject?: string };
      if (type !== "error" || name !== "PermissionViolationError") continue;
      const replies = subject === `${line.inbox}*`;
      for (const [token, waiting] of [...line.waiting]) {
        if (waiting.subject !== subject && !replies) continue;
        line.waiting.delete(token);
        waiting.done(undefined, forbidden(waiting.what, error));
      }
      for (const listener of [...line.listeners]) {
        if (listener.asks === subject) listener.lost(forbidden("reading", error));
      }
    }
  }

  #answered(line: Line, error: Error | null, message: MessageSlice): void {
    if (error !== null) return;
    const token = message.subject.slice(line.inbox.length);
    const waiting = line.waiting.get(token);
    if (waiting === undefined) return;
    const reply: Reply = { status: message.headers?.code ?? 0, data: message.data };
    if (reply.status === 0 && waiting.accept?.(reply) === false) return;
    line.waiting.delete(token);
    waiting.done(reply);
  }

  /**
   * Sends one message that is answered; `done` is called once, in any case, where the caller sees to the deadline by
   * {@link within}.
   *
   * @throws Whatever the client refuses: it was not sent then.
   */
  post(
    what: string,
    subject: string,
    data: Uint8Array | string,
    done: OnReply,
    options: { readonly headers?: HeadersSlice; readonly accept?: (reply: Reply) => boolean } = {},
  ): void {
    const line = this.#line;
    if (line === undefined) return done(undefined, unsent("the connection is down"));
    const token = (line.next++).toString(36);
    line.waiting.set(token, { what, subject, done, accept: options.accept });
    const reply = line.inbox + token;
    try {
      line.client.publish(subject, data, options.headers === undefined ? { reply } : { reply, headers: options.headers });
    } catch (error) {
      line.waiting.delete(token);
      throw error;
    }
  }

  /** Sends one message without waiting for an answer; one that comes goes to `reply`. */
  tell(subject: string, data: Uint8Array | string, reply?: string): void {
    this.#line?.client.publish(subject, data, reply === undefined ? {} : { reply });
  }

  /** Settles like `work`, which waits for answers; where they do not come in time, the connection is given up. */
  within<T>(work: Promise<T>, deadlineMs: number = this.#deadlineMs): Promise<T> {
    const line = this.#line;
    if (line === undefined) return work;
    const timer: Timer = this.#settings.clock.timer(deadlineMs, () => {
      this.#lost(line, new BrokerUnavailableError(`NATS did not answer within ${deadlineMs} ms`));
    });
    return work.finally(() => timer.cancel());
  }

  /** Sends one message and resolves to its answer. */
  request(
    what: string,
    subject: string,
    data: Uint8Array | string = "",
    options: { readonly headers?: HeadersSlice; readonly deadlineMs?: number } = {},
  ): Promise<Reply> {
    const answer = new Promise<Reply>((resolve, reject) => {
      this.post(what, subject, data, (reply, error) => {
        if (reply === undefined) reject(error);
        else resolve(reply);
      }, options);
    });
    return this.within(answer, options.deadlineMs);
  }

  /**
   * Reads a subject; `lost` is told when the connection ends first, or a right to read, or to ask for it, is missing.
   *
   * @param asks What is sent so that something comes, if anything.
   */
  listen(
    subject: string,
    take: (message: MessageSlice) => void,
    lost: (error: EdaError) => void,
    asks?: string,
  ): Listening {
    const line = this.#line;
    if (line === undefined) throw unsent("the connection is down");
    const subscription: SubscriptionSlice = line.client.subscribe(subject, {
      callback: (error, message) => error === null ? take(message) : lost(forbidden("reading", error)),
    });
    const listener: Listener = { asks, lost };
    line.listeners.add(listener);
    return {
      drain: async () => {
        line.listeners.delete(listener);
        if (!line.down) await this.#orLost(line, subscription.drain());
      },
      end: () => {
        line.listeners.delete(listener);
        if (!line.down) subscription.unsubscribe();
      },
    };
  }

  /** A subject for replies that nobody else has. */
  inbox(): string {
    return this.#settings.dialler.inbox();
  }

  /** Resolves when the server has answered everything that was sent so far. */
  async flush(): Promise<void> {
    const line = this.#line;
    if (line === undefined) throw unsent("the connection is down");
    await this.#orLost(line, line.client.flush());
  }

  /** Settles like `work`, which the client leaves open when the connection ends, or rejects then. */
  #orLost(line: Line, work: Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      const listener: Listener = { asks: undefined, lost: reject };
      line.listeners.add(listener);
      this.within(work.finally(() => line.listeners.delete(listener))).then(resolve, (error) => reject(connectError(error)));
    });
  }

  /** The socket is gone, or treated as gone; whatever waits for an answer is told. */
  #lost(line: Line, error: EdaError): void {
    if (line.down) return;
    line.down = true;
    if (this.#line === line) this.#line = undefined;
    line.dialling.destroy();
    const why = error.code === "authentication-failed" ? "the credentials are not good any more" : "the connection ended";
    for (const { what, done } of [...line.waiting.values()]) done(undefined, unanswered(what, why, error));
    line.waiting.clear();
    for (const listener of [...line.listeners]) listener.lost(error);
    line.listeners.clear();
  }

  /** Destroys the socket; the next `ready()` makes a new one. */
  reset(why: string): void {
    this.#dialling?.destroy();
    if (this.#line !== undefined) this.#lost(this.#line, unsent(why));
  }

  /** Says goodbye and ends for good; resolves when nothing of it is left. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#dialling?.destroy();
    const line = this.#line;
    if (line === undefined) return;
    const { clock } = this.#settings;
    const late = (): Error => new Error("the goodbye was not answered in time");
    await withDeadline(clock, CLOSE_MS, line.client.flush(), late).catch(() => {});
    this.#lost(line, unsent("it was closed"));
    await withDeadline(clock, CLOSE_MS, line.client.closed(), late).catch(() => {});
  }
}

/** @throws ServerUnsupportedError naming both versions. */
function mustBeNew(info: ServerInfo): void {
  const [major = 0, minor = 0] = info.version.split(".").map(Number);
  const newEnough = major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
  if (newEnough && info.headers === true) return;
  const found = /^[\w.+-]{1,32}$/.test(info.version) ? info.version : "of an unknown version";
  throw new ServerUnsupportedError(`the NATS server is ${found}; ${OLDEST.join(".")} or later with headers is needed`);
}
