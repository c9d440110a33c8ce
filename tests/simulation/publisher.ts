/**
 * Publishes what a run consumes, and knows what was confirmed.
 *
 * @module
 */
import { type Clock, pause } from "../../core/clock.ts";
import type { EnvelopeInit } from "../../core/envelope.ts";
import { isEdaError, PublishBatchError } from "../../core/errors.ts";
import { chance } from "./dice.ts";
import type { SimBroker } from "./consumer.ts";
import type { Plan } from "./plan.ts";
import type { Rules } from "./rules.ts";
import type { Server } from "./server.ts";

/** Publishes the messages of a plan, without waiting for one before the next. */
export class Publisher {
  readonly #plan: Plan;
  readonly #broker: SimBroker;
  readonly #clock: Clock;
  readonly #rules: Rules;
  /** What became of each, by number. */
  readonly #outcomes = new Map<number, "confirmed" | "unknown" | "unsent">();
  #last = false;

  constructor(plan: Plan, broker: SimBroker, clock: Clock, rules: Rules) {
    this.#plan = plan;
    this.#broker = broker;
    this.#clock = clock;
    this.#rules = rules;
    void this.#run();
  }

  /** Whether everything was published and answered. */
  get done(): boolean {
    return this.#last && this.#outcomes.size === this.#plan.messages;
  }

  #init(n: number): EnvelopeInit {
    const { seed, subjects } = this.#plan;
    const draw = Math.floor(chance(seed, 77, n) * (subjects + 0.2));
    return { type: "n", id: `n-${n}`, data: n, ...(draw < subjects ? { subject: `s${draw}` } : {}) };
  }

  async #run(): Promise<void> {
    const { messages, batch, publishEveryMs } = this.#plan;
    const size = batch ? 4 : 1;
    for (let n = 0; n < messages; n += size) {
      if (batch) this.#publishAll(n, Math.min(messages, n + size));
      else this.#publish(n);
      if (publishEveryMs > 0) await pause(this.#clock, publishEveryMs);
    }
    this.#last = true;
  }

  #publish(n: number): void {
    this.#broker.publish("orders", this.#init(n)).then(
      () => this.#outcomes.set(n, "confirmed"),
      (error) => this.#outcomes.set(n, kindOf(error)),
    );
  }

  #publishAll(from: number, to: number): void {
    const inits = Array.from({ length: to - from }, (_, at) => this.#init(from + at));
    this.#broker.publishAll("orders", inits).then(
      () => inits.forEach((_, at) => this.#outcomes.set(from + at, "confirmed")),
      (error) =>
        inits.forEach((_, at) => {
          const outcome = error instanceof PublishBatchError ? error.outcomes[at]! : undefined;
          this.#outcomes.set(from + at, outcome?.ok === true ? "confirmed" : kindOf(outcome?.error ?? error));
        }),
    );
  }

  /** Compares with what the server has. */
  check(server: Server): void {
    const count = new Map<string, number>();
    const last = new Map<string, number>();
    for (const { id, subject } of server.log.flat()) {
      if (!id.startsWith("n-")) continue;
      count.set(id, (count.get(id) ?? 0) + 1);
      const n = Number(id.slice(2));
      if (subject !== undefined && n < (last.get(subject) ?? -1)) {
        this.#rules.broken("publish", `${id} stands behind a later one of its subject`);
      }
      if (subject !== undefined) last.set(subject, n);
    }
    for (const [n, outcome] of this.#outcomes) {
      const times = count.get(`n-${n}`) ?? 0;
      const right = outcome === "confirmed" ? times === 1 : outcome === "unsent" ? times === 0 : times <= 1;
      if (!right) this.#rules.broken("publish", `n-${n} was ${outcome}, and is in the log ${times} times`);
    }
    if (!this.done) {
      this.#rules.broken("quiet", `${this.#plan.messages - this.#outcomes.size} publishes were never answered`);
    }
  }

  async close(): Promise<void> {
    await this.#broker.close({ drainMs: 500 });
  }
}

function kindOf(error: unknown): "unknown" | "unsent" {
  return isEdaError(error) && error.code === "outcome-unknown" ? "unknown" : "unsent";
}
