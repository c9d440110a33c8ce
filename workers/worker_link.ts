import { Backoff, type Clock, type Timer } from "../core/clock.ts";
import { WorkerCrashedError } from "../core/errors.ts";
import type { Link, LinkSink } from "../core/link.ts";
import type { ToSession } from "../core/session/messages.ts";
import { WorkerLife, type WorkerLifeOptions } from "./worker_life.ts";

/** A worker that lived this long did not die of how it starts: its replacement comes at once again. */
const SOUND_MS = 10_000;

/**
 * A link over a worker, and over its successors.
 *
 * The first start may fail, and then says so. A worker that dies later is replaced, with backoff, for as long as the broker
 * is open; a replacement that cannot be started is tried again.
 */
export class WorkerLink implements Link {
  readonly #options: WorkerLifeOptions;
  readonly #clock: Clock;
  readonly #backoff: Backoff;
  #sink: LinkSink | undefined;
  #life: WorkerLife | undefined;
  #restart: Timer | undefined;
  #startedAt = 0;
  #ended = false;

  constructor(options: WorkerLifeOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
    this.#backoff = new Backoff(clock, 200, 10_000);
  }

  start(sink: LinkSink): Promise<void> {
    this.#sink = sink;
    return this.#spawn();
  }

  async #spawn(): Promise<void> {
    const life = this.#life = new WorkerLife(this.#options, this.#clock, {
      receive: (message) => this.#sink?.receive(message),
      died: (cause) => this.#died(cause),
    });
    await life.start();
    this.#startedAt = this.#clock.monotonic();
  }

  #died(cause: Error): void {
    if (this.#ended) return;
    if (this.#clock.monotonic() - this.#startedAt >= SOUND_MS) this.#backoff.reset();
    this.#sink?.down(new WorkerCrashedError("the worker died; a new one is being started", { cause }));
    this.#again();
  }

  #again(): void {
    if (this.#ended) return;
    this.#restart = this.#clock.timer(this.#backoff.next(), () => {
      this.#spawn().then(() => {
        if (!this.#ended) this.#sink?.up();
      }, () => this.#again());
    });
  }

  post(message: ToSession): void {
    this.#life?.post(message);
  }

  async end(deadlineMs: number): Promise<{ readonly terminated: boolean }> {
    this.#ended = true;
    this.#restart?.cancel();
    return await this.#life?.end(deadlineMs) ?? { terminated: false };
  }
}
