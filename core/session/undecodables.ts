import { Backoff, type Timer } from "../clock.ts";
import { sha256Hex } from "../digest.ts";
import type { EdaError } from "../errors.ts";
import type { Entry, PumpContext, PumpIds, PumpSide } from "./pump_context.ts";

interface Waiting {
  readonly entry: Entry;
  readonly body: Uint8Array;
  readonly sha256: string;
  readonly error: EdaError;
  readonly backoff: Backoff;
  timer: Timer | undefined;
}

/**
 * Messages that are no envelope: offered to the host for the record, dropped once it is written, and held with backoff while
 * it cannot be. They count against the window, so a broken record store stops the topic instead of losing its messages.
 */
export class Undecodables {
  readonly #context: PumpContext;
  readonly #pump: PumpSide;
  readonly #waiting = new Map<number, Waiting>();
  readonly #ids: PumpIds;

  constructor(context: PumpContext, pump: PumpSide, ids: PumpIds) {
    this.#ids = ids;
    this.#context = context;
    this.#pump = pump;
  }

  /** How many wait for their record. */
  get size(): number {
    return this.#waiting.size;
  }

  /** Takes one. */
  add(entry: Entry, raw: Uint8Array | string, error: EdaError): void {
    // A copy: bytes may be a view of a much larger buffer of the client's, which this would hold on to.
    const body = typeof raw === "string" ? new TextEncoder().encode(raw) : new Uint8Array(raw);
    const backoff = new Backoff(this.#context.clock, 100, 30_000);
    const id = this.#ids.undecodable++;
    this.#waiting.set(id, { entry, body, sha256: sha256Hex(body), error, backoff, timer: undefined });
    this.#offer(id);
  }

  #offer(id: number): void {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    this.#context.post({
      k: "undecodable",
      sub: this.#pump.sub,
      id,
      bytes: waiting.body.byteLength,
      sha256: waiting.sha256,
      error: waiting.error,
      attempt: waiting.entry.deliveries,
      ...(this.#context.keepCorruptBodies ? { body: waiting.body.slice() } : {}),
    });
  }

  /** The host's answer; yields the entry to drop when it was recorded. */
  recorded(id: number, ok: boolean): Entry | undefined {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return undefined;
    if (ok) {
      this.#waiting.delete(id);
      return waiting.entry;
    }
    waiting.timer = this.#context.clock.timer(waiting.backoff.next(), () => this.#offer(id));
    return undefined;
  }

  /** What waits. */
  *entries(): Iterable<Entry> {
    for (const { entry } of this.#waiting.values()) yield entry;
  }

  /** Whether it waits. */
  has(entry: Entry): boolean {
    for (const waiting of this.#waiting.values()) if (waiting.entry === entry) return true;
    return false;
  }

  /** Forgets those that `gone` says. */
  forget(gone: (entry: Entry) => boolean): void {
    for (const [id, waiting] of this.#waiting) {
      if (!gone(waiting.entry)) continue;
      waiting.timer?.cancel();
      this.#waiting.delete(id);
    }
  }

  /** Ends the timers. */
  stop(): void {
    for (const waiting of this.#waiting.values()) waiting.timer?.cancel();
  }
}
