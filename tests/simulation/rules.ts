/**
 * What must hold in every run, checked while it goes and at its end.
 *
 * @module
 */
import type { Delivery, SettleOutcome } from "../../core/contract.ts";
import type { Plan } from "./plan.ts";
import type { Entry, Server, ServerEvents } from "./server.ts";
import type { SimNative } from "./reach.ts";
import type { World } from "./world.ts";

/** The rules, by name. */
export type Rule =
  /** Everything the broker confirmed is settled in the end. */
  | "lost"
  /** A confirmed publish is in the log, once; one that failed unsent is not; a subject's messages stand in order. */
  | "publish"
  /** Nothing is settled that no consumer settled and no record was written of. */
  | "unasked"
  /** No settle of somebody who is not the holder any more takes effect. */
  | "fence"
  /** No settle is sent of what is known to be lost. */
  | "stale-sent"
  /** A delivery is settled once, and `settled` means that it is. */
  | "settle-once"
  /** What the broker counts as in flight never exceeds the prefetch. */
  | "credit"
  /** No later message of a subject goes out before an earlier unsettled one. */
  | "order"
  /** A message goes out only while its lease runs, and once at a time. */
  | "late"
  | "twice"
  /** A retried message comes back when it is due, one attempt up, before later ones. */
  | "retry"
  /** Reconnect follows disconnect, and all is healthy in the end. */
  | "health"
  /** In the end nothing is armed, held or waited for. */
  | "quiet"
  /** The checker of recorded histories objects. */
  | "history";

/** A rule that was broken. */
export interface Violation {
  readonly rule: Rule;
  readonly at: number;
  readonly text: string;
}

interface Hold {
  /** When it was first handed out, among all: one that came again later is behind, whatever its place in the log. */
  readonly order: number;
  /** Which giving of the message it came from. */
  readonly grant: number;
  state: "open" | "settled" | "retry" | "unsure";
  attempt: number;
  dueAt: number;
}

/** What the rules need to know of a member. */
export interface Watched {
  /** What the server knows it by; another one in each session. */
  readonly name: string;
  readonly prefetch: number;
  /** Its monotonic clock stood still: it cannot know that its leases ran out. */
  readonly slept: boolean;
  /** Whether its host knows of every loss that its session knows of. */
  readonly inStep: boolean;
  /** How long its host needs to hear of a loss, milliseconds. */
  readonly lagMs: number;
}

/** Watches one run. */
export class Rules implements ServerEvents {
  readonly violations: Violation[] = [];
  /** Filled once the run has a server. */
  server!: Server;
  readonly #world: World;
  readonly #ordered: boolean;
  readonly #delayMs: number;
  readonly #leaseMs: number;
  readonly #members = new Map<string, Watched>();
  readonly #holds = new Map<Watched, Map<Entry, Hold>>();
  readonly #entries = new Map<string, Entry>();
  /** Consumers and records that stand behind a settle: member, message, kind. */
  readonly #asked = new Set<string>();
  #order = 0;
  readonly #lastFirst = new Map<string, number>();
  readonly #seen = new Set<Entry>();
  /** Members, partitions and epochs that are over for the member, whatever the server still believes. */
  readonly #gone = new Set<string>();
  /** Settles that were sent and not answered. */
  readonly #underWay = new Map<Entry, number>();

  constructor(world: World, plan: Plan) {
    this.#world = world;
    this.#delayMs = plan.delayMs;
    this.#leaseMs = plan.leaseMs;
    this.#ordered = plan.ordered;
  }

