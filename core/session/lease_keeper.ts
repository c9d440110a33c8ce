import type { Timer } from "../clock.ts";
import type { Native } from "../transport.ts";
import type { Entry, PumpContext, PumpSide } from "./pump_context.ts";
import { release } from "./release.ts";

/**
 * Keeps the leases of messages that have one of their own: every third of the window, those past a third of it are extended.
 * What the broker says is no longer ours, or could not be extended in time, is lost. Partition leases are the transport's.
 */
export class LeaseKeeper {
  readonly #context: PumpContext;
  readonly #pump: PumpSide;
  #timer: Timer | undefined;
  #extending = false;
  /** What was lost while it was being extended. */
  readonly #ranOut = new Set<Entry>();
  #stopped = false;

  constructor(context: PumpContext, pump: PumpSide) {
    this.#context = context;
    this.#pump = pump;
  }

  /** Looks after what is held from now on, if any of it has a lease of its own. */
  watch(): void {
    if (this.#timer !== undefined || this.#stopped) return;
    const now = this.#context.clock.monotonic();
    let next = Infinity;
    for (const { leaseMs, leaseUntil } of this.#pump.held()) {
      if (leaseMs > 0) next = Math.min(next, leaseMs / 6, leaseUntil - now);
    }
    if (next === Infinity) return;
    this.#timer = this.#context.clock.timer(Math.max(5, next), () => {
      this.#timer = undefined;
      this.#round();
    });
  }

  #round(): void {
    const { clock, transport } = this.#context;
    const now = clock.monotonic();
    const held = [...this.#pump.held()].filter((entry) => entry.leaseMs > 0);
    const late = held.filter((entry) => now > entry.leaseUntil);
    if (this.#extending) { for (const entry of late) this.#ranOut.add(entry); }
    this.#pump.lose(late, "the lease ran out");
    const due = held.filter((entry) => now <= entry.leaseUntil && entry.leaseUntil - now < entry.leaseMs * 2 / 3);
    // What runs out while the broker does not answer is lost in time all the same.
    if (due.length > 0 && transport.extend !== undefined && !this.#extending) void this.#extend(due);
    this.watch();
  }

  async #extend(due: readonly Entry[]): Promise<void> {
    const { clock, transport, connection, callTimeoutMs } = this.#context;
    this.#extending = true;
    try {
      const shortest = due.reduce((least, entry) => Math.min(least, entry.leaseMs), Infinity);
      let sentAt = 0;
      let sent: readonly Entry[] = [];
      const outcomes = await connection.call("extend", Math.min(callTimeoutMs, shortest / 2), () => {
        sentAt = clock.monotonic();
        // Connecting may have taken longer than a lease lasted.
        sent = due.filter((entry) => sentAt <= entry.leaseUntil && this.#pump.holds(entry));
        if (sent.length === 0) return Promise.resolve([]);
        return transport.extend!(this.#pump.topic, this.#pump.group, sent.map((entry) => entry.native));
      });
      const lost: Entry[] = [];
      const unwanted: Native[] = [];
      sent.forEach((entry, at) => {
        if (outcomes[at] === "stale") lost.push(entry);
        else if (this.#ranOut.has(entry)) unwanted.push(entry.native);
        else entry.leaseUntil = sentAt + entry.leaseMs;
      });
      // The broker keeps these for us, but its answer came after we had lost them: nobody else would get them for a window.
      release(this.#context, this.#pump, unwanted);
      this.#pump.lose(lost.filter((entry) => this.#pump.holds(entry)), "the broker gave it to another consumer");
    } catch {
      // The connection knows; what is not extended in time is lost in a later round.
    } finally {
      this.#extending = false;
      this.#ranOut.clear();
    }
  }

  /** Ends the timer. */
  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
