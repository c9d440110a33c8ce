import type { Clock, Timer } from "../clock.ts";
import type { OwnershipTimes, OwnerStore } from "./contract.ts";

/** Told as it happens, never from inside a call of {@link PartitionOwner}'s caller except `stop` and `renounce`. */
export interface PartitionOwnerEvents {
  /** It is ours in this epoch. */
  owned(partition: number, epoch: number, leaseUntil: number): void;
  /** It stays ours. */
  renewed(partition: number, epoch: number, leaseUntil: number): void;
  /** It is not ours any more. */
  lost(partition: number, epoch: number, why: string): void;
  /** A try to get it was answered, or failed with `error`. */
  tried(partition: number, error?: unknown): void;
}

/** Where a {@link PartitionOwner} stands. */
export type OwnerState = "idle" | "seeking" | "owned";

/**
 * One member's side of owning one partition.
 *
 * ```text
 * idle     seek()                               -> seeking
 * seeking  acquire: ours                        -> owned    told `owned`
 * seeking  acquire: another's, or failed        -> seeking  tries again after pollMs
 * seeking  stop()                               -> idle     an acquire on its way that still succeeds is surrendered
 * owned    a third of the lease since it was last confirmed: renew
 * owned    renew: still ours                    -> owned    told `renewed`; leaseUntil = when it was sent + leaseMs
 * owned    renew: failed                        -> owned    tries again, until leaseUntil
 * owned    renew: no longer ours                -> seeking  told `lost`
 * owned    leaseUntil passes                    -> seeking  told `lost`
 * owned    renounce()                           -> seeking  told `lost`, surrendered, sought anew
 * owned    stop()                               -> idle     told `lost`, surrendered
 * ```
 *
 * Each answer to `acquire` that still matters is told as `tried`, after what it led to.
 *
 * `leaseUntil` counts from when a call was sent, so it never outlasts the lease at the broker. An answer that belongs to an
 * earlier state is dropped.
 */
export class PartitionOwner {
  readonly partition: number;
  readonly #clock: Clock;
  readonly #store: OwnerStore;
  readonly #times: OwnershipTimes;
  readonly #events: PartitionOwnerEvents;
  #state: OwnerState = "idle";
  #epoch = 0;
  #leaseUntil = 0;
  /** Counts changes of state, so that late answers are known as such. */
  #turn = 0;
  #renewing: Promise<boolean | undefined> | undefined;
  #tried = false;
  /** Calls on their way. */
  readonly #calls = new Set<Promise<unknown>>();
  #next: Timer | undefined;
  #expiry: Timer | undefined;

  constructor(
    clock: Clock,
    store: OwnerStore,
    partition: number,
    times: OwnershipTimes,
    events: PartitionOwnerEvents,
  ) {
    this.#clock = clock;
    this.#store = store;
    this.partition = partition;
    this.#times = times;
    this.#events = events;
  }

  get state(): OwnerState {
    return this.#state;
  }

  /** The epoch in which it is ours at this moment; `undefined` = it is not, or the lease ran out unnoticed. */
  get epoch(): number | undefined {
    if (this.#state !== "owned") return undefined;
    if (this.#clock.monotonic() < this.#leaseUntil) return this.#epoch;
    this.#lose("the lease ran out");
    return undefined;
  }

  /** Whether a try to get it was answered, or failed, since it was last wanted. */
  get tried(): boolean {
    return this.#tried;
  }

  /** Wants the partition. */
  seek(): void {
    if (this.#state !== "idle") return;
    this.#tried = false;
    this.#enter("seeking");
    this.#track(this.#acquire());
  }

  /**
   * Asks the broker now whether it is still ours in the same epoch, because a call was refused; `undefined` = it could not
   * tell.
   */
  check(): Promise<boolean | undefined> {
    return this.#state === "owned" ? this.#renew() : Promise.resolve(false);
  }

  /** Gives it up and seeks it anew, in a later epoch; with `restMs`, others have that long to take it first. */
  renounce(why: string, restMs = 0): void {
    if (this.#state !== "owned") return;
    const epoch = this.#epoch;
    this.#enter("seeking");
    const turn = this.#turn;
    this.#events.lost(this.partition, epoch, why);
    void this.#give(epoch).then(() => {
      if (this.#turn === turn) this.#next = this.#clock.timer(restMs, () => this.#track(this.#acquire()));
    });
  }

  /** Wants it no more; resolves when every call on its way is answered, and it is surrendered or that failed. */
  async stop(why: string): Promise<void> {
    const epoch = this.#state === "owned" ? this.#epoch : undefined;
    this.#enter("idle");
    if (epoch === undefined) return await this.#answered();
    this.#events.lost(this.partition, epoch, why);
    await this.#give(epoch);
    await this.#answered();
  }

  /** Resolves when every call was answered: what still made the partition ours is given up by then. */
  async #answered(): Promise<void> {
    while (this.#calls.size > 0) await Promise.all(this.#calls);
  }

  #track(call: Promise<unknown>): void {
    const done = call.finally(() => this.#calls.delete(done));
    this.#calls.add(done);
  }

  #enter(state: OwnerState): void {
    this.#turn++;
    this.#state = state;
    this.#renewing = undefined;
    this.#next?.cancel();
    this.#next = undefined;
    this.#expiry?.cancel();
    this.#expiry = undefined;
  }

  /** Gives it up at the broker. Whoever stops waits for it: the connection may be closed right after. */
  #give(epoch: number): Promise<void> {
    const call = this.#surrender(epoch);
    this.#track(call);
    return call;
  }

  async #surrender(epoch: number): Promise<void> {
    try {
      await this.#store.surrender(this.partition, epoch);
    } catch {
      // The broker is away; the lease ends by itself.
    }
  }

