import assert from "node:assert/strict";
import type { Envelope } from "../../core/envelope.ts";
import { test } from "../support/test.ts";
import { gate, Rig } from "./dispatch_rig.ts";

test("InboundDispatcher keeps the order of each subject, once each, over 1,000 deliveries with 100 duplicates", async () => {
  const seen = new Map<string, number[]>();
  let running = 0;
  let peak = 0;
  const perSubject = new Map<string, number>();
  let subjectPeak = 0;
  const rig = new Rig({
    maxInFlight: 3,
    routes: {
      "n.counted": async (envelope: Envelope) => {
        const subject = envelope.subject!;
        peak = Math.max(peak, ++running);
        const here = (perSubject.get(subject) ?? 0) + 1;
        perSubject.set(subject, here);
        subjectPeak = Math.max(subjectPeak, here);
        await new Promise<void>((resolve) => rig.clock.turn(resolve));
        seen.set(subject, [...(seen.get(subject) ?? []), envelope.data as number]);
        perSubject.set(subject, here - 1);
        running--;
      },
    },
  });
  const delivered = new Map<string, number[]>();
  for (let n = 0; n < 900; n++) {
    const subject = `s${n % 10}`;
    const envelope = rig.deliver("n.counted", subject, { data: n });
    delivered.set(subject, [...(delivered.get(subject) ?? []), n]);
    if (n % 9 === 0) rig.broker.deliver("t", envelope);
  }
  const report = await rig.settle(1_000);
  assert.equal(report.processed, 900);
  assert.equal(report.duplicates, 100);
  assert.deepEqual(seen, delivered);
  assert.equal(peak, 3);
  assert.equal(subjectPeak, 1);
  assert.equal(rig.broker.acked.length, 1_000);
});

test("a failing event is tried again before later ones of its subject, and others are not delayed (RED-12)", async () => {
  const seen: string[] = [];
  const rig = new Rig({
    routes: {
      "n.step": (envelope: Envelope, ctx) => {
        seen.push(`${envelope.data}#${ctx.attempt}@${rig.clock.monotonic()}`);
        if (envelope.data === "A1" && ctx.attempt < 2) throw new Error("not yet");
      },
    },
  });
  for (const name of ["A1", "A2", "B1", "A3", "B2"]) rig.deliver("n.step", name[0]!, { data: name });
  await rig.settle(5);
  assert.deepEqual(seen, ["A1#0@0", "B1#0@0", "B2#0@0", "A1#1@100", "A1#2@300", "A2#0@300", "A3#0@300"]);
});

test("an event that always fails is given up, and the subject goes on in order (COR-15)", async () => {
  const seen: string[] = [];
  const rig = new Rig({
    maxAttempts: 3,
    routes: {
      "n.step": (envelope: Envelope, ctx) => {
        seen.push(`${envelope.data}#${ctx.attempt}`);
        if (envelope.data === "A1") throw new Error("never");
      },
    },
  });
  for (const name of ["A1", "A2", "A3", "B1", "B2", "B3"]) rig.deliver("n.step", name[0]!, { data: name });
  const report = await rig.settle(6);
  assert.deepEqual(seen.filter((step) => step.startsWith("A")), ["A1#0", "A1#1", "A1#2", "A2#0", "A3#0"]);
  assert.deepEqual(seen.filter((step) => step.startsWith("B")), ["B1#0", "B2#0", "B3#0"]);
  assert.deepEqual(report.deadLettered, { max_attempts: 1 });
  assert.equal(report.retried, 2);
  assert.equal(rig.broker.acked.length, 6);
  const letters = await rig.store.deadLetters.list();
  assert.deepEqual(letters.map(({ failures, reason }) => ({ failures, reason })), [{
    failures: 3,
    reason: "max_attempts",
  }]);
});

test("subjects that wait for another attempt hold no slot", async () => {
  const seen: string[] = [];
  const rig = new Rig({
    maxInFlight: 2,
    routes: {
      "n.step": (envelope: Envelope) => {
        seen.push(envelope.subject!);
        if (envelope.subject!.startsWith("bad")) throw new Error("no");
      },
    },
  });
  for (const subject of ["bad1", "bad2", "bad3", "good"]) rig.deliver("n.step", subject);
  const run = rig.run();
  await rig.clock.flush();
  assert.ok(seen.includes("good"), "before any time has passed");
  await rig.untilEnded(4);
  await rig.finish(run);
});

test("a slot lasts one event, so that a long subject lets the others have their turn", async () => {
  const seen: string[] = [];
  const open = gate();
  const rig = new Rig({
    maxInFlight: 1,
    routes: {
      "n.step": async (envelope: Envelope) => {
        await open.promise;
        seen.push(String(envelope.data));
      },
    },
  });
  for (const name of ["A1", "A2", "A3"]) rig.deliver("n.step", "A", { data: name });
  for (const name of ["B1", "B2"]) rig.deliver("n.step", "B", { data: name }, "u");
  rig.deliver("n.step", "C", { data: "C1" });
  const run = rig.run("t", "u");
  await rig.clock.flush();
  open.open();
  await rig.untilEnded(6);
  await rig.finish(run);
  assert.deepEqual(seen.filter((step) => step.startsWith("A")), ["A1", "A2", "A3"]);
  assert.ok(seen.indexOf("B1") < seen.indexOf("A2"), seen.join());
  assert.ok(seen.indexOf("C1") < seen.indexOf("A2"), seen.join());
  assert.ok(seen.indexOf("A2") < seen.indexOf("B2"), seen.join());
});

test("events without a subject have no order among them", async () => {
  const gates = [gate(), gate()];
  const seen: number[] = [];
  const rig = new Rig({
    routes: {
      "n.step": async (envelope: Envelope) => {
        await gates[envelope.data as number]!.promise;
        seen.push(envelope.data as number);
      },
    },
  });
  rig.deliver("n.step", undefined, { data: 0 });
  rig.deliver("n.step", undefined, { data: 1 });
  const run = rig.run();
  await rig.clock.flush();
  gates[1]!.open();
  await rig.untilEnded(1);
  gates[0]!.open();
  await rig.untilEnded(2);
  await rig.finish(run);
  assert.deepEqual(seen, [1, 0]);
});

test("the same subject on two topics is two lanes", async () => {
  const first = gate();
  const rig = new Rig({
    routes: { "n.step": (envelope: Envelope) => envelope.data === "slow" ? first.promise : undefined },
  });
  rig.deliver("n.step", "s", { data: "slow" });
  rig.deliver("n.step", "s", { data: "fast" }, "u");
  const run = rig.run("t", "u");
  await rig.untilEnded(1);
  assert.equal(rig.ended[0]!.topic, "u");
  first.open();
  await rig.untilEnded(2);
  await rig.finish(run);
});

test("one subject never takes more of the broker than the prefetch, and goes on as it settles", async () => {
  const open = gate();
  const rig = new Rig({ fake: { prefetch: 5 }, routes: { "n.step": () => open.promise } });
  for (let n = 0; n < 20; n++) rig.deliver("n.step", "s", { data: n });
  const run = rig.run();
  await rig.clock.flush();
  assert.equal(rig.broker.deliveries.length, 5);
  open.open();
  await rig.untilEnded(20);
  const report = await rig.finish(run);
  assert.equal(report.processed, 20);
});
