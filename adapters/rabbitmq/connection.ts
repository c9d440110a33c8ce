import { type Clock, withDeadline } from "../../core/clock.ts";
import { ClosedError, isEdaError, ServerUnsupportedError } from "../../core/errors.ts";
import type { ChannelSlice, Connect, ConnectionSlice } from "./client.ts";
import { openFailure, unsent } from "./errors.ts";
import type { ResolvedOptions, ServerAddress } from "./resolve.ts";

/** What every connection of a transport shares. */
export interface ConnectionSettings {
  readonly clock: Clock;
  readonly connect: Connect;
  readonly options: ResolvedOptions;
}

/** What a connection tells. */
export interface ConnectionEvents {
  /** A connection was made. */
  readonly connected?: () => void;
  /** The server takes no more messages for now. */
  readonly blocked?: () => void;
}

/** Told once when a channel ended that was not closed by its user; `error` is the server's reason, if it gave one. */
export type ChannelLost = (error: unknown) => void;

/** One socket's life. */
interface Line {
  readonly model: ConnectionSlice;
  readonly channels: Set<ChannelLost>;
  down: boolean;
  blocked: boolean;
}

/** Quorum queues with a delivery limit came with it. */
const NEEDED: readonly [number, number] = [3, 8];
/** How long the goodbyes of a connection may take, and a destroyed socket until it says so. */
const CLOSE_MS = 500;

/**
 * One connection to RabbitMQ that can be lost and made anew, any number of times. The client below it never reconnects. All
 * its channels end with it, and with them whatever was delivered or unconfirmed there.
 */
export class Connection {
  readonly #settings: ConnectionSettings;
  readonly #events: ConnectionEvents;
  #line: Line | undefined;
  #connecting: Promise<void> | undefined;
  #attempt: AbortController | undefined;
  #next = 0;
  #closed = false;
  readonly #ending = new Set<Promise<void>>();

  constructor(settings: ConnectionSettings, events: ConnectionEvents = {}) {
    this.#settings = settings;
    this.#events = events;
  }

  /** Whether it stands. */
  get live(): boolean {
    return this.#line !== undefined && !this.#line.model.connection.stream.destroyed;
  }

  /** Whether the server said that it takes no messages: a memory or disk alarm. */
  get blocked(): boolean {
    return this.#line?.blocked ?? false;
  }

