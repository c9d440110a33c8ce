/**
 * Child processes that are told words and say things.
 *
 * @module
 */
import { type Child, child, until } from "../support/test.ts";
import type { MemberSettings, Said, TeamSettings } from "./settings.ts";

/** How long a child may live, whatever happens. */
const LIFE_MS = 1_800_000;

/** A child process and what it says. */
export class Talker {
  readonly child: Child;
  #read = 0;

  constructor(script: string, settings: TeamSettings, env: Readonly<Record<string, string>> = {}) {
    this.child = child(new URL(script, import.meta.url), [JSON.stringify(settings)], env, { timeoutMs: LIFE_MS });
  }

  tell(word: string): void {
    this.child.write(`${word}\n`);
  }

  /** The next thing of kind `k` that it says; others before it are passed over. */
  async hear<K extends Said["k"]>(k: K, timeoutMs = 20_000): Promise<Extract<Said, { readonly k: K }>> {
    return await until(() => {
      for (;;) {
        const end = this.child.stdout.indexOf("\n", this.#read);
        if (end < 0) return undefined;
        const said = JSON.parse(this.child.stdout.slice(this.#read, end)) as Said;
        this.#read = end + 1;
        if (said.k === "failed") throw new Error(`a child failed: ${said.error}`);
        if (said.k === k) return said as Extract<Said, { readonly k: K }>;
      }
    }, { timeoutMs, what: `a child to say ${k}; it wrote: ${this.child.stderr.slice(-2_000)}` });
  }
}

/** A running member. */
export class Member extends Talker {
  readonly name: string;

  constructor(settings: MemberSettings, env: Readonly<Record<string, string>>) {
    super("./member.ts", settings, env);
    this.name = settings.name;
  }

  /** Resolves when it holds so many messages unsettled. */
  async holds(count: number): Promise<void> {
    while ((await this.hear("holding")).count < count);
  }

  /** Makes it settle what it holds; answers how many settles had which outcome. */
  async settle(): Promise<Readonly<Record<string, number>>> {
    this.tell("settle");
    return (await this.hear("outcomes")).outcomes;
  }

  /** What time it takes it for, ms. */
  async wallClock(): Promise<number> {
    this.tell("time");
    return (await this.hear("time")).now;
  }
}
