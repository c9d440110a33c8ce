import { isEdaError } from "../errors.ts";
import type { NativeOutcome } from "../transport.ts";
import { rangesOf } from "./messages.ts";
import type { Entry, PumpContext, PumpSide } from "./pump_context.ts";
import { release } from "./release.ts";

interface Batch {
  readonly kind: "ack" | "drop";
  readonly entries: readonly Entry[];
  readonly call: number | undefined;
}

/**
 * Brings settles to the broker, a batch at a time and several on their way. One that fails because the broker is away is
 * tried again while our hold lasts; then it is reported, and the message comes again.
 */
export class Settler {
  readonly #context: PumpContext;
  readonly #pump: PumpSide;
  #failed: Batch[] = [];
  readonly #sending = new Set<Batch>();
  #inFlight = 0;
  #unconfirmed = 0;
  #waiters: (() => void)[] = [];

  constructor(context: PumpContext, pump: PumpSide) {
    this.#context = context;
    this.#pump = pump;
  }

  /** Settles that failed and wait for another try; they still count against the window. */
  get unconfirmed(): number {
    return this.#unconfirmed;
  }

  /** All settles the broker has not confirmed. */
  get inFlight(): number {
    return this.#inFlight + this.#unconfirmed;
  }

  /** Sends those that are still ours, and gives the others back. */
  settleOurs(kind: "ack" | "drop", entries: readonly Entry[]): void {
    const late = entries.filter((entry) => this.#pump.expired(entry));
    const ours = entries.filter((entry) => !late.includes(entry));
    if (ours.length > 0) void this.settle(kind, ours);
    this.giveBack(late);
  }

  /** Sends one batch. */
  async settle(kind: "ack" | "drop", entries: readonly Entry[], call?: number): Promise<void> {
    const { connection, callTimeoutMs } = this.#context;
    const batch: Batch = { kind, entries, call };
    this.#inFlight += entries.length;
    this.#sending.add(batch);
    const waits = !connection.isOpen;
    try {
      const outcomes = await connection.call(
        kind,
        callTimeoutMs,
        () => waits ? this.#sendOurs(kind, entries) : this.#send(kind, entries),
      );
      this.#inFlight -= entries.length;
      this.#answer(batch, outcomes);
    } catch (error) {
      this.#inFlight -= entries.length;
      if (isEdaError(error) && !error.retriable) {
        this.#report(batch, `the broker refused it (${error.code})`);
      } else {
        this.#failed.push(batch);
        this.#unconfirmed += entries.length;
        this.#pump.later();
      }
    }
    this.#sending.delete(batch);
    if (this.#inFlight + this.#unconfirmed === 0) this.wake();
  }

  #send(kind: "ack" | "drop", entries: readonly Entry[]): Promise<readonly NativeOutcome[]> {
    const { topic, group } = this.#pump;
    return this.#context.transport[kind](topic, group, entries.map((entry) => entry.native));
  }

  /** Sends those that are still ours: connecting may have taken longer than our hold on some of them lasted. */
  async #sendOurs(kind: "ack" | "drop", entries: readonly Entry[]): Promise<readonly NativeOutcome[]> {
    const late = new Set(entries.filter((entry) => this.#pump.expired(entry)));
    if (late.size === 0) return await this.#send(kind, entries);
    const ours = entries.filter((entry) => !late.has(entry));
    const answers = ours.length === 0 ? [] : await this.#send(kind, ours);
    this.giveBack([...late]);
    let next = 0;
    return entries.map((entry) => late.has(entry) ? "stale" : answers[next++] ?? "stale");
  }

  #answer(batch: Batch, outcomes: readonly NativeOutcome[]): void {
    const stale = batch.entries.filter((_, at) => outcomes[at] === "stale");
    if (stale.length > 0) this.#report({ ...batch, entries: stale }, "it was no longer ours");
    else if (batch.call !== undefined) this.#context.post({ k: "answer", call: batch.call, value: "settled" });
  }

  #report(batch: Batch, why: string): void {
    this.failed(batch.entries.map((entry) => entry.id), why, batch.call);
  }

  /**
   * Our hold on these ran out by our own reckoning. Where the broker still takes their partition for ours, because an answer of
   * it is only about to be read, they would come to nobody: so they go back. One with a lease of its own comes again by
   * itself, and may be another's by now.
   */
  giveBack(entries: readonly Entry[]): void {
    const natives = entries.filter((entry) => entry.leaseMs === 0).map((entry) => entry.native);
    release(this.#context, this.#pump, natives);
  }

  /** Tells the host of settles that did not take effect. */
  failed(ids: readonly number[], why: string, call?: number): void {
    if (call !== undefined) this.#context.post({ k: "answer", call, value: "stale" });
    const ranges = rangesOf(ids.filter((id) => id >= 0));
    if (ranges.length > 0) this.#context.post({ k: "settle-failed", sub: this.#pump.sub, ids: ranges, why });
  }

  /** Tries the failed ones again, where our hold still stands. */
  retry(): void {
    const failed = this.#failed;
    this.#failed = [];
    const over: Entry[] = [];
    for (const batch of failed) {
      this.#unconfirmed -= batch.entries.length;
      const late = batch.entries.filter((entry) => this.#pump.expired(entry));
      if (late.length > 0) this.#report({ ...batch, entries: late }, "the lease ran out before the broker was back");
      over.push(...late);
      const good = batch.entries.filter((entry) => !late.includes(entry));
      if (good.length > 0) void this.settle(batch.kind, good, batch.call);
    }
    // Last: a transport may take the rest of the partition from us over it.
    this.giveBack(over);
    if (this.#inFlight + this.#unconfirmed === 0) this.wake();
  }

  /** Settles of a partition that was taken from us will not be tried again. */
  revoked(partition: number, why: string): void {
    // One that waits for the connection must not be sent once it stands.
    for (const { entries } of this.#sending) {
      for (const entry of entries) if (entry.partition === partition) entry.leaseUntil = -Infinity;
    }
    const failed = this.#failed;
    this.#failed = [];
    for (const batch of failed) {
      const gone = batch.entries.filter((entry) => entry.partition === partition);
      const rest = batch.entries.filter((entry) => entry.partition !== partition);
      this.#unconfirmed -= gone.length;
      if (gone.length > 0) this.#report({ ...batch, entries: gone }, why);
      if (rest.length > 0) this.#failed.push({ ...batch, entries: rest });
    }
  }

  /** Resolves when nothing is on its way and `also` holds, or after `ms`. */
  async flushed(ms: number, also: () => boolean): Promise<void> {
    const { clock } = this.#context;
    const until = clock.monotonic() + ms;
    while (clock.monotonic() < until && (this.inFlight > 0 || !also())) {
      if (this.#failed.length > 0) this.retry();
      await new Promise<void>((resolve) => {
        const timer = clock.timer(Math.min(20, Math.max(1, until - clock.monotonic())), resolve);
        this.#waiters.push(() => {
          timer.cancel();
          resolve();
        });
      });
    }
  }

  /** Something changed that a flush may wait for. */
  wake(): void {
    for (const wake of this.#waiters.splice(0)) wake();
  }
}
