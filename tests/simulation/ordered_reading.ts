/**
 * Reading with one owner a partition, over the library's own {@link Ownership}.
 *
 * @module
 */
import { BrokerUnavailableError } from "../../core/errors.ts";
import type { MemberStore, OwnerStore } from "../../core/ownership/contract.ts";
import { Ownership } from "../../core/ownership/ownership.ts";
import type { FetchRequest, NativeOutcome, Raw } from "../../core/transport.ts";
import type { Entry, Given } from "./server.ts";
import { Bell, type Reach, type Reading, type SimNative, toRaw } from "./reach.ts";

/** What it tells its transport. */
export interface OrderedEvents {
  owned(partition: number, epoch: number, leaseUntil: number): void;
  revoked(partition: number, epoch: number, why: string): void;
  state(state: "active" | "standby"): void;
}

/** One partition while it is ours. */
interface Part {
  readonly partition: number;
  epoch: number | undefined;
  /** Given to us in this epoch and not settled, as far as we know. */
  readonly held: Set<Entry>;
  /** A reply was lost: what the server gave us and we do not hold is read again first. */
  lost: boolean;
  /** There may be something to read. */
  hot: boolean;
  /** The server took us for somebody else: no more reads until it says that the partition is ours. */
  refused: boolean;
  reading: number;
}

/** One topic and group with one owner a partition. */
export class OrderedReading implements Reading {
  readonly #reach: Reach;
  readonly #ownership: Ownership;
  readonly #parts: readonly Part[];
  readonly #bell = new Bell();
  readonly #unwatch: () => void;
  #tail: Promise<unknown> = Promise.resolve();
  #broken: unknown;
  #started = false;
  #stopped = false;

