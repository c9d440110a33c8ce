import { Bell } from "../../core/bell.ts";
import type { Timer } from "../../core/clock.ts";
import { BrokerUnavailableError, type EdaError } from "../../core/errors.ts";
import type { FetchRequest, NativeOutcome, Raw } from "../../core/transport.ts";
import type { BatchPayload } from "./client.ts";
import { Committer } from "./committer.ts";
import type { KafkaContext } from "./context.ts";
import { fetchedAll } from "./fetched_all.ts";
import { Intake } from "./intake.ts";
import { Member } from "./member.ts";
import { type KafkaNative, OwnedPartition } from "./owned_partition.ts";

/**
 * One topic and group: hands out what its member fetches, settles, and keeps account of the partitions that are ours.
 *
 * The group decides who has which partition. What was ours before a division and is ours after it goes on as if nothing had
 * happened; of what is not, nothing is handed out, settled or committed any more.
 */
export class Subscription {
  readonly #context: KafkaContext;
  readonly #topic: string;
  readonly #group: string;
  readonly #parts = new Map<number, OwnedPartition>();
  readonly #intake: Intake;
  readonly #committer: Committer;
  /** Rings when there may be something to hand out, or an end to waiting. */
  readonly #bell = new Bell();
  readonly #givenBack = new Set<OwnedPartition>();
  #member: Member | undefined;
  #leaseUntil = 0;
  #expiry: Timer | undefined;
  /** No broker answers; the next fetches say so until one does. */
  #trouble: EdaError | undefined;
  /** The member ended; the next fetch says so, and the one after it makes a new one. */
  #crash: EdaError | undefined;
  /** What came could not be taken in; the next fetch says so. */
  #failure: EdaError | undefined;
  #state: "active" | "standby" | undefined;
  #lag = -1;
  #reads = 0;
  #turn = 0;
  #stopped = false;

