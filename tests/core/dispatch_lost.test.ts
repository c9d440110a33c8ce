import assert from "node:assert/strict";
import type { Envelope } from "../../core/envelope.ts";
import { test } from "../support/test.ts";
import { gate, Rig } from "./dispatch_rig.ts";

test("a settle of a lost delivery is stale and leaves the new one alone (COR-12)", async () => {
  const gates = [gate(), gate()];
  let runs = 0;
  const rig = new Rig({ routes: { "n.step": () => gates[runs++]!.promise } });
  rig.deliver("n.step", "s");
  const run = rig.run();
  await rig.clock.flush();
  const [first] = rig.broker.deliveries;
  rig.broker.lose(first!);
  await rig.clock.flush();
  assert.equal(await first!.ack(), "stale");
  assert.equal(rig.broker.unsettled("t"), 1);
  gates[0]!.open();
  gates[1]!.open();
  await rig.untilEnded(2);
  await rig.finish(run);
  assert.deepEqual(rig.told, ["lost", "processed"]);
  assert.deepEqual(rig.broker.settled.map(({ kind, attempt }) => [kind, attempt]), [["ack", 1]]);
});

test("a lost delivery's handler is told by its signal, and nothing it does is stored", async () => {
  const open = gate();
  let signal: AbortSignal | undefined;
  let runs = 0;
  const rig = new Rig({
    routes: {
      "n.step": async (_, ctx) => {
        signal ??= ctx.signal;
        ctx.publish("out", { type: "n.out", data: ++runs });
        await open.promise;
      },
    },
  });
  rig.deliver("n.step", "s");
  const run = rig.run();
  await rig.clock.flush();
  assert.equal(signal!.aborted, false);
  rig.broker.lose(rig.broker.deliveries[0]!);
  assert.equal(signal!.aborted, true);
  open.open();
  await rig.untilEnded(2);
  await rig.finish(run);
  assert.deepEqual(rig.told, ["lost", "processed"]);
  assert.deepEqual(rig.broker.published.map(({ envelope }) => envelope.data), [2]);
});

test("a redelivered event waits behind its old handler, and no longer than the handler's time limit", async () => {
  let running = 0;
  let peak = 0;
  let runs = 0;
  const rig = new Rig({
    handlerTimeoutMs: 10_000,
    routes: {
      "n.step": async () => {
        peak = Math.max(peak, ++running);
        if (++runs === 1) await new Promise(() => {});
        running--;
      },
    },
  });
  rig.deliver("n.step", "s");
  const run = rig.run();
  await rig.clock.advance(2_000);
  rig.broker.lose(rig.broker.deliveries[0]!);
  await rig.clock.advance(7_999);
  assert.equal(runs, 1);
  await rig.clock.advance(1);
  assert.equal(runs, 2);
  await rig.untilEnded(2);
  await rig.finish(run);
  assert.deepEqual(rig.told, ["lost", "processed"]);
});

test("an event without a subject does not run beside its own redelivery either", async () => {
  const gates = [gate(), gate()];
  let runs = 0;
  const rig = new Rig({ routes: { "n.step": () => gates[runs++]!.promise } });
  rig.deliver("n.step");
  const run = rig.run();
  await rig.clock.flush();
  rig.broker.lose(rig.broker.deliveries[0]!);
  await rig.clock.flush();
  assert.equal(rig.broker.deliveries.length, 2);
  assert.equal(runs, 1);
  gates[0]!.open();
  gates[1]!.open();
  await rig.untilEnded(2);
  await rig.finish(run);
  assert.deepEqual(rig.told, ["lost", "processed"]);
});

test("deliveries that are lost while they wait are forgotten unseen, and come again in order", async () => {
  const open = gate();
  const seen: unknown[] = [];
  const rig = new Rig({
    routes: {
      "n.step": async (envelope: Envelope) => {
        if (seen.length === 0) await open.promise;
        seen.push(envelope.data);
      },
    },
  });
  for (let n = 0; n < 5; n++) rig.deliver("n.step", "s", { data: n });
  const run = rig.run();
  await rig.clock.flush();
  for (const delivery of rig.broker.deliveries.slice(1, 5)) rig.broker.lose(delivery);
  open.open();
  await rig.untilEnded(9);
  const report = await rig.finish(run);
  assert.deepEqual(seen, [0, 1, 2, 3, 4]);
  assert.equal(report.lost, 4);
  assert.equal(report.processed, 5);
});

test("a delivery that is lost while it waits for its next attempt is not tried again", async () => {
  const attempts: number[] = [];
  const rig = new Rig({
    routes: {
      "n.step": (_, ctx) => {
        attempts.push(ctx.attempt);
        if (attempts.length === 1) throw new Error("once");
      },
    },
  });
  rig.deliver("n.step", "s");
  const run = rig.run();
  await rig.clock.flush();
  rig.broker.lose(rig.broker.deliveries[0]!);
  await rig.clock.flush();
  assert.deepEqual(rig.told, ["retry", "lost", "processed"], "without sitting out the wait");
  await rig.finish(run);
  assert.equal(attempts.length, 2);
});

test("a subject that keeps losing its deliveries does not pile them up", async () => {
  const rig = new Rig({ fake: { prefetch: 2_000 }, routes: { "n.step": () => new Promise(() => {}) } });
  for (let n = 0; n < 300; n++) rig.deliver("n.step", "s", { data: n });
  const run = rig.run();
  await rig.clock.flush();
  for (let round = 0; round < 20; round++) {
    for (const delivery of rig.broker.deliveries.slice(-299)) rig.broker.lose(delivery);
    await rig.clock.flush();
  }
  const { waiting } = rig.app.health().dispatcher;
  assert.ok(waiting < 1_100, `${waiting} wait`);
  await rig.finish(run);
});
