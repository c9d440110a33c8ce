import assert from "node:assert/strict";
import type { MemberStore, OwnerStore } from "../../core/ownership/contract.ts";
import { Ownership } from "../../core/ownership/ownership.ts";
import { PartitionOwner } from "../../core/ownership/partition_owner.ts";
import { shareOf } from "../../core/ownership/rendezvous.ts";
import { gate } from "./dispatch_rig.ts";
import { test } from "../support/test.ts";
import { VirtualClock } from "../support/virtual_clock.ts";

const TIMES = { leaseMs: 15_000, pollMs: 400 };

/** Owner records as a broker keeps them, for any number of members, in virtual time. */
class FakeBroker {
  readonly clock: VirtualClock;
  readonly members = new Map<string, number>();
  /** Calls reject while it is away. */
  away = false;
  /** Calls are answered this much later. */
  delayMs = 0;
  readonly calls: string[] = [];
  /** Calls that are not answered before it resolves. */
  held: { readonly call: string; readonly until: Promise<void> } | undefined;
  readonly #owners = new Map<number, { member: string; epoch: number; until: number }>();
  readonly #epochs = new Map<number, number>();

  constructor(clock: VirtualClock) {
    this.clock = clock;
  }

  owner(partition: number): string | undefined {
    const owner = this.#owners.get(partition);
    return owner !== undefined && owner.until > this.clock.monotonic() ? owner.member : undefined;
  }

  /** As if an operator removed the record. */
  forget(partition: number): void {
    this.#owners.delete(partition);
  }

  /** As if another member took it while nobody looked. */
  steal(partition: number, member: string, leaseMs: number): void {
    this.#owners.set(partition, { member, epoch: this.#next(partition), until: this.clock.monotonic() + leaseMs });
  }

  #next(partition: number): number {
    const epoch = (this.#epochs.get(partition) ?? 0) + 1;
    this.#epochs.set(partition, epoch);
    return epoch;
  }

  readonly #frozen = new Set<string>();

  /** Calls of this member are never answered, until the end. */
  freeze(member: string): { end(): void } {
    this.#frozen.add(member);
    return { end: () => void this.#frozen.delete(member) };
  }

  async #call<T>(name: string, run: () => T): Promise<T> {
    this.calls.push(name);
    if (this.held?.call === name) await this.held.until;
    if (this.away || this.#frozen.has(name.split(" ")[1]!)) throw new Error("away");
    const value = run();
    if (this.delayMs > 0) await new Promise<void>((resolve) => this.clock.timer(this.delayMs, resolve));
    return value;
  }

  store(member: string): OwnerStore {
    return {
      acquire: (partition, leaseMs) =>
        this.#call(`acquire ${member} ${partition}`, () => {
          const owner = this.owner(partition);
          if (owner !== undefined && owner !== member) return undefined;
          const epoch = this.#next(partition);
          this.#owners.set(partition, { member, epoch, until: this.clock.monotonic() + leaseMs });
          return epoch;
        }),
      renew: (partition, epoch, leaseMs) =>
        this.#call(`renew ${member} ${partition}`, () => {
          const owner = this.#owners.get(partition);
          if (owner?.member !== member || owner.epoch !== epoch || this.owner(partition) === undefined) return false;
          owner.until = this.clock.monotonic() + leaseMs;
          return true;
        }),
      surrender: (partition, epoch) =>
        this.#call(`surrender ${member} ${partition}`, () => {
          const owner = this.#owners.get(partition);
          if (owner?.member === member && owner.epoch === epoch) this.#owners.delete(partition);
        }),
    };
  }

  memberStore(self: string): MemberStore {
    return {
      self,
      beat: (leaseMs) =>
        this.#call(`beat ${self}`, () => {
          const now = this.clock.monotonic();
          this.members.set(self, now);
          return [...this.members].filter(([, at]) => at > now - leaseMs).map(([name]) => name);
        }),
      leave: () => this.#call(`leave ${self}`, () => void this.members.delete(self)),
    };
  }
}

/** A {@link PartitionOwner} whose events are written down. */
function ownerOf(broker: FakeBroker, member: string) {
  const told: string[] = [];
  const owner = new PartitionOwner(broker.clock, broker.store(member), 0, TIMES, {
    owned: (_, epoch, until) => told.push(`owned ${epoch} until ${until}`),
    renewed: (_, epoch, until) => told.push(`renewed ${epoch} until ${until}`),
    lost: (_, epoch, why) => told.push(`lost ${epoch}: ${why}`),
    tried: () => {},
  });
  return { owner, told };
}

