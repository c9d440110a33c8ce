import { type Clock, type Timer, withDeadline } from "../../core/clock.ts";
import { BrokerUnavailableError, ClosedError, type EdaError, ServerUnsupportedError } from "../../core/errors.ts";
import type { ClientSlice, Dialler, MessageSlice, ServerInfo } from "./client.ts";
import { connectError, unsent } from "./errors.ts";
import { Line, type Listening, type OnReply, type PostOptions, type Reply } from "./line.ts";

/** The oldest server that has what is used here. */
const OLDEST = [2, 9] as const;
/** How long a goodbye may take. */
const CLOSE_MS = 1_000;

/** What all connections of a transport share. */
export interface ConnectionSettings {
  readonly clock: Clock;
  readonly dialler: Dialler;
  readonly connectTimeoutMs: number;
  /** Told after each connect. */
  readonly connected: () => void;
}

/**
 * One connection to a server that is replaced when it fails, never repaired: what was sent on a socket that is gone is told
 * as unanswered, and nothing is sent twice.
 */
export class Connection {
  readonly #settings: ConnectionSettings;
  readonly #deadlineMs: number;
  #line: Line | undefined;
  #connecting: Promise<void> | undefined;
  /** Gives up the attempt to connect that is on its way. */
  #giveUp: ((error: Error) => void) | undefined;
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
    const { clock, dialler, connectTimeoutMs, connected } = this.#settings;
    const dialling = dialler.dial();
    try {
      const late = (): Error => unsent("it did not answer in time");
      const work = new Promise<ClientSlice>((resolve, reject) => {
        this.#giveUp = reject;
        dialling.connected.then(resolve, reject);
      });
      const client = await withDeadline(clock, connectTimeoutMs, work, late);
      const { info } = client;
      if (info === undefined || this.#closed) throw unsent("the connection closed");
      mustBeNew(info);
      this.#line = new Line(dialling, client, info, dialler.inbox(), (line) => {
        if (this.#line === line) this.#line = undefined;
      });
    } catch (error) {
      dialling.destroy();
      throw connectError(error);
    } finally {
      this.#giveUp = undefined;
    }
    connected();
  }

  /**
   * Sends one message that is answered; `done` is called once, in any case, where the caller sees to the deadline by
   * {@link within}.
   *
   * @throws What the client refuses: it was not sent then.
   */
  post(what: string, subject: string, data: Uint8Array | string, done: OnReply, options: PostOptions = {}): void {
    const line = this.#line;
    if (line === undefined) done(undefined, unsent("the connection is down"));
    else line.post(what, subject, data, done, options);
  }

  /** Sends one message without waiting for an answer; one that comes goes to `reply`. */
  tell(subject: string, data: Uint8Array | string, reply?: string): void {
    this.#line?.tell(subject, data, reply);
  }

  /** Settles like `work`, which waits for answers; where they do not come in time, the connection is given up. */
  within<T>(work: Promise<T>, deadlineMs: number = this.#deadlineMs): Promise<T> {
    const line = this.#line;
    if (line === undefined) return work;
    const timer: Timer = this.#settings.clock.timer(deadlineMs, () => {
      line.lost(new BrokerUnavailableError(`NATS did not answer within ${deadlineMs} ms`));
    });
    return work.finally(() => timer.cancel());
  }

  /** Sends one message and resolves to its answer. */
  request(what: string, subject: string, data: Uint8Array | string = "", options: PostOptions = {}): Promise<Reply> {
    return this.within(
      new Promise((resolve, reject) => {
        this.post(what, subject, data, (reply, error) => reply === undefined ? reject(error) : resolve(reply), options);
      }),
    );
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
    const listening = line.listen(subject, take, lost, asks);
    return {
      end: () => listening.end(),
      drain: () => this.#line === line ? this.within(listening.drain()) : listening.drain(),
    };
  }

  /** A subject for replies that nobody else has. */
  inbox(): string {
    return this.#settings.dialler.inbox();
  }

  /** Resolves when the server has answered everything that was sent so far. */
  async flush(): Promise<void> {
    if (this.#line === undefined) throw unsent("the connection is down");
    await this.within(this.#line.flush());
  }

  /** Destroys the socket; the next `ready()` makes a new one. */
  reset(why: string): void {
    this.#giveUp?.(unsent(why));
    this.#line?.lost(unsent(why));
  }

  /** Says goodbye and ends for good; resolves when nothing of it is left. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#giveUp?.(unsent("it was closed"));
    const line = this.#line;
    if (line === undefined) return;
    const { clock } = this.#settings;
    const late = (): Error => new Error("the goodbye was not answered in time");
    await withDeadline(clock, CLOSE_MS, line.flush(), late).catch(() => {});
    line.lost(unsent("it was closed"));
    await withDeadline(clock, CLOSE_MS, line.gone(), late).catch(() => {});
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
