import { pause } from "../../core/clock.ts";
import type { MemberStore } from "../../core/ownership/contract.ts";
import type { NatsContext } from "./context.ts";
import type { Listening } from "./line.ts";

/** How long the first beat waits for the others to answer it. */
const HELLO_MS = 150;

const utf8 = new TextDecoder();

type Word = "hello" | "alive" | "bye";

/**
 * The live members of one topic and group, as each hears of the others: all say on one subject that they are alive, and nothing
 * is stored. Who hears otherwise for a moment seeks a partition in vain; the owner record decides.
 */
export class NatsMembers implements MemberStore {
  readonly self: string;
  readonly #context: NatsContext;
  readonly #subject: string;
  /** When each was last heard of, monotonic ms. */
  readonly #heard = new Map<string, number>();
  #listening: Listening | undefined;

  constructor(context: NatsContext, subject: string) {
    this.self = context.consumer;
    this.#context = context;
    this.#subject = subject;
  }

  async beat(leaseMs: number): Promise<readonly string[]> {
    const { clock, main } = this.#context;
    await main.ready();
    if (this.#listening === undefined) {
      this.#listening = main.listen(
        this.#subject,
        ({ data }) => this.#hear(utf8.decode(data)),
        () => this.#listening = undefined,
      );
      this.#say("hello");
      await pause(clock, Math.min(HELLO_MS, leaseMs / 3));
    } else {
      this.#say("alive");
    }
    const now = clock.monotonic();
    for (const [name, at] of this.#heard) if (now - at > leaseMs) this.#heard.delete(name);
    return [...new Set([this.self, ...this.#heard.keys()])].sort();
  }

  #say(word: Word): void {
    this.#context.main.tell(this.#subject, `${word} ${this.self}`);
  }

  #hear(text: string): void {
    const space = text.indexOf(" ");
    const name = text.slice(space + 1);
    if (space < 0 || name === this.self || name.length > 1_024) return;
    const word = text.slice(0, space);
    if (word === "bye") return void this.#heard.delete(name);
    this.#heard.set(name, this.#context.clock.monotonic());
    if (word === "hello") this.#say("alive");
  }

  leave(): Promise<void> {
    if (this.#listening !== undefined) {
      this.#say("bye");
      this.#listening.end();
      this.#listening = undefined;
    }
    return Promise.resolve();
  }
}
