/**
 * One run of the dispatcher: loops over topics, side tasks, and the end.
 *
 * @module
 */
import { type Clock, pause } from "../clock.ts";
import type { BrokerAdapter, Delivery } from "../contract.ts";
import { errorName } from "../guard.ts";
import type { Logger } from "../logger.ts";
import type { Relay } from "../outbox/relay.ts";
import type { Budget } from "./budget.ts";
import { consume } from "./consume.ts";
import type { Engine } from "./engine.ts";
import { housekeep } from "./housekeeping.ts";
import type { Lanes } from "./lanes.ts";
import type { OutboxWatch } from "./outbox_watch.ts";
import type { Services } from "./services.ts";
import type { TimerService } from "./timers.ts";

/** How long a run waits for what has begun, where its time is up. */
const LAST_MS = 1_000;

/** What a run works with. */
export interface RunParts {
  readonly broker: BrokerAdapter;
  readonly services: Services;
  readonly lanes: Lanes;
  readonly engine: Engine;
  readonly budget: Budget;
  readonly timers: TimerService;
  readonly relay: Relay | undefined;
  readonly watch: OutboxWatch;
  readonly drainMs: number;
  /** Puts a delivery into its lane. */
  offer(delivery: Delivery): void;
}

/** One run, over once it is awaited. */
export class Run {
  readonly #parts: RunParts;
  readonly #stop = new AbortController();
  readonly #clock: Clock;
  readonly #log: Logger;
  #taken = 0;

  constructor(parts: RunParts) {
    this.#parts = parts;
    this.#clock = parts.services.clock;
    this.#log = parts.services.log;
  }

  /** Consumes until `signal` aborts or every stream has ended, then drains. */
  async untilStopped(topics: readonly string[], signal: AbortSignal | undefined): Promise<void> {
    const { services, timers, relay, watch } = this.#parts;
    await this.#withSignal(signal, async () => {
      const side = new AbortController();
      const tasks = [
        timers.run(side.signal),
        housekeep(services, side.signal),
        watch.run(side.signal),
        ...(relay === undefined ? [] : [relay.run(side.signal)]),
      ];
      const errors = await this.#consumeAll(topics, undefined);
      const end = await this.#drain();
      side.abort();
      // What is on its way to a broker that does not answer ends without the run.
      await this.#orUntil(this.#last(end), Promise.all(tasks));
      await this.#flush(end);
      if (errors.length > 0) throw errors[0];
    });
  }

  /** Consumes what is ready until nothing is left, fires due timers, then publishes the outbox. */
  async once(topics: readonly string[], idleMs: number, signal: AbortSignal | undefined): Promise<void> {
    const { timers } = this.#parts;
    await this.#withSignal(signal, async () => {
      let busy = true;
      while (busy && !this.#stop.signal.aborted) {
        this.#taken = 0;
        const errors = await this.#consumeAll(topics, idleMs);
        // With work at hand the prefetch may have hidden what else was ready; so the last look takes nothing.
        busy = this.#taken > 0;
        await this.#untilEmpty();
        if (errors.length > 0) {
          await this.#drain();
          throw errors[0];
        }
      }
      if (!this.#stop.signal.aborted) {
        await timers.fireDue().catch((error) => {
          this.#log.warn("timers could not be read; they fire later", {
            error: errorName(error),
          });
        });
        await this.#untilEmpty();
      }
      await this.#flush(await this.#drain());
    });
  }

  async #withSignal(signal: AbortSignal | undefined, work: () => Promise<void>): Promise<void> {
    const stop = () => this.#stop.abort();
    if (signal?.aborted) stop();
    signal?.addEventListener("abort", stop, { once: true });
    try {
      await work();
    } finally {
      signal?.removeEventListener("abort", stop);
    }
  }

  /** Consumes all topics until each has ended; a stream that fails for good stops the others. Answers what failed. */
  async #consumeAll(topics: readonly string[], idleMs: number | undefined): Promise<readonly unknown[]> {
    const { broker, budget, offer } = this.#parts;
    const errors: unknown[] = [];
    const take = (delivery: Delivery): void => {
      this.#taken++;
      offer(delivery);
    };
    const common = {
      broker,
      idleMs,
      signal: this.#stop.signal,
      clock: this.#clock,
      budget,
      log: this.#log,
      offer: take,
    };
    await Promise.all([...new Set(topics)].map((topic) =>
      consume({ ...common, topic }).catch((error) => {
        errors.push(error);
        this.#stop.abort();
      })
    ));
    return errors;
  }

  async #untilEmpty(): Promise<void> {
    const { lanes } = this.#parts;
    const stopped = new Promise<void>((resolve) => {
      if (this.#stop.signal.aborted) resolve();
      else this.#stop.signal.addEventListener("abort", () => resolve(), { once: true });
    });
    await Promise.race([lanes.empty(), stopped]);
  }

  /** Finishes what was taken, as far as it can be in time; gives back the rest. Answers when the time is over. */
  async #drain(): Promise<number> {
    const { lanes, engine, drainMs } = this.#parts;
    const end = this.#clock.monotonic() + drainMs;
    while (lanes.jobs > 0) {
      const left = end - this.#clock.monotonic();
      // What only waits for a moment beyond the end is given back now, so that others can have it.
      if (left <= 0 || lanes.nextIn() >= left) break;
      await this.#orUntil(end, lanes.quiet());
      // At least a moment: the timer of what is due by now may be late, and must get its turn.
      const rest = end - this.#clock.monotonic();
      if (lanes.jobs > 0 && rest > 0) await pause(this.#clock, Math.min(rest, Math.max(1, lanes.nextIn())));
    }
    for (const job of lanes.clear()) engine.drop(job, "released");
    await engine.settled();
    return end;
  }

  /** Publishes what the last units left in the outbox, in the time that is left. */
  async #flush(end: number): Promise<void> {
    const { relay } = this.#parts;
    if (relay === undefined) return;
    const over = new AbortController();
    const left = Math.max(1, end - this.#clock.monotonic());
    const timer = this.#clock.timer(left, () => over.abort());
    await this.#orUntil(this.#last(end), relay.flush(over.signal));
    timer.cancel();
  }

  /** Until when what has begun may still end by itself. */
  #last(end: number): number {
    return Math.max(end, this.#clock.monotonic() + LAST_MS);
  }

  /** Waits for `event`, at most until the moment `end`. */
  async #orUntil(end: number, event: Promise<unknown>): Promise<void> {
    const over = new AbortController();
    const left = Math.max(0, end - this.#clock.monotonic());
    await Promise.race([event, pause(this.#clock, left, over.signal)]);
    over.abort();
  }
}