/** The same for an {@link Ownership}. */
function ownershipOf(broker: FakeBroker, member: string, partitions: number) {
  const told: string[] = [];
  const ownership = new Ownership(
    broker.clock,
    broker.store(member),
    broker.memberStore(member),
    partitions,
    TIMES,
    {
      owned: (partition) => told.push(`owned ${partition}`),
      renewed: () => {},
      lost: (partition) => told.push(`lost ${partition}`),
      surplus: (partition) => told.push(`surplus ${partition}`),
      failed: (partition) => told.push(`failed ${partition}`),
      state: (state) => told.push(state),
    },
  );
  return { ownership, told };
}

test("PartitionOwner takes a free partition and counts its lease from when it asked", async () => {
  const broker = new FakeBroker(new VirtualClock());
  broker.delayMs = 100;
  const { owner, told } = ownerOf(broker, "a");
  owner.seek();
  await broker.clock.advance(100);
  assert.deepEqual(told, ["owned 1 until 15000"]);
  assert.equal(owner.epoch, 1);
});

test("PartitionOwner renews every third of the lease", async () => {
  const broker = new FakeBroker(new VirtualClock());
  const { owner, told } = ownerOf(broker, "a");
  owner.seek();
  await broker.clock.advance(10_000);
  assert.deepEqual(told, ["owned 1 until 15000", "renewed 1 until 20000", "renewed 1 until 25000"]);
});

test("PartitionOwner stands by while another owns it, and takes over within the lease and a second", async () => {
  const broker = new FakeBroker(new VirtualClock());
  broker.steal(0, "dead", 15_000);
  const { owner, told } = ownerOf(broker, "b");
  owner.seek();
  await broker.clock.advance(14_900);
  assert.deepEqual(told, []);
  assert.equal(owner.state, "seeking");
  await broker.clock.advance(1_100);
  assert.equal(told.length, 1);
  assert.equal(broker.owner(0), "b");
});

test("PartitionOwner takes over within a second of an orderly surrender", async () => {
  const broker = new FakeBroker(new VirtualClock());
  const first = ownerOf(broker, "a");
  const second = ownerOf(broker, "b");
  first.owner.seek();
  second.owner.seek();
  await broker.clock.advance(3_000);
  assert.equal(broker.owner(0), "a");
  void first.owner.stop("done");
  await broker.clock.advance(1_000);
  assert.equal(broker.owner(0), "b");
  assert.deepEqual(first.told.at(-1), "lost 1: done");
});

test("PartitionOwner that cannot renew loses it when the lease ends, not before", async () => {
  const broker = new FakeBroker(new VirtualClock());
  const { owner, told } = ownerOf(broker, "a");
  owner.seek();
  await broker.clock.advance(5_001);
  broker.away = true;
  await broker.clock.advance(14_900);
  assert.equal(owner.epoch, 1);
  await broker.clock.advance(200);
  assert.equal(owner.epoch, undefined);
  assert.deepEqual(told.slice(-1), ["lost 1: the lease ran out"]);
});

test("PartitionOwner that is back within its lease keeps its epoch", async () => {
  const broker = new FakeBroker(new VirtualClock());
  const { owner, told } = ownerOf(broker, "a");
  owner.seek();
  await broker.clock.advance(4_999);
  broker.away = true;
  await broker.clock.advance(6_000);
  broker.away = false;
  await broker.clock.advance(600);
  assert.equal(owner.epoch, 1);
  assert.match(told.at(-1)!, /^renewed 1/);
});

test("PartitionOwner whose record was taken is told at the next renewal and seeks anew", async () => {
  const broker = new FakeBroker(new VirtualClock());
  const { owner, told } = ownerOf(broker, "a");
  owner.seek();
  await broker.clock.flush();
  broker.steal(0, "b", 2_000);
  await broker.clock.advance(5_000);
  assert.match(told[1]!, /^lost 1: another member took it/);
  assert.match(told[2]!, /^owned 3/);
});

test("PartitionOwner asks at once when a call was refused, and answers what it heard", async () => {
  const broker = new FakeBroker(new VirtualClock());
  const { owner, told } = ownerOf(broker, "a");
  assert.equal(await owner.check(), false);
  owner.seek();
  await broker.clock.advance(10);
  const renewals = () => broker.calls.filter((call) => call.startsWith("renew")).length;
  assert.deepEqual(await Promise.all([owner.check(), owner.check()]), [true, true]);
  assert.equal(renewals(), 1, "those who ask meanwhile share the answer");
  broker.away = true;
  assert.equal(await owner.check(), undefined);
  broker.away = false;
  broker.steal(0, "b", 2_000);
  assert.equal(await owner.check(), false);
  assert.match(told.at(-1)!, /^lost 1/);
});