  /** Writes a violation down. */
  broken(rule: Rule, text: string): void {
    this.#world.note(() => `!! ${rule}: ${text}`);
    this.violations.push({ rule, at: this.#world.now, text });
  }

  /** A member takes part, or does so under a new name: what it held before is lost. */
  join(member: Watched): void {
    this.#members.set(member.name, member);
    this.#holds.set(member, new Map());
  }

  /** The message with that id in the log. */
  entry(id: string): Entry | undefined {
    let entry = this.#entries.get(id);
    if (entry === undefined) {
      for (const one of this.server.log.flat()) this.#entries.set(one.id, one);
      entry = this.#entries.get(id);
    }
    return entry;
  }

  /** A consumer is handed a delivery. */
  handedOut(member: Watched, delivery: Delivery): void {
    const entry = this.entry(delivery.envelope.id);
    if (entry === undefined) return this.broken("publish", `${delivery.envelope.id} was never published`);
    const holds = this.#holds.get(member)!;
    // What the server has given anew since is another delivery.
    const earlier = holds.get(entry);
    const hold = earlier?.grant === entry.grants ? earlier : undefined;
    const name = `${entry.id} (${entry.partition}/${entry.seq}, subject ${entry.subject}) by ${member.name}`;
    this.#world.note(() => `${member.name} is handed ${entry.id}, attempt ${delivery.attempt}`);
    this.#first(member, entry, name);
    const order = hold?.order ?? this.#order++;
    const next: Hold = { order, grant: entry.grants, state: "open", attempt: delivery.attempt, dueAt: 0 };
    const theirs = this.#isTheirs(member, entry);
    // A host that has not heard of a loss yet cannot act on it.
    if (!member.inStep || member.slept) {
      // It may come from an earlier giving, which is lost: then it comes again.
      if (theirs) holds.set(entry, { ...next, state: "unsure" });
      return;
    }
    if (!theirs && !this.#isJustOver(member, entry)) {
      this.broken("late", `${name} was handed out though its lease is over`);
    }
    if (hold?.state === "open") this.broken("twice", `${name} was handed out while it was being handled`);
    if (hold?.state === "settled") {
      this.broken("twice", `${name} was handed out again though it was settled and not lost`);
    }
    if (hold?.state === "retry") {
      if (delivery.attempt !== hold.attempt + 1) {
        this.broken("retry", `${name} came back as attempt ${delivery.attempt} after ${hold.attempt}`);
      }
      if (this.#world.now < hold.dueAt) {
        this.broken("retry", `${name} came back ${hold.dueAt - this.#world.now} ms early`);
      }
    }
    this.#inOrder(holds, member, entry, order, name);
    holds.set(entry, next);
  }

  #first(member: Watched, entry: Entry, name: string): void {
    if (this.#seen.has(entry)) return;
    this.#seen.add(entry);
    if (!this.#ordered || entry.subject === undefined) return;
    const last = this.#lastFirst.get(entry.subject) ?? -1;
    if (last > entry.seq && !member.slept) this.broken("order", `${name} was first handed out after number ${last}`);
    this.#lastFirst.set(entry.subject, Math.max(last, entry.seq));
  }

  #inOrder(holds: Map<Entry, Hold>, member: Watched, entry: Entry, order: number, name: string): void {
    if (entry.subject === undefined) return;
    for (const earlier of this.server.log[entry.partition]!) {
      if (earlier.seq >= entry.seq) break;
      if (earlier.subject !== entry.subject || earlier.settled !== undefined) continue;
      const hold = holds.get(earlier);
      const before = this.#ordered || (hold?.order ?? 0) < order;
      if (hold?.state === "retry" && before && hold.grant === earlier.grants && this.#isSurely(member, earlier)) {
        this.broken("retry", `${name} was handed out while number ${earlier.seq} of its subject was held back`);
      } else if (this.#ordered && hold === undefined) {
        this.broken("order", `${name} was handed out before number ${earlier.seq}, which is not settled`);
      }
    }
  }

  /** Whether its lease ran out so lately that the host cannot have heard. */
  #isJustOver(member: Watched, entry: Entry): boolean {
    return !this.#ordered && entry.holder === member.name && this.#world.now - entry.until < member.lagMs;
  }

  /** Whether the member must know that a message is its own: it counts leases from when it asked. */
  #isSurely(member: Watched, entry: Entry): boolean {
    return this.#isTheirs(member, entry) &&
      (this.#ordered ||
        Math.min(entry.until, entry.believed) - this.#world.now > this.#leaseMs / 4 + 3 * this.#delayMs);
  }

  #isTheirs(member: Watched, entry: Entry): boolean {
    return this.server.isTheirs(member.name, entry, this.#ordered ? entry.epoch : 0);
  }

  /** A consumer settles or retries a delivery, and was answered `outcome` at once or will be. */
  settling(member: Watched, delivery: Delivery, kind: "ack" | "drop" | "retry", delayMs: number): void {
    const entry = this.entry(delivery.envelope.id);
    if (entry === undefined) return;
    this.#world.note(() => `${member.name} settles ${entry.id}: ${kind} ${delayMs}`);
    if (kind !== "retry") this.#asked.add(`${member.name} ${entry.id} ${kind}`);
    const hold = this.#holds.get(member)!.get(entry);
    if (hold === undefined || hold.state !== "open" || hold.attempt !== delivery.attempt) return;
    hold.state = kind === "retry" ? "retry" : "settled";
    hold.dueAt = this.#world.now + delayMs;
  }

  /** All outcomes of the settles of one delivery. */
  outcomes(member: Watched, delivery: Delivery, outcomes: readonly SettleOutcome[]): void {
    this.#world.note(() => `${member.name} is told of ${delivery.envelope.id}: ${outcomes.join(" ")}`);
    const taken = outcomes.filter((outcome) => outcome === "accepted" || outcome === "settled").length;
    if (taken > 1) this.broken("settle-once", `${delivery.envelope.id} was settled ${taken} times by ${member.name}`);
    if (outcomes.includes("settled") && this.entry(delivery.envelope.id)?.settled === undefined) {
      this.broken("settle-once", `${delivery.envelope.id} is told to be settled to ${member.name} and is not`);
    }
  }

  /** An undecodable message was recorded. */
  recorded(name: string, id: string): void {
    this.#asked.add(`${name} ${id} drop`);
  }

  /** A session hands settles to its transport; answers what to call when they were answered or failed. */
  sending(member: Watched, natives: readonly SimNative[]): () => void {
    for (const { entry } of natives) this.#underWay.set(entry, (this.#underWay.get(entry) ?? 0) + 1);
    if (!member.slept) this.#mayBeSent(member, natives);
    // Where one fails, a read that was sent behind it is on its way a little longer.
    return () =>
      void this.#world.schedule(this.#delayMs * 2 + 10, undefined, () => {
        for (const { entry } of natives) this.#underWay.set(entry, this.#underWay.get(entry)! - 1);
      });
  }

  #mayBeSent(member: Watched, natives: readonly SimNative[]): void {
    for (const { entry, epoch } of natives) {
      if (entry.settled !== undefined || this.server.isTheirs(member.name, entry, epoch)) continue;
      this.broken("stale-sent", `${member.name} sent a settle of ${entry.id} though it is not its own any more`);
    }
  }

  /** A partition ended at a member: what it was handed there is lost. */
  revoked(member: Watched, partition: number, epoch: number): void {
    this.#world.note(() => `${member.name} loses partition ${partition}`);
    this.#gone.add(`${member.name} ${partition} ${epoch}`);
    const holds = this.#holds.get(member)!;
    for (const entry of [...holds.keys()]) if (entry.partition === partition) holds.delete(entry);
  }

  /** Its reading of the topic ended. */
  forget(member: Watched): void {
    this.#holds.get(member)!.clear();
  }

  settled(entry: Entry, name: string, kind: "ack" | "drop", rightful: boolean): void {
    if (!rightful) this.broken("fence", `${name} settled ${entry.id}, which was not its own any more`);
    if (entry.body !== null && !this.#asked.has(`${name} ${entry.id} ${kind}`)) {
      this.broken("unasked", `${name} settled ${entry.id} by ${kind}, and nobody asked it to`);
    }
  }

  inFlight(name: string, entries: readonly Entry[]): void {
    const prefetch = this.#members.get(name)?.prefetch ?? Infinity;
    // A settle under way may yet be refused: reads are sent behind it without waiting for its answer. What a read brings for
    // an epoch that is over for its member is thrown away, and comes again when the server sees that too.
    const counted = entries.filter((entry) =>
      !(this.#underWay.get(entry)! > 0) && !this.#gone.has(`${name} ${entry.partition} ${entry.epoch}`)
    ).map(({ id }) => id);
    if (counted.length > prefetch) {
      this.broken("credit", `${name} has ${counted.join(" ")}, its prefetch is ${prefetch}`);
    }
  }
}
