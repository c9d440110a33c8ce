/**
 * Where histories are written: at the server under test, so that one order holds for all processes.
 *
 * @module
 */
import { connect } from "@nats-io/transport-node";
import { Redis } from "ioredis";
import type { Journal, Line } from "./history.ts";
import { isNats } from "./settings.ts";

/** The journal of that name. */
export function journalOf(url: string, key: string): Journal {
  return isNats(url) ? new NatsJournal(url, key) : new RedisJournal(url, key);
}

/** A list of Redis. */
class RedisJournal implements Journal {
  readonly #client: Redis;
  readonly #key: string;

  constructor(url: string, key: string) {
    this.#client = new Redis(url);
    this.#client.on("error", () => {});
    this.#key = key;
  }

  async write(line: Line): Promise<void> {
    await this.#client.rpush(this.#key, JSON.stringify(line));
  }

  async read(): Promise<Line[]> {
    const lines: Line[] = [];
    for (let at = 0;; at += 5_000) {
      const page = await this.#client.lrange(this.#key, at, at + 4_999);
      for (const text of page) lines.push(JSON.parse(text) as Line);
      if (page.length < 5_000) return lines;
    }
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#client.once("end", () => resolve());
      this.#client.quit().catch(() => this.#client.disconnect());
    });
  }
}

/** A stream of NATS. */
class NatsJournal implements Journal {
  readonly #client: ReturnType<typeof connect>;
  readonly #stream: string;
  readonly #ready: Promise<unknown>;
  #last: Promise<unknown> = Promise.resolve();

  constructor(url: string, key: string) {
    this.#client = connect({ servers: url.replace("nats://", "") });
    this.#stream = `journal-${key.replaceAll(/[^\w-]/g, "-")}`;
    this.#ready = this.#api(`STREAM.CREATE.${this.#stream}`, { name: this.#stream, subjects: [this.#stream] });
    this.#ready.catch(() => {});
  }

  async #api<T>(verb: string, body: object): Promise<T> {
    const client = await this.#client;
    return (await client.request(`$JS.API.${verb}`, JSON.stringify(body), { timeout: 30_000 })).json<T>();
  }

  write(line: Line): Promise<void> {
    const before = this.#last;
    const sent = (async () => {
      await this.#ready;
      await before;
      const client = await this.#client;
      // The request is on its way when this is called, so the next one is behind it.
      return { stands: client.request(this.#stream, JSON.stringify(line), { timeout: 60_000 }) };
    })();
    this.#last = sent;
    return sent.then(async ({ stands }) => void await stands);
  }

  async read(): Promise<Line[]> {
    const { state } = await this.#api<{ state: { last_seq: number } }>(`STREAM.INFO.${this.#stream}`, {});
    const lines: Line[] = [];
    for (let from = 1; from <= state.last_seq; from += 500) {
      const page = Array.from(
        { length: Math.min(500, state.last_seq - from + 1) },
        (_, at) => this.#api<{ message: { data: string } }>(`STREAM.MSG.GET.${this.#stream}`, { seq: from + at }),
      );
      for (const { message } of await Promise.all(page)) lines.push(JSON.parse(atob(message.data)) as Line);
    }
    return lines;
  }

  async close(): Promise<void> {
    await this.#last;
    const client = await this.#client;
    await client.flush();
    await client.close();
  }
}