  constructor(context: KafkaContext, topic: string, group: string) {
    this.#context = context;
    this.#topic = topic;
    this.#group = group;
    this.#committer = new Committer(context.clock, this.#parts, (offsets) => this.#mustHaveMember().commit(offsets));
    this.#intake = new Intake(context, topic, group, this.#parts, {
      member: () => this.#member,
      failed: (error) => {
        this.#failure = error;
        this.#bell.ring();
      },
      arrived: () => this.#bell.ring(),
      begunAnew: (part, offset) => {
        if (this.#parts.get(part.partition) !== part) return undefined;
        const again = new OwnedPartition(part.partition, context.nextEpoch());
        again.position = offset;
        return this.#replace(part, again, "its log was cut off");
      },
    });
  }

  async fetch(request: FetchRequest): Promise<readonly Raw[]> {
    const { clock, topics } = this.#context;
    const until = clock.monotonic() + request.waitMs;
    await topics.ready(this.#topic);
    if (this.#stopped) return [];
    this.#begin();
    for (const part of this.#givenBack) this.#restart(part, "it was given back");
    if (request.waitMs === 0 && this.#reads === 0) {
      await fetchedAll(this.#context, this.#topic, request, {
        parts: this.#parts,
        joined: () => this.#member?.joined === true,
        over: () => this.#stopped || (this.#crash ?? this.#failure ?? this.#trouble) !== undefined,
        located: () => this.#intake.located(),
        bell: this.#bell,
      });
    }
    this.#reads++;
    try {
      for (;;) {
        if (this.#stopped || request.signal.aborted) return [];
        this.#report();
        const raws = this.#take(request);
        const left = until - clock.monotonic();
        if (raws.length > 0 || left <= 0) return raws;
        await this.#bell.wait(clock, left, request.signal);
        await this.#mustBeAlive();
      }
    } finally {
      this.#reads--;
    }
  }

  #begin(): void {
    if (this.#member !== undefined || this.#crash !== undefined) return;
    const member = new Member(this.#context, this.#topic, this.#group, {
      owned: () => [...this.#parts.keys()],
      joined: (partitions, continuous) => this.#joined(partitions, continuous),
      rebalancing: () => this.#committer.now(),
      lease: (until) => this.#lease(until),
      batch: (payload: BatchPayload) => this.#intake.batch(payload),
      nothingIn: (partition, first, next, end) => this.#parts.get(partition)?.nothingIn(first, next, end),
      troubled: (error) => {
        this.#trouble = error;
        for (const part of this.#parts.values()) part.commitFailed(error);
        this.#bell.ring();
      },
      heard: () => this.#trouble = undefined,
      crashed: (error) => {
        if (this.#member !== member) return;
        this.#member = undefined;
        this.#crash = error;
        this.#loseAll("the consumer ended");
        this.#context.events.signal("consumer-ended", this.#topic, { group: this.#group, code: error.code });
      },
    });
    this.#member = member;
    member.start();
  }

  /** Throws what keeps us from reading. */
  #report(): void {
    const failure = this.#crash ?? this.#failure;
    this.#crash = this.#failure = undefined;
    if (failure !== undefined) throw failure;
    if (this.#trouble !== undefined) throw this.#trouble;
  }

  /** A line on which nothing comes looks like a topic in which nothing is. */
  async #mustBeAlive(): Promise<void> {
    const member = this.#member;
    const { commandTimeoutMs, sessionTimeoutMs } = this.#context.options;
    if (member === undefined || member.silentMs < commandTimeoutMs) return;
    if (!member.joined) await this.#context.admin.check();
    else if (member.silentMs > sessionTimeoutMs) member.cut();
  }

  #mustHaveMember(): Member {
    if (this.#member === undefined) throw new BrokerUnavailableError("the consumer ended, a new one is being made");
    return this.#member;
  }

  /** Partitions in the order of their turn, each within its share. */
  #take(request: FetchRequest): Raw[] {
    const { options: { maxUncommitted, maxBytes }, clock } = this.#context;
    if (clock.monotonic() >= this.#leaseUntil) return [];
    const share = Math.max(1, Math.floor(request.window / Math.max(1, this.#parts.size)));
    const raws: Raw[] = [];
    for (const part of [...this.#parts.values()].sort((a, b) => a.turn - b.turn)) {
      const count = Math.min(part.room(share, maxUncommitted), request.max - raws.length);
      if (count < 1) continue;
      part.turn = ++this.#turn;
      raws.push(...part.take(count, maxBytes));
    }
    if (raws.length > 0) this.#intake.taken();
    return raws;
  }

  #joined(partitions: readonly number[], continuous: boolean): void {
    const member = this.#member;
    if (member === undefined) return;
    const now = new Set(partitions);
    for (const part of [...this.#parts.values()]) {
      if (!continuous || !now.has(part.partition)) this.#lose(part, "the group gave it to another member");
      // The client would begin again at what is committed.
      else if (part.position !== undefined) member.seek(part.partition, part.position);
    }
    const added = partitions.filter((partition) => !this.#parts.has(partition));
    for (const partition of added) {
      this.#parts.set(partition, new OwnedPartition(partition, this.#context.nextEpoch()));
    }
    if (added.length > 0) member.pause(added, false);
    this.#intake.divided();
    const state = partitions.length > 0 ? "active" : "standby";
    if (state !== this.#state) this.#context.events.topic(this.#topic, this.#group, this.#state = state);
    this.#committer.kick();
    this.#bell.ring();
  }

  #lease(until: number): void {
    const { clock } = this.#context;
    this.#leaseUntil = until;
    this.#expiry?.cancel();
    this.#expiry = clock.timer(until - clock.monotonic(), () => this.#expired());
    let lag = 0;
    for (const part of this.#parts.values()) {
      this.#own(part);
      lag += part.lag;
    }
    if (lag !== this.#lag) this.#context.events.lag(this.#topic, this.#group, this.#lag = lag);
    // What a division of the group kept from being committed.
    this.#committer.kick();
  }

  /** The group may have put us out without our hearing of it. If it has not, everything unsettled comes again. */
  #expired(): void {
    for (const part of [...this.#parts.values()]) {
      if (part.tracker.span > 0) this.#restart(part, "the group did not hear of us in time");
    }
  }

  #own({ partition, epoch }: OwnedPartition): void {
    this.#context.events.owned(this.#topic, this.#group, partition, epoch, this.#leaseUntil);
  }

  #lose(part: OwnedPartition, why: string): void {
    this.#parts.delete(part.partition);
    this.#givenBack.delete(part);
    part.lose();
    this.#context.events.revoked(this.#topic, this.#group, part.partition, why);
    this.#intake.taken();
  }

  #loseAll(why: string): void {
    this.#expiry?.cancel();
    for (const part of [...this.#parts.values()]) this.#lose(part, why);
    this.#bell.ring();
  }

  /** Begins a partition anew at its oldest unsettled message: all that is unsettled comes again, in its place. */
  #restart(part: OwnedPartition, why: string): void {
    this.#givenBack.delete(part);
    const again = new OwnedPartition(part.partition, this.#context.nextEpoch());
    again.inherit(part);
    this.#replace(part, again, why);
    if (again.position !== undefined) this.#member?.seek(again.partition, again.position);
    this.#member?.pause([again.partition], false);
  }

  #replace(part: OwnedPartition, again: OwnedPartition, why: string): OwnedPartition {
    this.#lose(part, why);
    this.#parts.set(part.partition, again);
    this.#own(again);
    return again;
  }

  #ours(native: KafkaNative): OwnedPartition | undefined {
    const part = this.#parts.get(native.partition);
    return part?.epoch === native.epoch ? part : undefined;
  }

  async ack(natives: readonly KafkaNative[]): Promise<readonly NativeOutcome[]> {
    const byPart = new Map<OwnedPartition, KafkaNative[]>();
    for (const native of natives) {
      const part = this.#ours(native);
      if (part === undefined) continue;
      const mine = byPart.get(part);
      if (mine === undefined) byPart.set(part, [native]);
      else mine.push(native);
    }
    const outcomes = new Map<number, NativeOutcome>();
    const settling = [...byPart].map(async ([part, mine]) => {
      outcomes.set(part.epoch, await part.settle(mine.map(({ entry }) => entry)));
    });
    this.#committer.kick();
    this.#bell.ring();
    await Promise.all(settling);
    return natives.map(({ epoch }) => outcomes.get(epoch) ?? "stale");
  }

  /** What is given back comes again with all that follows it, at the next fetch. */
  release(natives: readonly KafkaNative[]): readonly NativeOutcome[] {
    return natives.map((native) => {
      const part = this.#ours(native);
      if (part === undefined) return "stale";
      this.#givenBack.add(part);
      return "settled";
    });
  }

  reset(): void {
    this.#member?.cut();
  }

  /** Commits what is settled and leaves the group. Never rejects. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#bell.ring();
    this.#intake.taken();
    const member = this.#member;
    if (member === undefined) return;
    const answers = this.#trouble === undefined;
    if (answers) await this.#committer.flushed().catch(() => {});
    this.#member = undefined;
    await member.stop(answers);
    this.#loseAll("the subscription ended");
  }
}