  constructor(reach: Reach, events: OrderedEvents) {
    this.#reach = reach;
    const { name, server, leaseMs, partitions } = reach;
    this.#parts = Array.from({ length: partitions }, (_, partition): Part => ({
      partition,
      epoch: undefined,
      held: new Set(),
      lost: false,
      hot: false,
      refused: false,
      reading: 0,
    }));
    const owners: OwnerStore = {
      acquire: (partition, ms) => this.#ask(() => server.acquire(name, partition, ms)),
      renew: (partition, epoch, ms) => this.#ask(() => server.renew(name, partition, epoch, ms)),
      surrender: (partition, epoch) => this.#ask(() => server.surrender(name, partition, epoch)),
    };
    const members: MemberStore = {
      self: name,
      beat: (ms) => this.#ask(() => server.beat(name, ms)),
      leave: () => this.#ask(() => server.leave(name)),
    };
    this.#ownership = new Ownership(reach.clock, owners, members, partitions, { leaseMs, pollMs: leaseMs / 4 }, {
      owned: (partition, epoch, until) => {
        Object.assign(this.#parts[partition]!, { epoch, lost: false, hot: true, refused: false });
        this.#parts[partition]!.held.clear();
        events.owned(partition, epoch, until);
        this.#bell.ring();
      },
      renewed: (partition, epoch, until) => {
        this.#parts[partition]!.refused = false;
        events.owned(partition, epoch, until);
        this.#bell.ring();
      },
      lost: (partition, epoch, why) => {
        this.#parts[partition]!.epoch = undefined;
        this.#parts[partition]!.held.clear();
        events.revoked(partition, epoch, why);
        this.#bell.ring();
      },
      surplus: (partition) => this.#mayRelease(partition),
      failed: (_, error) => this.#fail(error),
      state: (state) => events.state(state),
    });
    this.#unwatch = reach.line.listen(server, () => this.#news());
  }

  async #ask<T>(op: () => T): Promise<T> {
    if (!this.#reach.line.connected) await this.#reach.line.ready();
    return await this.#reach.ask(op);
  }

  #fail(error: unknown): void {
    this.#broken = error;
    this.#bell.ring();
  }

  #news(): void {
    for (const part of this.#parts) part.hot = true;
    this.#bell.ring();
  }

  async fetch(request: FetchRequest): Promise<readonly Raw[]> {
    const { clock, line } = this.#reach;
    const until = clock.monotonic() + request.waitMs;
    if (!line.connected) await line.ready();
    if (!this.#started) {
      this.#started = true;
      this.#ownership.start();
    }
    await this.#ownership.decided();
    for (let look = request.waitMs === 0;; look = false) {
      if (this.#stopped || request.signal.aborted) return [];
      if (this.#broken !== undefined) {
        const error = this.#broken;
        this.#broken = undefined;
        throw error;
      }
      const raws = await this.#read(request.max, look);
      if (raws.length > 0) return raws;
      if (this.#readable().length > 0) continue;
      const left = until - clock.monotonic();
      if (left <= 0) return [];
      await this.#bell.wait(clock, left, request.signal);
    }
  }

  #readable(all = false): Part[] {
    return this.#parts.filter((part) =>
      !part.refused && (part.lost ? part.reading === 0 : all || part.hot) &&
      this.#ownership.epochOf(part.partition) !== undefined &&
      // Nothing new of one on its way out, but what the server counts as given.
      (part.lost || !this.#ownership.isSurplus(part.partition))
    );
  }

  /** One read of every partition that may have something; handed back in the order in which the reads were sent. */
  async #read(max: number, look: boolean): Promise<Raw[]> {
    const readable = this.#readable(look);
    // What is lost counts at the server, so it comes before anything new.
    const lost = readable.filter((part) => part.lost);
    const parts = (lost.length > 0 ? lost : readable).slice(0, max);
    if (parts.length === 0) return [];
    const each = Math.floor(max / parts.length);
    const reads = Promise.allSettled(parts.map((part) => this.#readPart(part, each)));
    const before = this.#tail;
    const results = (async () => {
      const settled = await reads;
      await before;
      return settled;
    })();
    this.#tail = results;
    const raws: Raw[] = [];
    let failure: PromiseRejectedResult | undefined;
    for (const result of await results) {
      if (result.status === "fulfilled") raws.push(...result.value());
      else failure ??= result;
    }
    if (failure !== undefined && raws.length === 0) throw failure.reason;
    return raws;
  }

  async #readPart(part: Part, max: number): Promise<() => Raw[]> {
    const { server, name } = this.#reach;
    const { partition, epoch, lost } = part;
    part.reading++;
    part.hot = false;
    const held = lost ? new Set(part.held) : undefined;
    let given: Given[] | undefined;
    try {
      given = await this.#reach.ask(() => server.read(name, partition, epoch!, max, held));
    } catch (error) {
      if (part.epoch === epoch) part.lost = true;
      throw error;
    } finally {
      part.reading--;
      this.#mayRelease(partition);
    }
    if (part.epoch !== epoch) return () => [];
    if (given === undefined) {
      part.refused = part.hot = true;
      this.#ownership.check(partition);
      return () => [];
    }
    if (lost && given.length < max) part.lost = false;
    if (lost || given.length >= max) part.hot = true;
    for (const { entry } of given) part.held.add(entry);
    // What another read waited for in front of this one may have taken long enough to lose the partition.
    return () => part.epoch === epoch ? given.map((one) => toRaw(one, epoch!)) : [];
  }

  #mayRelease(partition: number): void {
    const part = this.#parts[partition]!;
    if (this.#ownership.isSurplus(partition) && part.held.size === 0 && part.reading === 0) {
      this.#ownership.release(partition);
    }
  }

  async settle(kind: "ack" | "drop", natives: readonly SimNative[]): Promise<readonly NativeOutcome[]> {
    const { server, name } = this.#reach;
    const ours = natives.map(({ entry, epoch }) => this.#ownership.epochOf(entry.partition) === epoch);
    const outcomes = new Array<NativeOutcome>(natives.length).fill("stale");
    await Promise.all(this.#parts.map(async (part) => {
      const at = natives.flatMap(({ entry }, n) => ours[n] && entry.partition === part.partition ? [n] : []);
      if (at.length === 0) return;
      const { epoch } = natives[at[0]!]!;
      const entries = at.map((n) => natives[n]!.entry);
      const send = (): Promise<NativeOutcome[] | undefined> =>
        this.#reach.ask(() => server.settle(name, kind, entries, epoch));
      let answers = await send();
      if (answers === undefined) {
        // A lease that ran out unnoticed is given back to us where nobody else had it since.
        const ours = await this.#ownership.check(part.partition);
        if (ours === undefined) throw new BrokerUnavailableError("whether the partition is ours could not be asked");
        if (ours) answers = await send();
      }
      answers?.forEach((answer, n) => outcomes[at[n]!] = answer);
      if (part.epoch === epoch) { for (const entry of entries) part.held.delete(entry); }
      this.#mayRelease(part.partition);
    }));
    return outcomes;
  }

  /** A partition is given up as a whole. */
  release(natives: readonly SimNative[]): Promise<readonly NativeOutcome[]> {
    const outcomes = natives.map(({ entry, epoch }): NativeOutcome =>
      this.#ownership.epochOf(entry.partition) === epoch ? "settled" : "stale"
    );
    const partitions = new Set(
      natives.filter((_, at) => outcomes[at] === "settled").map(({ entry }) => entry.partition),
    );
    for (const partition of partitions) {
      this.#ownership.renounce(partition, "it was given back", this.#reach.leaseMs / 2);
    }
    return Promise.resolve(outcomes);
  }

  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#unwatch();
    this.#bell.ring();
    await this.#ownership.stop("the subscription ended");
  }
}
