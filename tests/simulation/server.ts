/**
 * The broker of a simulated run: topics with partitions, one group, owners with leases and epochs. It keeps its word, unless a
 * {@link ServerDefect} is switched on to prove that the rules notice.
 *
 * @module
 */
import type { NativeOutcome } from "../../core/transport.ts";
import type { World } from "./world.ts";

/** One message of the log. */
export interface Entry {
  readonly partition: number;
  /** 0-based, in its partition. */
  readonly seq: number;
  readonly subject: string | undefined;
  readonly body: string | null;
  readonly id: string;
  /** How it was settled. */
  settled: "ack" | "drop" | undefined;
  /** Who has it, in which epoch (0 = unordered), until when. */
  holder: string | undefined;
  epoch: number;
  until: number;
  deliveries: number;
  /** How often it was given to anybody. */
  grants: number;
  /** Until when its holder believes to have it, if that is not ordered; `Infinity` = the answer is still on its way. */
  believed: number;
}

/** One message as the server gives it. */
export interface Given {
  readonly entry: Entry;
  /** Deliveries before this one. */
  readonly deliveries: number;
}

/** What a broken server does. */
export type ServerDefect =
  /** Takes settles and gives messages to whoever asks, owner or not. */
  | "no-fence"
  /** Confirms settles and forgets every second one. */
  | "forgets-settles"
  /** Settles the next message along with the one it was asked to. */
  | "settles-too-much"
  /** Confirms publishes and forgets every third one. */
  | "forgets-publishes"
  /** Gives more than was asked for. */
  | "gives-too-much"
  /** Gives the newest first. */
  | "gives-backwards"
  /** Lets a second member own a partition. */
  | "two-owners";

/** What the rules want to know of the server. */
export interface ServerEvents {
  settled(entry: Entry, name: string, kind: "ack" | "drop", rightful: boolean): void;
  inFlight(name: string, entries: readonly Entry[]): void;
}

interface Owner {
  readonly name: string;
  readonly epoch: number;
  until: number;
}

/** The broker. Every method is one atomic step at the moment it is called. */
export class Server {
  readonly log: Entry[][];
  readonly #defect: ServerDefect | undefined;
  readonly #world: World;
  readonly #events: ServerEvents;
  readonly #owners: (Owner | undefined)[];
  readonly #epochs: number[];
  readonly #members = new Map<string, number>();
  readonly #watchers = new Set<() => void>();
  #counter = 0;

  constructor(world: World, partitions: number, events: ServerEvents, defect?: ServerDefect) {
    this.#world = world;
    this.#defect = defect;
    this.#events = events;
    this.log = Array.from({ length: partitions }, () => []);
    this.#owners = Array.from({ length: partitions }, () => undefined);
    this.#epochs = Array.from({ length: partitions }, () => 0);
  }

  /** Who owns a partition at this moment. */
  ownerOf(partition: number): { readonly name: string; readonly epoch: number } | undefined {
    const owner = this.#owners[partition];
    return owner !== undefined && owner.until >= this.#world.now ? owner : undefined;
  }

  /** The time, for those who note when they asked. */
  get now(): number {
    return this.#world.now;
  }

