import { type Clock, type Timer, withDeadline } from "../../core/clock.ts";
import { type BrokerUnavailableError, ClosedError, type EdaError } from "../../core/errors.ts";
import type { ClientFactory, ClientSlice } from "./client.ts";
import { isReply, refusal, replies, unanswered, unsent } from "./errors.ts";
import { greet } from "./greeting.ts";
import type { Script } from "./scripts/parts.ts";

/** What every connection of a transport shares. */
export interface ConnectionSettings {
  readonly clock: Clock;
  readonly create: ClientFactory;
  readonly connectTimeoutMs: number;
  /** Told whenever a connection was made. */
  readonly connected: () => void;
}

/** How one command is sent. */
export interface CallOptions {
  /** Replies hold bytes instead of text. Default false. */
  readonly bytes?: boolean;
  /** Default: the connection's. */
  readonly deadlineMs?: number;
}

interface Waiting {
  readonly command: string;
  readonly reject: (error: unknown) => void;
}

/** One socket's life. */
interface Line {
  readonly client: ClientSlice;
  /** The server's number for it, where the server may be asked. */
  readonly id: string | undefined;
  readonly waiting: Set<Waiting>;
  down: boolean;
}

/** How long a destroyed socket may take to say so. */
const CLOSE_MS = 500;

/**
 * One connection to Redis that can be lost and made anew, any number of times.
 *
 * The client below it never reconnects, queues or resends. A command is either refused unsent (`BrokerUnavailableError`), or
 * settles with the server's answer, or with `OutcomeUnknownError` when the connection is lost or its deadline passes; whatever
 * the client's own promise does. A deadline that passes destroys the socket: nothing behind it would be answered either. The
 * next `ready()` connects, and ends the predecessor at the server first, so that nothing it still carries is run late.
 */
export class Connection {
  readonly #settings: ConnectionSettings;
  readonly #deadlineMs: number;
  readonly #scripts: readonly Script[];
  #line: Line | undefined;
  #connecting: Promise<Line> | undefined;
  #previous: string | undefined;
  #closed = false;
  /** Sockets that are on their way to be closed. */
  readonly #ending = new Set<Promise<void>>();

  /** @param scripts Loaded at the server whenever it connects. */
  constructor(settings: ConnectionSettings, deadlineMs: number, scripts: readonly Script[] = []) {
    this.#settings = settings;
    this.#deadlineMs = deadlineMs;
    this.#scripts = scripts;
  }

  /** Whether commands can be sent right now. */
  get live(): boolean {
    const client = this.#line?.client;
    // A socket that was reset may not have said so yet.
    return client !== undefined && client.status === "ready" && client.stream?.writable === true;
  }

  /** The server's number for this connection, where known. */
  get id(): string | undefined {
    return this.#line?.id;
  }