  /** The server's version, such as `4.0.5`; empty before it connects. */
  get version(): string {
    return versionOf(this.#line?.model);
  }

  /** What was agreed on as heartbeat, milliseconds; `Infinity`: none, or not connected. */
  get heartbeatMs(): number {
    const seconds = this.#line?.model.connection.heartbeat ?? 0;
    return seconds > 0 ? seconds * 1_000 : Infinity;
  }

  /** Connects unless it is connected; callers share one attempt. */
  async ready(): Promise<void> {
    if (this.live) return;
    if (this.#closed) throw new ClosedError("the connection is closed");
    await (this.#connecting ??= this.#connect().finally(() => this.#connecting = undefined));
  }

  async #connect(): Promise<void> {
    this.#drop("it was lost");
    const { servers, connectTimeoutMs } = this.#settings.options;
    const until = this.#settings.clock.monotonic() + connectTimeoutMs;
    let failure: unknown;
    for (let tries = 0; tries < servers.length; tries++) {
      const server = servers[this.#next % servers.length]!;
      const left = until - this.#settings.clock.monotonic();
      try {
        return await this.#connectTo(server, Math.max(1, left / (servers.length - tries)));
      } catch (error) {
        failure = error;
        if (this.#closed || (isEdaError(error) && !error.retriable)) break;
        this.#next++;
      }
    }
    throw failure;
  }

  async #connectTo(server: ServerAddress, ms: number): Promise<void> {
    const { clock, connect, options } = this.#settings;
    // The one way to reach the socket of an attempt; the client itself would leave it behind.
    const attempt = this.#attempt = new AbortController();
    const socket = { noDelay: true, ...options.client, clientProperties: properties(options), signal: attempt.signal };
    let model: ConnectionSlice | undefined;
    const opening = connect(server, socket).then((found) => {
      model = found;
      found.on("error", () => {});
      return found;
    });
    try {
      await withDeadline(clock, ms, opening, () => unsent("it did not answer in time"));
      if (this.#closed) throw new ClosedError("the connection is closed");
      checkServer(model!);
    } catch (error) {
      attempt.abort();
      opening.then((late) => this.#end(late), () => {});
      throw openFailure(error);
    } finally {
      if (this.#attempt === attempt) this.#attempt = undefined;
    }
    this.#adopt(model!);
  }

  #adopt(model: ConnectionSlice): void {
    const line: Line = { model, channels: new Set(), down: false, blocked: false };
    let last: unknown;
    model.on("error", (error) => last = error);
    model.on("close", (error) => this.#lost(line, last ?? error));
    model.on("blocked", () => {
      line.blocked = true;
      this.#events.blocked?.();
    });
    model.on("unblocked", () => line.blocked = false);
    this.#line = line;
    this.#events.connected?.();
  }

  /** Opens a channel; `lost` is told when it ends otherwise than by {@link closeChannel}. */
  async channel(confirms: boolean, lost: ChannelLost): Promise<ChannelSlice> {
    const line = this.#line;
    if (line === undefined || !this.live) throw unsent("the connection is down");
    let told = false;
    let last: unknown;
    const tell: ChannelLost = (error) => {
      line.channels.delete(tell);
      if (told) return;
      told = true;
      lost(error);
    };
    line.channels.add(tell);
    try {
      const channel = await (confirms ? line.model.createConfirmChannel() : line.model.createChannel());
      channel.on("error", (error) => last = error);
      channel.on("close", () => tell(last));
      if (line.down) throw unsent("the connection closed");
      return channel;
    } catch (error) {
      told = true;
      line.channels.delete(tell);
      throw isEdaError(error) ? error : unsent("a channel could not be opened", error);
    }
  }

  /** The socket is gone, or treated as gone; whoever has a channel on it is told. */
  #lost(line: Line, error: unknown): void {
    if (line.down) return;
    line.down = true;
    if (this.#line === line) this.#line = undefined;
    this.#end(line.model);
    for (const lost of [...line.channels]) lost(error);
  }

  /** Destroys a connection's socket. With an error, so that the client notices and ends its own timers. */
  #end(model: ConnectionSlice): void {
    const { stream } = model.connection;
    if (stream.destroyed) return;
    const ended = new Promise<void>((resolve) => stream.once("close", resolve)).then(() => {
      this.#ending.delete(ended);
    });
    this.#ending.add(ended);
    stream.destroy(new Error("ended"));
  }

  #drop(why: string): void {
    if (this.#line !== undefined) this.#lost(this.#line, unsent(why));
  }

  /** Destroys the socket; the next `ready()` makes a new one. */
  reset(why: string): void {
    this.#attempt?.abort();
    this.#drop(why);
  }

  /** Says goodbye, destroys the socket for good; resolves when nothing of it is left. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#attempt?.abort();
    const { clock } = this.#settings;
    const late = (): Error => new Error("a socket was not closed in time");
    const line = this.#line;
    if (line !== undefined && this.live) {
      line.channels.clear();
      await withDeadline(clock, CLOSE_MS, line.model.close(), late).catch(() => {});
    }
    this.#drop("it was closed");
    await this.#connecting?.catch(() => {});
    await withDeadline(clock, CLOSE_MS, Promise.all([...this.#ending]), late).catch(() => {});
  }
}

function properties({ client }: ResolvedOptions): object {
  return { product: "xsm-eda", connection_name: "xsm-eda", ...client["clientProperties"] as object | undefined };
}

function versionOf(model: ConnectionSlice | undefined): string {
  const version = model?.connection.serverProperties?.["version"];
  return version === undefined ? "" : String(version);
}

function checkServer(model: ConnectionSlice): void {
  const version = versionOf(model);
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (!(major >= 0) || major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1]) || version === "") return;
  throw new ServerUnsupportedError(`the server is RabbitMQ ${version}; ${NEEDED.join(".")} or later is needed`, {
    details: { found: version, needed: NEEDED.join(".") },
  });
}
