import type { Connection } from "./connection.ts";
import { isReply, refusal } from "./errors.ts";
import type { Bytes } from "./wire.ts";

/** What an idle wait found. */
export interface WatchEvents {
  /** These streams have entries behind the ids that were watched; all of them when the time ran out, to look anyway. */
  news(streams: readonly string[]): void;
  /** The connection was lost, or the server refused. */
  failed(error: unknown): void;
}

/** Added to twice the block time: a server may start its clock again when another client was woken first. */
const GRACE_MS = 1_000;

/**
 * Waits for streams to grow, by plain XREAD BLOCK on a connection of its own: nothing is delivered by it, so it may be cut at
 * any moment. Runs only while somebody asks, one block at a time.
 */
export class StreamWatch {
  readonly #connection: Connection;
  readonly #main: Connection;
  readonly #blockMs: number;
  readonly #events: WatchEvents;
  #wanted: ReadonlyMap<string, string> = new Map();
  #covered: ReadonlyMap<string, string> = new Map();
  #running = false;
  #closed = false;

  constructor(connection: Connection, main: Connection, blockMs: number, events: WatchEvents) {
    this.#connection = connection;
    this.#main = main;
    this.#blockMs = blockMs;
    this.#events = events;
  }

  /** Waits for entries behind these ids, by stream. A block that does not cover all of them is ended early. */
  watch(wanted: ReadonlyMap<string, string>): void {
    if (this.#closed || wanted.size === 0) return;
    if (!this.#running) {
      this.#wanted = wanted;
      void this.#run();
    } else if ([...wanted.keys()].some((stream) => !this.#covered.has(stream))) {
      this.#wanted = wanted;
      this.#interrupt();
    }
  }

  async #run(): Promise<void> {
    this.#running = true;
    try {
      while (this.#wanted.size > 0 && !this.#closed) {
        const covered = this.#covered = this.#wanted;
        this.#wanted = new Map();
        await this.#connection.ready();
        const reply = await this.#connection.call(
          "XREAD",
          ["COUNT", "1", "BLOCK", String(this.#blockMs), "STREAMS", ...covered.keys(), ...covered.values()],
          { bytes: true, deadlineMs: 2 * this.#blockMs + GRACE_MS },
        ) as readonly (readonly [Bytes])[] | null;
        this.#covered = new Map();
        if (this.#closed) return;
        if (reply !== null) this.#events.news(reply.map(([stream]) => stream.toString("utf8")));
        else if (this.#wanted.size === 0) this.#events.news([...covered.keys()]);
      }
    } catch (error) {
      if (!this.#closed) this.#events.failed(isReply(error) ? refusal("XREAD", error) : error);
    } finally {
      this.#covered = new Map();
      this.#running = false;
    }
  }

  #interrupt(): void {
    const { id } = this.#connection;
    if (id !== undefined) this.#main.call("CLIENT", ["UNBLOCK", id]).catch(() => {});
  }

  /** Destroys the connection; the next watch makes a new one. */
  reset(why: string): void {
    this.#connection.reset(why);
  }

  /** Ends for good. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#connection.close();
  }
}