test("PartitionOwner drops an answer that comes after the lease ended", async () => {
  const broker = new FakeBroker(new VirtualClock());
  const { owner, told } = ownerOf(broker, "a");
  owner.seek();
  await broker.clock.flush();
  // Renewals are carried out but their answers take longer than the lease: what we know of is what counts.
  broker.delayMs = 16_000;
  await broker.clock.advance(15_000);
  assert.equal(owner.epoch, undefined);
  assert.deepEqual(told, ["owned 1 until 15000", "lost 1: the lease ran out"]);
});

test("PartitionOwner notices by itself that it slept past its lease", async () => {
  const clock = new VirtualClock();
  let now = 0;
  const sleeper = Object.assign(Object.create(clock) as VirtualClock, { monotonic: () => now });
  sleeper.timer = (ms, run) => clock.timer(ms, run);
  sleeper.random = () => 0.5;
  const broker = new FakeBroker(clock);
  const told: string[] = [];
  const owner = new PartitionOwner(sleeper, broker.store("a"), 0, TIMES, {
    owned: () => told.push("owned"),
    renewed: () => {},
    lost: (_, _epoch, why) => told.push(why),
    tried: () => {},
  });
  owner.seek();
  await clock.flush();
  now = 20_000; // No timer fired meanwhile.
  assert.equal(owner.epoch, undefined);
  assert.deepEqual(told, ["owned", "the lease ran out"]);
});

test("PartitionOwner stopped while it asks gives back what it is given", async () => {
  const broker = new FakeBroker(new VirtualClock());
  broker.delayMs = 50;
  const { owner, told } = ownerOf(broker, "a");
  owner.seek();
  await broker.clock.flush();
  void owner.stop("done");
  await broker.clock.advance(200);
  assert.deepEqual(told, []);
  assert.equal(broker.owner(0), undefined);
  assert.equal(broker.clock.armed, 0);
});

test("PartitionOwner that gives back rests, so that another can take it", async () => {
  const broker = new FakeBroker(new VirtualClock());
  const first = ownerOf(broker, "a");
  const second = ownerOf(broker, "b");
  first.owner.seek();
  second.owner.seek();
  await broker.clock.advance(1_000);
  first.owner.renounce("given back", 800);
  await broker.clock.advance(1_000);
  assert.equal(broker.owner(0), "b");
  assert.equal(first.owner.state, "seeking");
});

for (const how of ["renounced", "stopped"] as const) {
  test(`PartitionOwner: a stop waits for the surrender of a partition that was ${how} just before`, async () => {
    const broker = new FakeBroker(new VirtualClock());
    const { owner } = ownerOf(broker, "a");
    owner.seek();
    await broker.clock.advance(1_000);
    broker.delayMs = 50;
    if (how === "renounced") owner.renounce("given back", 800);
    else void owner.stop("moved");
    let ended = false;
    const stopped = owner.stop("done").then(() => ended = true);
    await broker.clock.advance(49);
    assert.equal(ended, false, "the connection would be closed before the answer");
    await broker.clock.advance(1);
    await stopped;
    assert.equal(broker.owner(0), undefined);
    assert.equal(broker.clock.armed, 0);
  });
}

test("PartitionOwner leaves no timer behind", async () => {
  const broker = new FakeBroker(new VirtualClock());
  const { owner } = ownerOf(broker, "a");
  owner.seek();
  await broker.clock.advance(7_000);
  await owner.stop("done");
  assert.equal(broker.clock.armed, 0);
});

test("shareOf divides all partitions among the members, evenly, and alike for each of them", () => {
  for (const count of [1, 2, 3, 5, 8]) {
    const members = Array.from({ length: count }, (_, n) => `host-${n}`);
    const shares = members.map((self) => shareOf(self, [...members].reverse(), 16));
    const all = shares.flatMap((share) => [...share]).sort((a, b) => a - b);
    assert.deepEqual(all, Array.from({ length: 16 }, (_, n) => n));
    for (const share of shares) assert.ok(share.size <= Math.ceil(16 / count));
  }
});

test("shareOf counts the member itself though the list does not have it yet", () => {
  assert.equal(shareOf("new", [], 4).size, 4);
  assert.ok(shareOf("new", ["old"], 4).size === 2);
});

test("shareOf moves few partitions when a member joins", () => {
  const members = ["a", "b", "c", "d"];
  const before = new Map(members.flatMap((self) => [...shareOf(self, members, 64)].map((p) => [p, self] as const)));
  const grown = [...members, "e"];
  const after = new Map(grown.flatMap((self) => [...shareOf(self, grown, 64)].map((p) => [p, self] as const)));
  const moved = [...after].filter(([partition, self]) => before.get(partition) !== self).length;
  assert.ok(moved <= 32, `${moved} of 64 moved`);
});

