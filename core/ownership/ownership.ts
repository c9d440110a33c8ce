import type { Clock, Timer } from "../clock.ts";
import type { MemberStore, OwnershipTimes, OwnerStore } from "./contract.ts";
import { PartitionOwner } from "./partition_owner.ts";
import { shareOf } from "./rendezvous.ts";

/**
 * How often a member beats, at least, and looks who else does. One that left is missed within a beat, one that died within its
 * lease and a beat: that is how soon others seek its partitions.
 */
const BEAT_MS = 500;

/** What an {@link Ownership} tells its adapter. */
export interface OwnershipEvents {
  /** A partition is ours in this epoch; start at its oldest unsettled message. */
  owned(partition: number, epoch: number, leaseUntil: number): void;
  /** It stays ours. */
  renewed(partition: number, epoch: number, leaseUntil: number): void;
  /** It is not ours any more: what was read in that epoch is lost. */
  lost(partition: number, epoch: number, why: string): void;
  /** It belongs to another member: read no more of it, and call {@link Ownership.release} when nothing of it is held. */
  surplus(partition: number): void;
  /** A try to get a partition failed; another follows. */
  failed(partition: number, error: unknown): void;
  /** `standby` = this member owns none. Told on each change, and once the first tries were answered. */
  state(state: "active" | "standby"): void;
}

/**
 * One member's side of sharing all partitions of a topic and group.
 *
 * With one partition every member seeks it. With more, members beat, each computes its share of the partitions from the list
 * of members, seeks those, and lets go of the others: drained first (`surplus`), then released.
 */
export class Ownership {
  readonly #clock: Clock;
  readonly #members: MemberStore | undefined;
  readonly #times: OwnershipTimes;
  readonly #events: OwnershipEvents;
  readonly #owners: readonly PartitionOwner[];
  readonly #surplus = new Set<number>();
  #beat: Timer | undefined;
  #told: "active" | "standby" | undefined;
  #running = false;
  #divided: boolean;
  #decide: () => void = () => {};
  readonly #decision: Promise<void> = new Promise((resolve) => this.#decide = resolve);

  /** @param members Needed with more than one partition. */
  constructor(
    clock: Clock,
    store: OwnerStore,
    members: MemberStore | undefined,
    partitions: number,
    times: OwnershipTimes,
    events: OwnershipEvents,
  ) {
    this.#clock = clock;
    this.#members = partitions > 1 ? members : undefined;
    this.#divided = this.#members === undefined;
    this.#times = times;
    this.#events = events;
    const told = {
      owned: (partition: number, epoch: number, leaseUntil: number) => {
        events.owned(partition, epoch, leaseUntil);
        this.#tell();
      },
      renewed: (partition: number, epoch: number, leaseUntil: number) => events.renewed(partition, epoch, leaseUntil),
      lost: (partition: number, epoch: number, why: string) => {
        this.#surplus.delete(partition);
        events.lost(partition, epoch, why);
        this.#tell();
      },
      tried: (partition: number, error?: unknown) => {
        if (error !== undefined) events.failed(partition, error);
        this.#tell(error === undefined);
      },
    };
    this.#owners = Array.from(
      { length: partitions },
      (_, partition) => new PartitionOwner(clock, store, partition, times, told),
    );
  }

  /** Partitions that are ours at this moment, those on their way out included. */
  get owned(): readonly number[] {
    return this.#owners.filter((owner) => owner.epoch !== undefined).map((owner) => owner.partition);
  }

  /** The epoch in which a partition is ours at this moment. */
  epochOf(partition: number): number | undefined {
    return this.#owners[partition]?.epoch;
  }

  /** Whether a partition is on its way out. */
  isSurplus(partition: number): boolean {
    return this.#surplus.has(partition);
  }

  /** Resolves once it is known which partitions are ours to begin with, or that the broker cannot tell. */
  decided(): Promise<void> {
    return this.#decision;
  }

  /** Starts seeking. */
  start(): void {
    if (this.#running) return;
    this.#running = true;
    if (this.#members === undefined) { for (const owner of this.#owners) owner.seek(); }
    else void this.#round(this.#members);
  }

  /** Surrenders everything and leaves; resolves when the broker answered or could not. */
  async stop(why: string): Promise<void> {
    this.#running = false;
    this.#beat?.cancel();
    this.#beat = undefined;
    this.#told = undefined;
    this.#decide();
    await Promise.all([
      ...this.#owners.map((owner) => owner.stop(why)),
      this.#members?.leave().catch(() => {}),
    ]);
  }

  /** A surplus partition is drained: another member may have it. */
  release(partition: number): void {
    if (!this.#surplus.has(partition)) return;
    void this.#owners[partition]?.stop("the partition moved to another member");
  }

  /** Asks the broker now whether a partition is still ours in the same epoch; `undefined` = it could not tell. */
  check(partition: number): Promise<boolean | undefined> {
    return this.#owners[partition]?.check() ?? Promise.resolve(false);
  }

  /** Gives a partition up and seeks it anew; with `restMs`, others have that long to take it first. */
  renounce(partition: number, why: string, restMs?: number): void {
    this.#owners[partition]?.renounce(why, restMs);
  }

  #tell(known = true): void {
    if (!this.#running || !this.#divided) return;
    this.#mayDecide();
    const state = this.#owners.some((owner) => owner.state === "owned") ? "active" : "standby";
    if (state === this.#told || (state === "standby" && !known)) return;
    this.#told = state;
    this.#events.state(state);
  }

  /** What is sought no more needs no answer. */
  #mayDecide(): void {
    if (this.#owners.every((owner) => owner.state !== "seeking" || owner.tried)) this.#decide();
  }

  async #round(members: MemberStore): Promise<void> {
    try {
      const names = await members.beat(this.#times.leaseMs);
      if (this.#running) this.#divide(shareOf(members.self, names, this.#owners.length));
    } catch {
      // The broker is away: what we own is kept by its own leases, and the next round decides anew.
      this.#decide();
    }
    if (!this.#running) return;
    this.#beat = this.#clock.timer(Math.min(BEAT_MS, this.#times.leaseMs / 3), () => void this.#round(members));
  }

  #divide(mine: ReadonlySet<number>): void {
    for (const owner of this.#owners) {
      const { partition } = owner;
      if (mine.has(partition)) {
        this.#surplus.delete(partition);
        owner.seek();
      } else if (owner.state === "seeking") {
        void owner.stop("not ours");
      } else if (owner.state === "owned" && !this.#surplus.has(partition)) {
        this.#surplus.add(partition);
        this.#events.surplus(partition);
      }
    }
    this.#divided = true;
    if (mine.size === 0) this.#tell();
    else this.#mayDecide();
  }
}
