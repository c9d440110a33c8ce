/**
 * Fires durable timers: scheduled events go to the outbox, delays of machines back to their route.
 *
 * @module
 */
import { decodeEnvelope } from "../codec.ts";
import { Backoff, pause } from "../clock.ts";
import { isEdaError } from "../errors.ts";
import { errorName } from "../guard.ts";
import type { TimerRow } from "../store/contract.ts";
import type { Services } from "./services.ts";

/** Timers set by other processes are noticed this often. */
const POLL_MS = 1_000;
/** How often a timer whose job runs is looked for. */
const RUNNING_MS = 50;
const BATCH = 100;

/** What the service needs of the dispatcher. */
export interface TimerHost {
  readonly services: Services;
  /** Whether a route of this dispatcher set it. */
  owns(owner: string): boolean;
  /** Runs the timer of a machine; `ended` is called when its job ended. */
  offer(row: TimerRow, ended: () => void): void;
  /** A scheduled event went to the outbox. */
  fired(): void;
}

/** Looks for due timers, and sleeps until the next one. */
export class TimerService {
  readonly #host: TimerHost;
  /** Timers whose job runs here. */
  readonly #busy = new Set<string>();
  /** Timers that cannot fire. */
  readonly #broken = new Set<string>();
  /** Due rows that the last look left where they are: running, broken, or another dispatcher's. */
  #passed = 0;
  /** When the next one known here is due, wall clock ms. */
  #soonest = Infinity;
  #wake: (() => void) | undefined;

  constructor(host: TimerHost) {
    this.#host = host;
  }

  /** A unit set a timer for this moment. */
  hint(dueAt: number): void {
    if (dueAt >= this.#soonest) return;
    this.#soonest = dueAt;
    this.#wake?.();
  }

  /** Fires timers until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { services } = this.#host;
    const backoff = new Backoff(services.clock, 200, 30_000);
    while (!signal.aborted) {
      try {
        const fired = await this.fireDue();
        const next = await services.store.timers.next();
        backoff.reset();
        await this.#sleep(fired, next, signal);
      } catch (error) {
        if (signal.aborted) return;
        services.log.warn("timers could not be read; they fire later", {
          error: errorName(error),
        });
        await pause(services.clock, backoff.next(), signal);
      }
    }
  }

  /** Fires what is due; answers how many. Those of machines have only been offered then. */
  async fireDue(): Promise<number> {
    const { services } = this.#host;
    const now = services.clock.now();
    if (this.#soonest <= now) this.#soonest = Infinity;
    for (;;) {
      // What stays where it is must not hide what is behind it.
      const limit = BATCH + this.#passed;
      const rows = await services.store.timers.due(now, limit);
      let count = 0;
      for (const row of rows) count += await this.#tryFire(row);
      this.#passed = rows.length - count;
      if (count > 0 || rows.length < limit) return count;
    }
  }

  async #tryFire(row: TimerRow): Promise<number> {
    try {
      return await this.#fire(row);
    } catch (error) {
      if (!isEdaError(error) || error.retriable) throw error;
      // Nothing that waiting can help: it must not hold up those behind it.
      this.#broken.add(keyOf(row));
      const { log } = this.#host.services;
      log.error("a timer cannot fire and is left where it is", { topic: row.topic, code: error.code });
      return 0;
    }
  }

  async #fire(row: TimerRow): Promise<number> {
    if (this.#busy.has(keyOf(row)) || this.#broken.has(keyOf(row))) return 0;
    if (row.topic !== undefined) return await this.#publish(row, row.topic);
    return this.#host.owns(row.owner) ? this.#offer(row) : 0;
  }

  #offer(row: TimerRow): number {
    const key = keyOf(row);
    this.#busy.add(key);
    this.#host.offer(row, () => void this.#busy.delete(key));
    return 1;
  }

  async #publish(row: TimerRow, topic: string): Promise<number> {
    const { subject } = decodeEnvelope(row.envelope, { maxBytes: Number.MAX_SAFE_INTEGER });
    const fired = await this.#host.services.store.transact({ timer: { owner: row.owner, id: row.id } }, (unit) => {
      if (unit.timer === undefined) return false;
      unit.deleteTimer(row.owner, row.id);
      unit.addOutbox(topic, row.envelope, subject);
      return true;
    });
    if (fired) this.#host.fired();
    return fired ? 1 : 0;
  }

  async #sleep(fired: number, next: number | undefined, signal: AbortSignal): Promise<void> {
    const { clock } = this.#host.services;
    const now = clock.now();
    const running = this.#busy.size > 0;
    let ms = Math.min(next !== undefined && next > now ? next : Infinity, this.#soonest) - now;
    if (next !== undefined && next <= now) {
      // Due and still there: behind those that fired, or its job runs and its end is not announced, or it is not ours.
      ms = Math.min(ms, fired > 0 ? 0 : running ? RUNNING_MS : POLL_MS);
    }
    if (running) ms = Math.max(ms, RUNNING_MS);
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    const stop = () => woken.abort();
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) woken.abort();
    await pause(clock, Math.min(POLL_MS, Math.max(0, ms)), woken.signal);
    signal.removeEventListener("abort", stop);
    this.#wake = undefined;
  }
}

function keyOf(row: TimerRow): string {
  return `${row.owner.length}:${row.owner}${row.id}:${row.dueAt}`;
}
