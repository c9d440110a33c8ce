import { Alarm } from "../clock.ts";
import { isEdaError } from "../errors.ts";
import type { Native, Raw } from "../transport.ts";
import type { Entry, PumpContext, PumpIds, PumpSide } from "./pump_context.ts";
import { mayPass } from "./connection.ts";
import { nextRead } from "./credit.ts";
import { takeIn, toDeliver, unexpired } from "./intake.ts";
import { LeaseKeeper } from "./lease_keeper.ts";
import { PartitionLeases } from "./partition_leases.ts";
import { forEachId, type Ranges, rangesOf } from "./messages.ts";
import { Settler } from "./settler.ts";
import { Undecodables } from "./undecodables.ts";

/**
 * Keeps one subscription (topic + group) supplied: fetches while there is credit, reads the envelopes, holds the natives,
 * and passes settles on. Credit is in `credit.ts`; the transport divides it among the partitions it owns.
 */
export class Pump implements PumpSide {
  readonly sub: number;
  readonly topic: string;
  readonly group: string;
  readonly #context: PumpContext;
  readonly #prefetch: number;
  readonly #entries = new Map<number, Entry>();
  readonly #partitions: PartitionLeases;
  readonly #leases: LeaseKeeper;
  readonly #settler: Settler;
  readonly #undecodables: Undecodables;
  readonly #probes: number[] = [];
  readonly #ids: PumpIds;
  #reserved = 0;
  #reads = 0;
  #backlog = false;
  #stopped = false;
  #surrendered = false;
  /** What came after we had stopped: given back unseen. */
  readonly #late: Native[] = [];
  #waiting: AbortController | undefined;
  readonly #retry: Alarm;
  readonly #small: Alarm;
  #failing = false;
  #state: "active" | "standby" = "active";

  constructor(context: PumpContext, sub: number, topic: string, group: string, prefetch: number, ids: PumpIds) {
    this.#ids = ids;
    this.sub = sub;
    this.topic = topic;
    this.group = group;
    this.#context = context;
    this.#prefetch = prefetch;
    this.#retry = new Alarm(context.clock);
    this.#small = new Alarm(context.clock);
    this.#partitions = new PartitionLeases(context, sub);
    this.#leases = new LeaseKeeper(context, this);
    this.#settler = new Settler(context, this);
    this.#undecodables = new Undecodables(context, this, ids);
  }

  /** Unsettled messages, settles on their way back included where the broker may still count them. */
  get unsettled(): number {
    return this.#entries.size + this.#settler.unconfirmed + this.#undecodables.size;
  }

  /** Settles that the broker has not confirmed yet. */
  get unconfirmed(): number {
    return this.#settler.inFlight;
  }

  /** The transport says whether we consume or stand by; while reads fail, that is what the host hears instead. */
  told(state: "active" | "standby"): void {
    this.#state = state;
    if (!this.#failing) this.#tell(state);
  }

  #tell(state: "active" | "standby" | "failing"): void {
    this.#context.post({ k: "topic", sub: this.sub, state });
  }

  /** Answers `call` once a read that starts now is back: "more" if it brought something, else "empty"; or it failed. */
  probe(call: number): void {
    this.#probes.push(call);
    this.#waiting?.abort();
    this.pull();
  }

