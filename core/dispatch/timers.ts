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
        await this.fireDue();
        const next = await services.store.timers.next();
        backoff.reset();
        await this.#sleep(next, signal);
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
    let count = 0;
    // Rows whose job still runs come again, and must not hide those behind them.
    for (const row of await services.store.timers.due(now, BATCH + this.#busy.size)) {
      try {
        count += await this.#fire(row);
      } catch (error) {
        if (!isEdaError(error) || error.retriable) throw error;
        // Nothing that waiting can help: it must not hold up those behind it.
        this.#busy.add(keyOf(row));
        services.log.error("a timer cannot fire and is left where it is", { topic: row.topic, code: error.code });
      }
    }
    return count;
  }

  async #fire(row: TimerRow): Promise<number> {
    if (this.#busy.has(keyOf(row))) return 0;
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

  async #sleep(next: number | undefined, signal: AbortSignal): Promise<void> {
    const { clock } = this.#host.services;
    // A row that is due and still there has its job running; its end is not announced, so it is looked for.
    const due = Math.max(this.#busy.size > 0 ? clock.now() + 50 : 0, Math.min(next ?? Infinity, this.#soonest));
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    const stop = () => woken.abort();
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) woken.abort();
    await pause(clock, Math.min(POLL_MS, Math.max(0, due - clock.now())), woken.signal);
    signal.removeEventListener("abort", stop);
    this.#wake = undefined;
  }
}

function keyOf(row: TimerRow): string {
  return `${row.owner.length}:${row.owner}${row.id}:${row.dueAt}`;
}