test("Ownership of one partition says standby once, and active when it gets it", async () => {
  const broker = new FakeBroker(new VirtualClock());
  broker.steal(0, "other", 3_000);
  const { ownership, told } = ownershipOf(broker, "a", 1);
  ownership.start();
  await ownership.decided();
  assert.deepEqual(told, ["standby"]);
  await broker.clock.advance(4_000);
  assert.deepEqual(told, ["standby", "owned 0", "active"]);
  assert.ok(!broker.calls.some((call) => call.startsWith("beat")));
});

test("Ownership spreads partitions over members that come and go, draining before it lets go", async () => {
  const broker = new FakeBroker(new VirtualClock());
  const first = ownershipOf(broker, "a", 4);
  first.ownership.start();
  await first.ownership.decided();
  assert.deepEqual(first.ownership.owned, [0, 1, 2, 3]);
  const second = ownershipOf(broker, "b", 4);
  second.ownership.start();
  await broker.clock.advance(2_500);
  const surplus = first.told.filter((line) => line.startsWith("surplus")).map((line) => Number(line.slice(8)));
  assert.equal(surplus.length, 2);
  assert.deepEqual(second.ownership.owned, [], "what is not drained is not taken");
  for (const partition of surplus) first.ownership.release(partition);
  await broker.clock.advance(1_500);
  assert.deepEqual(second.ownership.owned, surplus);
  assert.equal(first.ownership.owned.length, 2);
  void first.ownership.stop("done");
  await broker.clock.advance(2_500);
  assert.deepEqual(second.ownership.owned, [0, 1, 2, 3]);
});

test("Ownership takes over what a dead member owned within the lease and a second, what one left within half a second", async () => {
  for (const deadAfterMs of [6_000, 6_300, 6_700, 9_990]) {
    const broker = new FakeBroker(new VirtualClock());
    const first = ownershipOf(broker, "a", 4);
    const second = ownershipOf(broker, "b", 4);
    first.ownership.start();
    second.ownership.start();
    await broker.clock.advance(1_000);
    for (const at of [0, 1, 2, 3]) first.ownership.release(at);
    await broker.clock.advance(deadAfterMs - 1_000);
    assert.equal(second.ownership.owned.length, 2);
    const frozen = broker.freeze("a");
    await broker.clock.advance(16_000);
    assert.deepEqual(second.ownership.owned, [0, 1, 2, 3], `dead after ${deadAfterMs} ms`);
    await first.ownership.stop("it never came back");
    frozen.end();
    broker.members.delete("a");
    const third = ownershipOf(broker, "c", 4);
    third.ownership.start();
    await broker.clock.advance(1_000);
    void second.ownership.stop("done");
    await broker.clock.advance(510);
    assert.deepEqual(third.ownership.owned, [0, 1, 2, 3]);
    await third.ownership.stop("done");
  }
});

test("Ownership keeps a surplus partition that becomes its own again before it was drained", async () => {
  const broker = new FakeBroker(new VirtualClock());
  const first = ownershipOf(broker, "a", 2);
  first.ownership.start();
  await first.ownership.decided();
  broker.members.set("ghost", broker.clock.monotonic() + 2_000);
  await broker.clock.advance(1_500);
  const at = Number(first.told.find((line) => line.startsWith("surplus"))!.slice(8));
  assert.ok(first.ownership.isSurplus(at));
  broker.members.delete("ghost");
  await broker.clock.advance(1_500);
  assert.ok(!first.ownership.isSurplus(at));
  first.ownership.release(at);
  await broker.clock.flush();
  assert.deepEqual(first.ownership.owned, [0, 1]);
});

test("Ownership is decided also when the broker is away", async () => {
  const broker = new FakeBroker(new VirtualClock());
  broker.away = true;
  for (const partitions of [1, 4]) {
    const { ownership, told } = ownershipOf(broker, "a", partitions);
    ownership.start();
    await ownership.decided();
    // A failure is no verdict: this member is not said to stand by.
    assert.deepEqual(told, partitions === 1 ? ["failed 0"] : []);
    await ownership.stop("done");
  }
  assert.equal(broker.clock.armed, 0);
});

test("Ownership is decided when another member takes over what was still asked for", async () => {
  const broker = new FakeBroker(new VirtualClock());
  const mine = shareOf("a", ["a", "b"], 2);
  const other = mine.has(0) ? 1 : 0;
  const answer = gate();
  broker.held = { call: `acquire a ${other}`, until: answer.promise };
  const { ownership } = ownershipOf(broker, "a", 2);
  let decided = false;
  void ownership.decided().then(() => decided = true);
  ownership.start();
  await broker.clock.flush();
  assert.deepEqual([ownership.owned, decided], [[...mine], false]);
  broker.members.set("b", broker.clock.monotonic());
  await broker.clock.advance(1_000);
  assert.deepEqual([ownership.owned, decided], [[...mine], true], "it reads what it owns");
  answer.open();
  await ownership.stop("done");
  assert.equal(broker.clock.armed, 0);
});
