/**
 * What members, publishers and the driver write down, and how it is brought into one order.
 *
 * Everything is appended to one list at the server under test. A member appends `handed` before it may settle, and `settling`
 * is in the list before the settle is sent. So the order of the list is the order of cause and effect between processes, with
 * no clock in it, and what a killed process wrote stays.
 *
 * @module
 */
import { Redis } from "ioredis";
import type { SettleOutcome } from "../../core/contract.ts";

/** Something done to a member: `stop` and `cont` are SIGSTOP and SIGCONT, `close` is an orderly end. */
export type Fault = "kill" | "stop" | "cont" | "close";

/** A delivery: the `d`th that the member was handed, of message `n` of a subject, which count up from 0. */
export interface Hand {
  readonly member: string;
  readonly d: number;
  readonly subject: string;
  readonly n: number;
}

/** One line of a history. */
export type Line =
  | (Hand & { readonly k: "handed" })
  /** A settle is about to be sent; `confirm` = its outcome will be known. */
  | (Hand & { readonly k: "settling"; readonly confirm: boolean })
  | (Hand & { readonly k: "settled"; readonly outcome: SettleOutcome })
  /** Held back by `retry`. */
  | (Hand & { readonly k: "held" })
  /** Its signal aborted. */
  | (Hand & { readonly k: "lost" })
  | { readonly k: "fault"; readonly member: string; readonly what: Fault };

/** A history being written. */
export class Journal {
  readonly #client: Redis;
  readonly #key: string;

  constructor(url: string, key: string) {
    this.#client = new Redis(url);
    this.#client.on("error", () => {});
    this.#key = key;
  }

  /** Appends a line; resolves when it stands. Lines of one journal keep their order without waiting for each. */
  async write(line: Line): Promise<void> {
    await this.#client.rpush(this.#key, JSON.stringify(line));
  }

  /** All lines so far. */
  async read(): Promise<Line[]> {
    const lines: Line[] = [];
    for (let at = 0;; at += 5_000) {
      const page = await this.#client.lrange(this.#key, at, at + 4_999);
      for (const text of page) lines.push(JSON.parse(text) as Line);
      if (page.length < 5_000) return lines;
    }
  }

  /** Resolves when everything stands and the connection is closed. */
  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#client.once("end", () => resolve());
      this.#client.quit().catch(() => this.#client.disconnect());
    });
  }
}
