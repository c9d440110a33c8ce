/**
 * Reading in competition, with a lease a message.
 *
 * @module
 */
import type { FetchRequest, NativeOutcome, Raw } from "../../core/transport.ts";
import type { Entry, Server } from "./server.ts";
import { Bell, type Reach, type Reading, type SimNative, toRaw } from "./reach.ts";

/** One topic and group that anybody may read. */
export class UnorderedReading implements Reading {
  readonly #reach: Reach;
  /** What we were given and have not settled, by which handle, and since when. */
  readonly #held = new Map<Entry, { readonly native: SimNative; readonly since: number }>();
  readonly #bell = new Bell();
  readonly #unwatch: () => void;
  /** Replies were lost: what the server gave us and we do not hold is taken back first. */
  #lost = false;
  #reading = 0;
  #turn = 0;
  #stopped = false;
  /** A read that takes back what replies lost. */
  #taking: Promise<unknown> | undefined;

  constructor(reach: Reach) {
    this.#reach = reach;
    this.#unwatch = reach.line.listen(reach.server, () => this.#bell.ring());
  }

  async fetch(request: FetchRequest): Promise<readonly Raw[]> {
    const { clock, line, leaseMs, server } = this.#reach;
    const askedAt = server.now;
    // A lease counts from when the fetch was sent, so the wait must be short against it.
    const until = clock.monotonic() + Math.min(request.waitMs, leaseMs / 4);
    if (!line.connected) await line.ready();
    for (;;) {
      if (this.#stopped || request.signal.aborted) return [];
      const raws = await this.#read(request.max, askedAt);
      if (raws.length > 0) return raws;
      const left = until - clock.monotonic();
      if (left <= 0) return [];
      await this.#bell.wait(clock, left, request.signal);
    }
  }

  async #read(max: number, askedAt: number): Promise<Raw[]> {
    const { server, name, leaseMs, partitions } = this.#reach;
    // Its own reads in flight look like lost ones: a look at them must be alone, and nothing new is taken before it.
    const lost = this.#lost;
    if (lost && this.#reading > 0) return [];
    this.#reading++;
    // What ran out by our own clock is nobody's, and may come again.
    const now = this.#reach.clock.monotonic();
    for (const [entry, { since }] of this.#held) if (now > since + leaseMs) this.#held.delete(entry);
    const held = new Set(this.#held.keys());
    const first = this.#turn++;
    const given: ReturnType<Server["take"]> = [];
    try {
      const asked = this.#reach.ask(() => {
        for (let n = 0; n < partitions; n++) {
          given.push(...server.take(name, (first + n) % partitions, leaseMs, max - given.length, held, lost));
        }
      });
      if (lost) this.#taking = asked.catch(() => {});
      await asked;
      if (this.#stopped) return [];
      if (lost && given.length < max) this.#lost = false;
      return given.map((one) => {
        const raw = toRaw(one, 0, leaseMs);
        this.#held.set(one.entry, { native: raw.native as SimNative, since: now });
        one.entry.believed = askedAt + leaseMs;
        return raw;
      });
    } catch (error) {
      this.#lost = true;
      // What was given in an answer that was lost is in nobody's hands until it is given again.
      for (const { entry } of given) entry.believed = 0;
      throw error;
    } finally {
      this.#reading--;
    }
  }

  async settle(kind: "ack" | "drop", natives: readonly SimNative[]): Promise<readonly NativeOutcome[]> {
    const { server, name } = this.#reach;
    const entries = natives.map(({ entry }) => entry);
    const outcomes = await this.#reach.ask(() => server.settle(name, kind, entries, 0)!);
    for (const entry of entries) this.#held.delete(entry);
    return outcomes;
  }

  async extend(natives: readonly SimNative[]): Promise<readonly NativeOutcome[]> {
    const { server, name, leaseMs, clock } = this.#reach;
    const entries = natives.map(({ entry }) => entry);
    const now = clock.monotonic();
    const sentAt = server.now;
    const outcomes = await this.#reach.ask(() => server.extend(name, entries, leaseMs));
    outcomes.forEach((outcome, at) => {
      const native = natives[at]!;
      const { entry } = native;
      if (this.#held.get(entry)?.native !== native) return;
      if (outcome === "stale") return void this.#held.delete(entry);
      this.#held.set(entry, { native, since: now });
      entry.believed = sentAt + leaseMs;
    });
    return outcomes;
  }

  async release(natives: readonly SimNative[]): Promise<readonly NativeOutcome[]> {
    const { server, name } = this.#reach;
    // What was given to us a second time since, or is this moment, is not this handle's to give back.
    await this.#taking;
    const ours = natives.filter((native) => (this.#held.get(native.entry)?.native ?? native) === native);
    const entries = ours.map(({ entry }) => entry);
    for (const entry of entries) entry.believed = 0;
    const outcomes = await this.#reach.ask(() => server.release(name, entries));
    for (const entry of entries) this.#held.delete(entry);
    return natives.map((native) => outcomes[ours.indexOf(native)] ?? "stale");
  }

  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#unwatch();
    this.#bell.ring();
    const { server, name, line } = this.#reach;
    await line.ready().then(() => this.#reach.ask(() => server.releaseAll(name))).catch(() => {});
  }
}