  /** Connects unless it is connected; callers share one attempt. */
  async ready(): Promise<void> {
    if (this.live) return;
    if (this.#closed) throw new ClosedError("the connection is closed");
    await (this.#connecting ??= this.#connect().finally(() => this.#connecting = undefined));
  }

  async #connect(): Promise<Line> {
    this.#drop("it was lost");
    const { clock, create, connectTimeoutMs } = this.#settings;
    const client = create();
    const ended = new Promise<void>((resolve) => client.on("end", () => resolve())).then(() => {
      this.#ending.delete(ended);
    });
    this.#ending.add(ended);
    const line: Line = { client, id: undefined, waiting: new Set(), down: false };
    let last: unknown;
    client.on("error", (error) => last = error);
    client.on("close", () => this.#lost(line, "the connection closed", last));
    client.on("end", () => this.#lost(line, "the connection closed", last));
    try {
      const work = client.connect().then(() => greet(client, this.#previous, this.#scripts));
      const id = await withDeadline(clock, connectTimeoutMs, work, () => unsent("it did not answer in time"));
      if (line.down || this.#closed) throw unsent("the connection closed", last);
      this.#previous = id ?? this.#previous;
      this.#settings.connected();
      return this.#line = Object.assign(line, { id });
    } catch (error) {
      line.down = true;
      destroy(client);
      throw isReply(error)
        ? refusal("connecting", error)
        : isReply(last)
        ? refusal("connecting", last)
        : asUnsent(error, last);
    }
  }

  /** Sends one command and resolves to its reply. */
  call(command: string, args: readonly string[], options: CallOptions = {}): Promise<unknown> {
    const line = this.#line;
    if (line === undefined || !this.live) return Promise.reject(unsent("the connection is down"));
    const reply = options.bytes === true
      ? line.client.callBuffer(command, ...args)
      : line.client.call(command, ...args);
    return this.#await(line, command, reply, options.deadlineMs ?? this.#deadlineMs);
  }

  /** Runs a script; the server is told its text only where it does not know it. */
  async run(script: Script, keys: readonly string[], args: readonly string[], options?: CallOptions): Promise<unknown> {
    const rest = [String(keys.length), ...keys, ...args];
    try {
      return await this.call("EVALSHA", [script.sha, ...rest], options);
    } catch (error) {
      if (!isUnknownScript(error)) throw named(error, script);
      return await this.call("EVAL", [script.text, ...rest], options).catch((cause) => {
        throw named(cause, script);
      });
    }
  }

  /**
   * Sends commands in one write, the last of them EXEC, and resolves to what EXEC answered: the replies of the transaction, or
   * null where a watched key had changed. A command that the server refused to queue is the error.
   */
  transact(commands: readonly (readonly [string, ...string[]])[]): Promise<unknown> {
    const line = this.#line;
    if (line === undefined || !this.live) return Promise.reject(unsent("the connection is down"));
    const { client } = line;
    let refused: unknown;
    client.stream?.cork();
    for (const [command, ...args] of commands) {
      client.call(command, ...args).catch((error) => refused ??= error);
    }
    const reply = client.callBuffer("EXEC");
    client.stream?.uncork();
    const work = reply.then((value) => {
      if (isReply(refused)) throw refused;
      return value;
    }, (error) => {
      throw isReply(refused) ? refused : error;
    });
    return this.#await(line, "EXEC", work, this.#deadlineMs);
  }

  #await(line: Line, command: string, reply: Promise<unknown>, deadlineMs: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        command,
        reject: (error) => {
          timer.cancel();
          line.waiting.delete(waiting);
          reject(error);
        },
      };
      const timer: Timer = this.#settings.clock.timer(deadlineMs, () => {
        this.#lost(line, `no answer within ${deadlineMs} ms`, undefined);
      });
      line.waiting.add(waiting);
      reply.then((value) => {
        timer.cancel();
        line.waiting.delete(waiting);
        resolve(value);
      }, (error) => {
        if (isReply(error)) waiting.reject(error);
        else if (/isn't writeable/.test(String((error as Error)?.message))) {
          waiting.reject(unsent("it is not writable"));
        } else this.#lost(line, "the connection closed", error);
      });
    });
  }

  /** The socket is gone, or treated as gone; whatever waits for an answer is told. */
  #lost(line: Line, why: string, cause: unknown): void {
    if (line.down) return;
    line.down = true;
    if (this.#line === line) this.#line = undefined;
    destroy(line.client);
    for (const { command, reject } of [...line.waiting]) reject(unanswered(command, why, cause));
  }

  #drop(why: string): void {
    if (this.#line !== undefined) this.#lost(this.#line, why, undefined);
  }

  /** Destroys the socket; the next `ready()` makes a new one. */
  reset(why: string): void {
    this.#drop(why);
  }

  /** Destroys the socket for good; resolves when nothing of it is left. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#drop("it was closed");
    const { clock } = this.#settings;
    const late = (): Error => new Error("a socket was not closed in time");
    await withDeadline(clock, CLOSE_MS, Promise.all([...this.#ending]), late).catch(() => {});
  }
}

/**
 * Ends a client at once. Where there is a socket it is destroyed, and the client, which may not reconnect, ends with it: asked
 * to disconnect it would say goodbye to a peer that may be silent, and start a timer that outlives a socket already closed.
 */
function destroy(client: ClientSlice): void {
  if (client.stream) client.stream.destroy();
  else client.disconnect();
}

function isUnknownScript(error: unknown): boolean {
  return replies(error, "NOSCRIPT");
}

/** An error reply of a script as ours, named after what the script does; all other errors as they are. */
function named(error: unknown, script: Script): unknown {
  return isReply(error) && !replies(error, "NOGROUP") ? refusal(script.name, error) : error;
}

function asUnsent(error: unknown, last: unknown): BrokerUnavailableError | EdaError {
  const known = error as EdaError;
  return typeof known.retriable === "boolean" ? known : unsent("connecting failed", last ?? error);
}
