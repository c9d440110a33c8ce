import type { Timer } from "../../core/clock.ts";
import type { Connection } from "./connection.ts";
import type { RedisContext } from "./context.ts";

/** How long until it is said again. */
const AGAIN_MS = 10;

/** Ends a blocked read at the server when one of several signals aborts. */
export class Unblock {
  readonly #context: RedisContext;
  readonly #blocked: Connection;
  readonly #signals: readonly AbortSignal[];
  readonly #start = (): void => {
    if (!this.#started) this.#say();
    this.#started = true;
  };
  #timer: Timer | undefined;
  #started = false;
  #over = false;

  constructor(context: RedisContext, blocked: Connection, signals: readonly AbortSignal[]) {
    this.#context = context;
    this.#blocked = blocked;
    this.#signals = signals;
    for (const signal of signals) signal.addEventListener("abort", this.#start, { once: true });
    if (signals.some((signal) => signal.aborted)) this.#start();
  }

  /** The read may not have reached the server yet, which then has nothing to end: so this is said until it is over. */
  #say(): void {
    const { main, clock } = this.#context;
    const { id } = this.#blocked;
    if (this.#over || id === undefined || !main.live) return;
    main.call("CLIENT", ["UNBLOCK", id]).then(() => {
      if (!this.#over) this.#timer = clock.timer(AGAIN_MS, () => this.#say());
    }, () => {});
  }

  /** The read has ended. */
  over(): void {
    this.#over = true;
    this.#timer?.cancel();
    for (const signal of this.#signals) signal.removeEventListener("abort", this.#start);
  }
}