  /** Reads what there is room for, `small` = however little; the first call starts it. */
  pull(small = false): void {
    if (this.#stopped || this.#retry.isSet) return;
    for (;;) {
      const probing = this.#probes.length > 0;
      const free = this.#prefetch - this.unsettled - this.#reserved;
      if (this.#reads === 0 && free < 1 && probing) return this.#answerProbes({ value: "empty" });
      const held = { prefetch: this.#prefetch, partitions: this.#partitions.count, free };
      const { max, laterMs } = nextRead({ ...held, reads: this.#reads, backlog: this.#backlog, probing, small });
      if (laterMs !== undefined) this.#small.set(laterMs, () => this.pull(true));
      if (max === 0) return;
      void this.#read(max, this.#reads === 0 && !probing ? this.#context.waitMs : 0);
    }
  }

  async #read(max: number, waitMs: number): Promise<void> {
    this.#small.cancel();
    const { transport, connection, callTimeoutMs } = this.#context;
    const abort = new AbortController();
    const request = { group: this.group, max, window: this.#prefetch, waitMs, signal: abort.signal };
    const probes = this.#probes.length;
    this.#reads++;
    this.#reserved += max;
    if (waitMs > 0) this.#waiting = abort;
    let raws: readonly Raw[] = [];
    let sentAt = 0;
    let fetching: Promise<readonly Raw[]> | undefined;
    let failure: unknown;
    try {
      raws = await connection.call("fetch", waitMs + callTimeoutMs, () => {
        // While it waited for the connection, the topic was left: a read now would begin it anew.
        if (this.#stopped) return Promise.resolve([]);
        sentAt = this.#context.clock.monotonic();
        return fetching = transport.fetch(this.topic, request);
      });
    } catch (error) {
      failure = error;
      fetching?.then((raws) => this.#acceptLate(raws, sentAt), () => {});
    }
    this.#reads--;
    this.#reserved -= max;
    if (this.#stopped) this.#settler.wake();
    if (this.#waiting === abort) this.#waiting = undefined;
    // What a read brings after everything was given back is not ours to hand out.
    if (this.#surrendered) return;
    if (failure !== undefined) return this.#failed(failure);
    const first = !this.#ids.read;
    this.#ids.read = true;
    if (this.#failing || first) {
      this.#failing = false;
      this.#tell(this.#state);
    }
    this.#backlog = raws.length >= max;
    if (raws.length > 0) this.#accept(raws, sentAt);
    if (probes > 0) this.#answerProbes({ value: raws.length > 0 ? "more" : "empty" }, probes);
    this.pull();
  }

  /** What a read brings after its deadline: nobody else gets it, unless it has a lease that is over. */
  #acceptLate(raws: readonly Raw[], sentAt: number): void {
    if (!this.#surrendered) this.#accept(unexpired(raws, this.#context.clock.monotonic() - sentAt), sentAt);
  }

  #failed(error: unknown): void {
    this.#backlog = false;
    this.#answerProbes({ error });
    if (this.#stopped) return;
    // What the broker refuses from the start, a right or a version, is no outage: the reader has to know.
    const refused = !this.#ids.read && isEdaError(error) && !error.retriable;
    if (refused || !mayPass(error)) return this.#context.post({ k: "failed", sub: this.sub, error });
    if (!this.#failing) this.#tell("failing");
    this.#failing = true;
    this.later();
  }

  /** Pulls again after the connection's backoff. */
  later(): void {
    // A read that waits would bring more than there is room for.
    if (this.unsettled + this.#reserved > this.#prefetch) this.#waiting?.abort();
    if (this.#stopped) return;
    this.#retry.set(Math.max(20, this.#context.connection.retryInMs), () => {
      this.#settler.retry();
      this.pull();
    });
  }

  #answerProbes(answer: { value: "empty" | "more" } | { error: unknown }, count: number = this.#probes.length): void {
    for (const call of this.#probes.splice(0, count)) this.#context.post({ k: "answer", call, ...answer });
  }

  #accept(read: readonly Raw[], sentAt: number): void {
    const raws = this.#partitions.ours(read);
    if (this.#stopped) return void this.#late.push(...raws.map((raw) => raw.native));
    const base = this.#ids.delivery;
    const found = takeIn(raws, base, sentAt, this.#context.maxBytes);
    const { good, bad, gone } = found;
    for (const { entry, body, error } of bad) this.#undecodables.add(entry, body, error);
    if (good.length > 0) {
      this.#ids.delivery += good.length;
      for (const entry of good) this.#entries.set(entry.id, entry);
      this.#context.post(toDeliver(this.sub, base, found));
    }
    if (found.leased) this.#leases.watch();
    if (gone.length > 0) {
      this.#context.post({ k: "signal", name: "missing-payload", topic: this.topic, details: { count: gone.length } });
      this.#settler.settleOurs("ack", gone);
    }
  }

  /** Passes settles on; `call` asks for the broker's answer. */
  settle(acks: Ranges | undefined, drops: Ranges | undefined, call: number | undefined): void {
    const now = this.#context.clock.monotonic();
    for (const [kind, ranges] of [["ack", acks], ["drop", drops]] as const) {
      if (ranges === undefined) continue;
      const good: Entry[] = [];
      const late: number[] = [];
      forEachId(ranges, (id) => {
        const entry = this.#entries.get(id);
        if (entry !== undefined && !this.expired(entry, now)) good.push(entry);
        else if (this.expiredId(id)) late.push(id);
        this.#entries.delete(id);
      });
      if (late.length > 0) this.#settler.failed(late, "it was no longer ours", call);
      if (good.length > 0) void this.#settler.settle(kind, good, call);
    }
    this.pull();
  }

  /** The host recorded an undecodable message, or could not. */
  recorded(id: number, ok: boolean): void {
    const entry = this.#undecodables.recorded(id, ok);
    if (entry !== undefined) this.#settler.settleOurs("drop", [entry]);
    this.pull();
  }

  /** All that is held: handed to the host, and what waits for its record. */
  *held(): Iterable<Entry> {
    yield* this.#entries.values();
    yield* this.#undecodables.entries();
  }

  /** Whether it is still held. */
  holds(entry: Entry): boolean {
    return this.#entries.has(entry.id) || this.#undecodables.has(entry);
  }

  /** Whether our hold on a message ran out. */
  expired(entry: Entry, now: number = this.#context.clock.monotonic()): boolean {
    return now > entry.leaseUntil || this.#partitions.expired(entry.partition, now);
  }

  /** The same by id, for a host on the same thread, which then forgets it; an id we no longer hold has expired. */
  expiredId(id: number): boolean {
    const entry = this.#entries.get(id);
    if (entry !== undefined && !this.expired(entry)) return false;
    if (this.#entries.delete(id)) {
      this.#settler.giveBack([entry!]);
      this.pull();
    }
    return true;
  }

  /** The transport owns a partition until then. */
  owned(partition: number, epoch: number, leaseUntil: number): void {
    this.#partitions.set(partition, epoch, leaseUntil);
  }

  /** A partition was taken from us. */
  revoked(partition: number, why: string): void {
    this.#settler.revoked(partition, why);
    this.lose([...this.held()].filter((entry) => entry.partition === partition), why);
    // After its messages are lost: until then the host hands nothing out.
    this.#partitions.delete(partition);
    this.pull();
  }

  /** The transport lost these natives. */
  lostNatives(natives: readonly Native[], why: string): void {
    const gone = new Set(natives);
    this.lose([...this.held()].filter((entry) => gone.has(entry.native)), why);
  }

  /** These entries are no longer ours, which makes room for others. */
  lose(entries: readonly Entry[], why: string): void {
    if (entries.length === 0) return;
    const handed = entries.filter((entry) => this.#entries.delete(entry.id)).map((entry) => entry.id);
    const gone = new Set(entries);
    this.#undecodables.forget((entry) => gone.has(entry));
    if (handed.length > 0) this.#context.post({ k: "lost", sub: this.sub, ids: rangesOf(handed), why });
    this.pull();
  }

  /** Stops fetching; ends the wait in flight. Answers the probes that are left. */
  stop(): readonly number[] {
    this.#stopped = true;
    this.#waiting?.abort();
    for (const alarm of [this.#retry, this.#small]) alarm.cancel();
    this.#leases.stop();
    this.#undecodables.stop();
    return this.#probes.splice(0);
  }

  /** Resolves when no settle is on its way and no read is in flight, or after `ms`. */
  async quiet(ms: number): Promise<void> {
    await this.#settler.flushed(ms, () => this.#reads === 0);
  }

  /** Forgets everything held; answers the natives to give back. */
  surrender(why: string): readonly Native[] {
    this.#surrendered = true;
    const held = [...this.held()];
    this.lose(held, why);
    return [...held.map((entry) => entry.native), ...this.#late];
  }
}
