import assert from "node:assert/strict";
import type { Envelope } from "../../core/envelope.ts";
import { BrokerUnavailableError, StoreConflictError } from "../../core/errors.ts";
import { test } from "../support/test.ts";
import { VirtualClock } from "../support/virtual_clock.ts";
import { Rig } from "./dispatch_rig.ts";
import { down, FaultyStore } from "./faulty_store.ts";

function faulty(): { clock: VirtualClock; store: FaultyStore } {
  const clock = new VirtualClock();
  return { clock, store: new FaultyStore({ clock }) };
}

test("an outage of the store costs no attempt and loses nothing, however long it is", async () => {
  const { clock, store } = faulty();
  const seen: string[] = [];
  const rig = new Rig({
    clock,
    store,
    maxAttempts: 1,
    routes: { "n.step": (envelope: Envelope) => void seen.push(String(envelope.data)) },
  });
  for (const name of ["A1", "A2", "B1"]) rig.deliver("n.step", name[0], { data: name });
  store.beforeWork = down;
  const run = rig.run();
  await clock.advance(600_000);
  assert.deepEqual(rig.ended, []);
  assert.equal(seen.length, 0);
  store.beforeWork = () => undefined;
  await rig.untilEnded(3);
  const report = await rig.finish(run);
  assert.equal(report.processed, 3);
  assert.deepEqual(report.deadLettered, {});
  assert.deepEqual(seen.filter((name) => name.startsWith("A")), ["A1", "A2"]);
  assert.ok(report.unavailable > 0);
});

test("an outage at the commit runs the handler again and counts nothing", async () => {
  const { clock, store } = faulty();
  let runs = 0;
  const rig = new Rig({ clock, store, maxAttempts: 1, routes: { "n.step": () => void runs++ } });
  let faults = 3;
  store.beforeCommit = () => faults-- > 0 ? down() : undefined;
  rig.deliver("n.step", "s");
  const report = await rig.settle(1);
  assert.equal(runs, 4);
  assert.deepEqual(rig.told, ["unavailable", "unavailable", "unavailable", "processed"]);
  assert.equal(report.unavailable, 3);
});

test("after 5 failures in a row no unit is begun but single probes, until one succeeds", async () => {
  const { clock, store } = faulty();
  const rig = new Rig({ clock, store, maxInFlight: 8, routes: { "n.step": () => {} } });
  for (let n = 0; n < 8; n++) rig.deliver("n.step", `s${n}`);
  store.beforeWork = down;
  const run = rig.run();
  await clock.flush();
  assert.equal(rig.app.health().dispatcher.store, "open");
  const before = store.units;
  await clock.advance(60_000);
  const probes = store.units - before;
  assert.ok(probes >= 2 && probes <= 12, `${probes} units in a minute`);
  store.beforeWork = () => undefined;
  await rig.untilEnded(8);
  assert.equal(rig.app.health().dispatcher.store, "closed");
  await rig.finish(run);
  assert.equal(rig.logs.filter(({ message }) => message.startsWith("the store is down")).length, 1);
  assert.equal(rig.logs.filter(({ message }) => message.startsWith("the store answers again")).length, 1);
});

test("lanes go on at once when the store is back, and do not sit out their waits", async () => {
  const { clock, store } = faulty();
  clock.randomness = 1;
  const rig = new Rig({ clock, store, retry: { baseMs: 30_000 }, routes: { "n.step": () => {} } });
  for (let n = 0; n < 6; n++) rig.deliver("n.step", `s${n}`);
  store.beforeWork = down;
  const run = rig.run();
  await clock.flush();
  assert.equal(rig.told.length, 5, "the sixth finds the circuit open and becomes the probe");
  store.beforeWork = () => undefined;
  await rig.untilEnded(6);
  assert.ok(clock.monotonic() < 1_000, `after ${clock.monotonic()} ms`);
  await rig.finish(run);
});

test("a handler's own transient error pauses its subject alone and counts nothing", async () => {
  let outage = 7;
  const rig = new Rig({
    maxAttempts: 2,
    routes: {
      "n.call": () => {
        if (outage-- > 0) throw new BrokerUnavailableError("downstream is away");
      },
      "n.step": () => {},
    },
  });
  rig.deliver("n.call", "A");
  for (let n = 0; n < 5; n++) rig.deliver("n.step", `B${n}`);
  const run = rig.run();
  await rig.untilEnded(5);
  assert.equal(rig.clock.monotonic(), 0);
  assert.equal(rig.app.health().dispatcher.store, "closed");
  await rig.untilEnded(6);
  const report = await rig.finish(run);
  assert.equal(report.processed, 6);
  assert.equal(report.unavailable, 7);
});