  /** Whether nobody owns or holds anything, `ms` from now. */
  isFree(ms: number): boolean {
    const at = this.#world.now + ms;
    return this.#owners.every((owner) => owner === undefined || owner.until < at) &&
      this.log.flat().every((entry) => entry.epoch > 0 || !this.#isHeld(entry) || entry.until < at);
  }

  /** How many messages nobody has settled. */
  open = 0;

  /** Messages nobody has settled. */
  get unsettled(): Entry[] {
    return this.log.flat().filter((entry) => entry.settled === undefined);
  }

  /** Calls `wake` when something is published; answers how to end that. */
  watch(wake: () => void): () => void {
    this.#watchers.add(wake);
    return () => void this.#watchers.delete(wake);
  }

  publish(partition: number, subject: string | undefined, body: string | null, id: string): void {
    if (this.#defect === "forgets-publishes" && this.#counter++ % 3 === 2) return;
    const log = this.log[partition]!;
    this.open++;
    log.push({
      partition,
      seq: log.length,
      subject,
      body,
      id,
      settled: undefined,
      holder: undefined,
      epoch: 0,
      until: 0,
      deliveries: 0,
      grants: 0,
      believed: 0,
    });
    this.#world.note(() => `server has ${id} at ${partition}/${log.length - 1}, subject ${subject}`);
    for (const wake of this.#watchers) wake();
  }

  acquire(name: string, partition: number, leaseMs: number): number | undefined {
    const owner = this.ownerOf(partition);
    if (owner !== undefined && owner.name !== name && this.#defect !== "two-owners") return undefined;
    const epoch = ++this.#epochs[partition]!;
    this.#world.note(() => `server lets ${name} own partition ${partition} in epoch ${epoch}`);
    this.#owners[partition] = { name, epoch, until: this.#world.now + leaseMs };
    return epoch;
  }

  renew(name: string, partition: number, epoch: number, leaseMs: number): boolean {
    const owner = this.#owners[partition];
    const theirs = owner?.name === name && owner.epoch === epoch;
    this.#world.note(() => `server renews partition ${partition} of ${name}: ${theirs}`);
    if (!theirs) return this.#defect === "two-owners";
    // A lease that ran out is taken back if nobody owned the partition since.
    owner.until = this.#world.now + leaseMs;
    return true;
  }

  surrender(name: string, partition: number, epoch: number): void {
    const owner = this.#owners[partition];
    const theirs = owner?.name === name && owner.epoch === epoch;
    this.#world.note(() => `server frees partition ${partition} of ${name}: ${theirs}`);
    if (!theirs) return;
    this.#owners[partition] = undefined;
  }

  beat(name: string, leaseMs: number): string[] {
    const { now } = this.#world;
    this.#members.set(name, now + leaseMs);
    for (const [member, until] of this.#members) if (until < now) this.#members.delete(member);
    return [...this.#members.keys()];
  }

  leave(name: string): void {
    this.#members.delete(name);
  }

  #owns(name: string, partition: number, epoch: number): boolean {
    const owner = this.ownerOf(partition);
    return this.#defect === "no-fence" || this.#defect === "two-owners" ||
      (owner?.name === name && owner.epoch === epoch);
  }

  /**
   * The owner reads on; with `held`, it reads again what was given to it in this epoch and is not among those. `undefined` = not
   * the owner.
   */
  read(name: string, partition: number, epoch: number, max: number, held?: ReadonlySet<Entry>): Given[] | undefined {
    if (!this.#owns(name, partition, epoch)) return undefined;
    const wanted = (entry: Entry): boolean =>
      entry.settled === undefined &&
      (held === undefined
        ? entry.holder !== name || entry.epoch !== epoch
        : entry.holder === name && entry.epoch === epoch && !held.has(entry));
    return this.#give(name, epoch, Infinity, this.log[partition]!.filter(wanted), max);
  }

  /** A member competes for messages that nobody holds, or takes back what a lost reply gave it; never what it has in its hands. */
  take(
    name: string,
    partition: number,
    windowMs: number,
    max: number,
    held: ReadonlySet<Entry>,
    lost: boolean,
  ): Given[] {
    const wanted = (entry: Entry): boolean =>
      entry.settled === undefined && !held.has(entry) &&
      (lost ? entry.holder === name && this.#isHeld(entry) : !this.#isHeld(entry));
    return this.#give(name, 0, this.#world.now + windowMs, this.log[partition]!.filter(wanted), max);
  }

  #isHeld(entry: Entry): boolean {
    return entry.settled === undefined && entry.holder !== undefined && entry.until >= this.#world.now;
  }

  #give(name: string, epoch: number, until: number, entries: Entry[], max: number): Given[] {
    if (this.#defect === "gives-backwards") entries.reverse();
    const given = entries.slice(0, this.#defect === "gives-too-much" ? max + 2 : max).map((entry): Given => {
      const { deliveries } = entry;
      Object.assign(entry, {
        holder: name,
        epoch,
        until,
        deliveries: deliveries + 1,
        grants: entry.grants + 1,
        believed: Infinity,
      });
      return { entry, deliveries };
    });
    if (given.length > 0) {
      this.#world.note(() => `server gives ${name} ${given.map(({ entry }) => entry.id).join(" ")} (epoch ${epoch})`);
      this.#events.inFlight(name, this.#inFlight(name));
    }
    return given;
  }

  #inFlight(name: string): Entry[] {
    return this.log.flat().filter((entry) => {
      if (entry.settled !== undefined || entry.holder !== name || entry.until < this.#world.now) return false;
      // What its holder gave up, because it did not hear that it may keep it, is not counted there either.
      if (entry.epoch === 0) return entry.believed >= this.#world.now;
      return this.ownerOf(entry.partition)?.epoch === entry.epoch;
    });
  }

  /** Whether a message is that member's to settle, as given to it in `epoch`. */
  isTheirs(name: string, entry: Entry, epoch: number): boolean {
    return epoch === 0
      ? entry.holder === name && this.#isHeld(entry)
      : entry.holder === name && entry.epoch === epoch && this.ownerOf(entry.partition)?.epoch === epoch;
  }

  /**
   * Settles for good; `undefined` = the partition is not that member's in that epoch. A second settle of what the same holder
   * settled takes effect too: its answer may have been lost.
   */
  settle(name: string, kind: "ack" | "drop", entries: readonly Entry[], epoch: number): NativeOutcome[] | undefined {
    if (epoch > 0 && entries.some(({ partition }) => !this.#owns(name, partition, epoch))) return undefined;
    return entries.map((entry) => {
      if (entry.settled !== undefined) return entry.holder === name && entry.epoch === epoch ? "settled" : "stale";
      const rightful = this.isTheirs(name, entry, epoch);
      if (!rightful && this.#defect !== "no-fence" && this.#defect !== "two-owners") return "stale";
      if (this.#defect === "forgets-settles" && this.#counter++ % 2 === 1) return "settled";
      this.#settle(entry, name, kind, rightful);
      const next = this.log[entry.partition]![entry.seq + 1];
      if (this.#defect === "settles-too-much" && next !== undefined && next.settled === undefined) {
        this.#settle(next, name, kind, rightful);
      }
      return "settled";
    });
  }

  #settle(entry: Entry, name: string, kind: "ack" | "drop", rightful: boolean): void {
    this.#world.note(() => `server settles ${entry.id} of ${name}: ${kind}`);
    entry.settled = kind;
    this.open--;
    this.#events.settled(entry, name, kind, rightful);
  }

  /** Keeps unordered messages for another window. */
  extend(name: string, entries: readonly Entry[], windowMs: number): NativeOutcome[] {
    return entries.map((entry) => {
      if (!this.isTheirs(name, entry, 0)) return "stale";
      entry.until = this.#world.now + windowMs;
      return "settled";
    });
  }

  /** Gives unordered messages back, uncounted. */
  release(name: string, entries: readonly Entry[]): NativeOutcome[] {
    const outcomes = entries.map((entry): NativeOutcome => {
      if (!this.isTheirs(name, entry, 0)) return "stale";
      Object.assign(entry, { holder: undefined, until: 0, deliveries: entry.deliveries - 1 });
      return "settled";
    });
    for (const wake of this.#watchers) wake();
    return outcomes;
  }

  /** Gives back all that an unordered member holds, seen or not. */
  releaseAll(name: string): void {
    this.release(name, this.log.flat().filter((entry) => entry.holder === name && entry.epoch === 0));
  }
}