  async #acquire(): Promise<void> {
    const turn = this.#turn;
    const sentAt = this.#clock.monotonic();
    let epoch: number | undefined;
    let failure: unknown;
    try {
      epoch = await this.#store.acquire(this.partition, this.#times.leaseMs);
    } catch (error) {
      failure = error;
    }
    if (turn !== this.#turn) {
      if (epoch !== undefined) await this.#give(epoch);
      return;
    }
    this.#tried = true;
    if (epoch !== undefined && this.#clock.monotonic() < sentAt + this.#times.leaseMs) {
      this.#enter("owned");
      this.#epoch = epoch;
      this.#hold(sentAt);
      this.#events.owned(this.partition, epoch, this.#leaseUntil);
      return this.#events.tried(this.partition);
    }
    // Members that wait for the same partition should not try at the same moment for ever.
    const wait = this.#times.pollMs * (0.75 + this.#clock.random() / 2);
    this.#next = this.#clock.timer(wait, () => this.#track(this.#acquire()));
    this.#events.tried(this.partition, failure);
  }

  /** The broker confirmed our hold by a call that was sent at `sentAt`. */
  #hold(sentAt: number): void {
    const { leaseMs } = this.#times;
    this.#leaseUntil = sentAt + leaseMs;
    const now = this.#clock.monotonic();
    this.#next?.cancel();
    this.#next = this.#clock.timer(sentAt + leaseMs / 3 - now, () => void this.#renew());
    this.#expiry?.cancel();
    this.#expiry = this.#clock.timer(this.#leaseUntil - now, () => this.#lose("the lease ran out"));
  }

  /** Callers share the answer of one call. */
  #renew(): Promise<boolean | undefined> {
    if (this.#renewing === undefined) this.#track(this.#renewing = this.#ask());
    return this.#renewing!;
  }

  async #ask(): Promise<boolean | undefined> {
    this.#next?.cancel();
    this.#next = undefined;
    const turn = this.#turn;
    const epoch = this.#epoch;
    const sentAt = this.#clock.monotonic();
    let ours: boolean | undefined;
    try {
      ours = await this.#store.renew(this.partition, epoch, this.#times.leaseMs);
    } catch {
      // Tried again below while the lease lasts.
    }
    if (turn !== this.#turn) {
      // We had let it go before this call was carried out.
      if (ours === true && this.#state === "idle") await this.#give(epoch);
      return false;
    }
    this.#renewing = undefined;
    if (ours === false) return this.#lose("another member took it, or the record was removed");
    if (ours === true && this.#clock.monotonic() < sentAt + this.#times.leaseMs) {
      this.#hold(sentAt);
      this.#events.renewed(this.partition, epoch, this.#leaseUntil);
      return true;
    }
    if (this.#clock.monotonic() >= this.#leaseUntil) return this.#lose("the lease ran out");
    this.#next = this.#clock.timer(this.#times.leaseMs / 30, () => void this.#renew());
    return undefined;
  }

  #lose(why: string): false {
    const epoch = this.#epoch;
    this.#enter("seeking");
    this.#events.lost(this.partition, epoch, why);
    if (this.#state === "seeking") this.#track(this.#acquire());
    return false;
  }
}