test("a conflict that the store could not solve is tried again and not counted", async () => {
  const { clock, store } = faulty();
  let faults = 3;
  store.beforeWork = () => faults-- > 0 ? new StoreConflictError("others were first") : undefined;
  const rig = new Rig({ clock, store, maxAttempts: 1, routes: { "n.step": () => {} } });
  rig.deliver("n.step", "s");
  await rig.settle(1);
  assert.deepEqual(rig.told, ["retry", "retry", "retry", "processed"]);
  assert.equal(rig.app.health().dispatcher.store, "closed");
});

test("an event is acked only once its dead letter is stored, and stored once (COR-04)", async () => {
  const { clock, store } = faulty();
  const gaps: number[] = [];
  let last = 0;
  let faults = 4;
  store.beforeCommit = (letters) => {
    if (letters.length === 0) return undefined;
    if (faults-- <= 0) return undefined;
    gaps.push(clock.monotonic() - last);
    last = clock.monotonic();
    return down();
  };
  let runs = 0;
  const rig = new Rig({
    clock,
    store,
    maxAttempts: 1,
    routes: {
      "n.step": () => {
        runs++;
        throw new Error("never");
      },
    },
  });
  const sent = rig.deliver("n.step", "s");
  const run = rig.run();
  await clock.advanceUntil(() => faults === 0);
  assert.deepEqual(rig.broker.acked, []);
  await rig.untilEnded(1);
  const report = await rig.finish(run);
  assert.deepEqual(rig.broker.acked, [sent.id]);
  assert.equal(runs, 1, "the handler does not run again for a record that could not be written");
  assert.deepEqual(gaps, [0, 100, 200, 400]);
  assert.deepEqual(report.deadLettered, { max_attempts: 1 });
  const letters = await store.deadLetters.list();
  assert.equal(letters.length, 1);
  assert.equal(letters[0]!.failures, 1);
  const receipt = await store.inbox.get({ consumer: "test", source: sent.source, id: sent.id });
  assert.equal(receipt!.deadLetter, letters[0]!.id);
});

test("a dead letter whose commit got no answer is not stored twice (COR-04)", async () => {
  const { clock, store } = faulty();
  let faults = 3;
  store.afterCommit = (letters) => letters.length > 0 && faults-- > 0 ? down() : undefined;
  const rig = new Rig({
    clock,
    store,
    maxAttempts: 1,
    routes: {
      "n.step": () => {
        throw new Error("never");
      },
    },
  });
  rig.deliver("n.step", "s");
  const report = await rig.settle(1);
  assert.deepEqual(report.deadLettered, { max_attempts: 1 });
  assert.equal((await store.deadLetters.list()).length, 1);
});

test("a unit whose commit got no answer is a duplicate at the next attempt", async () => {
  const { clock, store } = faulty();
  let faults = 1;
  store.afterCommit = () => faults-- > 0 ? down() : undefined;
  let runs = 0;
  const rig = new Rig({ clock, store, routes: { "n.step": () => void runs++ } });
  rig.deliver("n.step", "s");
  await rig.settle(1);
  assert.equal(runs, 1);
  assert.deepEqual(rig.told, ["unavailable", "duplicate"]);
});

test("a failure that cannot be counted is counted later, and the handler waits for it", async () => {
  const { clock, store } = faulty();
  let faults = 3;
  store.beforeBump = () => faults-- > 0 ? down() : undefined;
  let runs = 0;
  const rig = new Rig({
    clock,
    store,
    routes: {
      "n.step": () => {
        if (++runs === 1) throw new Error("once");
      },
    },
  });
  const sent = rig.deliver("n.step", "s");
  await rig.settle(1);
  assert.equal(runs, 2);
  assert.deepEqual(rig.told, ["unavailable", "unavailable", "unavailable", "retry", "processed"]);
  assert.equal(await store.failures.get({ consumer: "test", source: sent.source, id: sent.id }), undefined);
});

test("a store that fails for good never gets an event acked", async () => {
  const { clock, store } = faulty();
  const rig = new Rig({ clock, store, drainMs: 1_000, maxAttempts: 2, routes: { "n.step": () => {} } });
  const sent = rig.deliver("n.step", "s");
  const run = rig.run();
  store.beforeWork = () => new TypeError("a bug in the store");
  await clock.advance(120_000);
  assert.deepEqual(rig.broker.acked, []);
  const report = await rig.finish(run);
  assert.equal(report.released, 1);
  assert.deepEqual(rig.broker.settled.map(({ kind, id }) => [kind, id]), [["retry", sent.id]]);
});
