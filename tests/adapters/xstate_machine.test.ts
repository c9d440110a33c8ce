import assert from "node:assert/strict";
import process from "node:process";
import { assign, createMachine, emit, fromCallback, fromPromise, fromTransition, raise, setup } from "xstate";
import { byEventName, machine, type MachineOptions } from "../../adapters/xstate/mod.ts";
import type { Envelope } from "../../core/envelope.ts";
import { InvalidOptionError } from "../../core/errors.ts";
import { MemoryStore } from "../../core/store/memory_store.ts";
import { Rig, type RigOptions } from "../core/dispatch_rig.ts";
import { test } from "../support/test.ts";
import { VirtualClock } from "../support/virtual_clock.ts";

interface Count {
  readonly n: number;
}

const increment = assign({ n: ({ context }: { context: Count }) => context.n + 1 });

function counter(extra: Record<string, unknown> = {}) {
  return createMachine({
    id: "counter",
    context: { n: 0 } satisfies Count,
    initial: "open",
    states: {
      open: { on: { "c.inc": { actions: increment }, "c.close": "closed", ...extra } },
      closed: { type: "final" },
    },
  } as never);
}

function rigOf(m: ReturnType<typeof counter>, options: MachineOptions = {}, rest: Partial<RigOptions> = {}): Rig {
  return new Rig({ ...rest, routes: { "c.*": machine(m as never, options) } });
}

async function stateOf(rig: { store: Rig["store"] }, key: string): Promise<Record<string, unknown> | undefined> {
  const snapshot = await rig.store.snapshots.get(key);
  return snapshot === undefined ? undefined : JSON.parse(snapshot.value).state;
}

test("a machine has one stored instance a subject, which goes on over dispatchers, active (XST-03)", async () => {
  const store = new MemoryStore();
  for (let round = 1; round <= 2; round++) {
    const rig = rigOf(counter(), {}, { store });
    rig.deliver("c.inc", "a");
    rig.deliver("c.inc", "b");
    rig.deliver("c.inc", "a");
    await rig.settle(3);
    const a = await stateOf(rig, "counter/a");
    assert.equal(a!["status"], "active");
    assert.deepEqual(a!["context"], { n: 2 * round });
    assert.deepEqual((await stateOf(rig, "counter/b"))!["context"], { n: round });
  }
});

test("an event without a subject is invalid for a machine", async () => {
  const rig = rigOf(counter());
  rig.deliver("c.inc");
  await rig.settle(1);
  assert.deepEqual(rig.told, ["dead_lettered:invalid"]);
});

test("machines and subjects whose names run together have keys of their own", async () => {
  const rig = new Rig({
    routes: {
      "one": machine(createMachine({ id: "a", on: { one: {} } })),
      "two": machine(createMachine({ id: "a/b", on: { two: {} } })),
    },
  });
  rig.deliver("one", "b/c");
  rig.deliver("two", "c");
  await rig.settle(2);
  assert.notEqual(await rig.store.snapshots.get("a/b/c"), undefined);
  assert.notEqual(await rig.store.snapshots.get("a%2Fb/c"), undefined);
});

test("restoring runs no entry action again; each transition's actions run once (XST-05)", async () => {
  const ran: string[] = [];
  const log = (name: string) => () => void ran.push(name);
  const m = createMachine({
    id: "c",
    entry: log("root in"),
    initial: "x",
    states: {
      x: { entry: log("x in"), exit: log("x out"), on: { "c.next": { target: "y", actions: log("x to y") } } },
      y: { entry: log("y in"), on: { "c.stay": { actions: log("stay") } } },
    },
  });
  const rig = rigOf(m as never);
  for (const type of ["c.other", "c.next", "c.stay", "c.stay", "c.other"]) rig.deliver(type, "s");
  await rig.settle(5);
  assert.deepEqual(ran, ["root in", "x in", "x out", "x to y", "y in", "stay", "stay"]);
});

test("what is stored is the state after the whole run of an event, raised events and always steps included (XST-07)", async () => {
  const m = createMachine({
    id: "c",
    context: { n: 0 },
    initial: "idle",
    states: {
      idle: { on: { "c.go": { target: "one", actions: [raise({ type: "more" }), raise({ type: "more" })] } } },
      one: { on: { more: { target: "two", actions: increment } } },
      two: { on: { more: { target: "three", actions: increment } } },
      three: { always: { target: "four", actions: increment } },
      four: { on: { "c.go": "idle" } },
    },
  } as never);
  const rig = rigOf(m as never);
  const values: unknown[] = [];
  for (let n = 0; n < 3; n++) {
    rig.deliver("c.go", "s");
    await rig.settle(n + 1);
    values.push((await stateOf(rig, "c/s"))!["value"]);
  }
  assert.deepEqual(values, ["four", "idle", "four"]);
  assert.equal((await rig.store.snapshots.get("c/s"))!.version, 3);
});

test("100 events for one instance over two dispatchers count to 100 (XST-08)", async () => {
  const store = new MemoryStore();
  const slow = setup({ actors: { wait: fromPromise(() => new Promise<void>((resolve) => setTimeout(resolve, 0))) } })
    .createMachine({
      id: "counter",
      context: { n: 0 },
      initial: "open",
      states: {
        open: { on: { "c.inc": "busy" } },
        busy: { invoke: { src: "wait", onDone: { target: "open", actions: increment as never } } },
      },
    });
  const clock = new VirtualClock();
  const rigs = [rigOf(slow as never, {}, { store, clock }), rigOf(slow as never, {}, { store, clock })];
  for (let n = 0; n < 100; n++) rigs[n % 2]!.deliver("c.inc", "one");
  const runs = rigs.map((rig) => rig.app.runOnce(["t"]));
  while (rigs[0]!.ended.length + rigs[1]!.ended.length < 100) {
    await clock.advance(100);
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
  await Promise.all(runs);
  assert.deepEqual((await stateOf({ store }, "counter/one"))!["context"], { n: 100 });
  assert.equal(rigs[0]!.ended.length + rigs[1]!.ended.length, 100);
  for (const rig of rigs) assert.ok(rig.ended.every(({ outcome }) => outcome === "processed"));
});

for (
  const [where, machineOf] of [
    ["a transition's action", (fail: () => void) => counter({ "c.bad": { actions: [increment, fail] } })],
    ["a guard", (fail: () => void) => counter({ "c.bad": { guard: () => (fail(), true), target: "closed" } })],
    ["an assign", (fail: () => void) => counter({ "c.bad": { actions: assign({ n: () => (fail(), 1) } as never) } })],
  ] as const
) {
  test(`a throw in ${where} fails the event, stores nothing, and the next attempt starts from before (XST-09)`, async () => {
    const uncaught: unknown[] = [];
    const note = (error: unknown) => void uncaught.push(error);
    process.on("uncaughtException", note);
    try {
      let fails = 1;
      const rig = rigOf(machineOf(() => {
        if (fails-- > 0) throw new Error("boom");
      }));
      rig.deliver("c.inc", "s");
      rig.deliver("c.bad", "s");
      const run = rig.run();
      await rig.clock.flush();
      assert.deepEqual((await stateOf(rig, "counter/s"))!["context"], { n: 1 });
      assert.equal((await stateOf(rig, "counter/s"))!["status"], "active");
      await rig.untilEnded(2);
      await rig.finish(run);
      assert.deepEqual(rig.told, ["processed", "retry", "processed"]);
      assert.equal((await rig.store.snapshots.get("counter/s"))!.version, 2);
      await new Promise((resolve) => setTimeout(resolve, 5));
      assert.deepEqual(uncaught, []);
    } finally {
      process.off("uncaughtException", note);
    }
  });
}

test("a machine that fails leaves no child running, however deep (XST-09)", async () => {
  const alive: string[] = [];
  const child = (name: string) =>
    fromCallback(() => {
      alive.push(name);
      return () => void alive.splice(alive.indexOf(name), 1);
    });
  const nested = setup({ actors: { inner: child("inner") } }).createMachine({ id: "nested", invoke: { src: "inner" } });
  const m = setup({ actors: { tick: child("tick"), nested } }).createMachine({
    id: "c",
    invoke: [{ src: "tick" }, { src: "nested" }],
    on: {
      "c.bad": {
        actions: () => {
          assert.deepEqual(alive.toSorted(), ["inner", "tick"]);
          throw new Error("boom");
        },
      },
      "c.good": {},
    },
  });
  const rig = rigOf(m as never, {}, { maxAttempts: 1 });
  rig.deliver("c.bad", "s");
  rig.deliver("c.good", "s");
  await rig.settle(2);
  assert.deepEqual(rig.told, ["dead_lettered:max_attempts", "processed"]);
  assert.deepEqual(alive, []);
});

test("an event for a finished instance is given up at once, whatever its data (XST-10, B31)", async () => {
  const circular: Record<string, unknown> = { big: 1n };
  circular["self"] = circular;
  const rig = rigOf(counter(), { toEvent: ({ type }) => ({ type, circular }) });
  rig.deliver("c.close", "s");
  rig.deliver("c.inc", "s");
  await rig.settle(2);
  assert.deepEqual(rig.told, ["processed", "dead_lettered:instance_done"]);
  const [letter] = await rig.store.deadLetters.list();
  assert.equal(letter!.failures, 1);
  assert.equal((await stateOf(rig, "counter/s"))!["status"], "done");
});

test("the event that finished an instance is a duplicate when it comes again (B30)", async () => {
  let restored = 0;
  const rig = rigOf(counter(), { toEvent: (envelope) => (restored++, { type: envelope.type }) });
  const sent = rig.deliver("c.close", "s");
  rig.broker.deliver("t", sent, 1);
  await rig.settle(2);
  assert.deepEqual(rig.told, ["processed", "duplicate"]);
  assert.equal(restored, 1);
});

test("late events for a finished instance are ignored where that was asked for (XST-10)", async () => {
  const rig = rigOf(counter(), { onFinal: "ignore" });
  rig.deliver("c.close", "s");
  rig.deliver("c.inc", "s");
  await rig.settle(2);
  assert.deepEqual(rig.told, ["processed", "ignored"]);
});

test("a removed instance is started anew by a starter only (XST-10)", async () => {
  const rig = rigOf(counter(), { removeFinal: true, starts: ["c.inc"], onMissing: "dead_letter" });
  for (const type of ["c.inc", "c.close"]) rig.deliver(type, "s");
  await rig.settle(2);
  assert.equal(await rig.store.snapshots.get("counter/s"), undefined);
  for (const type of ["c.close", "c.inc"]) rig.deliver(type, "s");
  await rig.settle(4);
  assert.deepEqual(rig.told.slice(2), ["dead_lettered:no_instance", "processed"]);
  assert.deepEqual((await stateOf(rig, "counter/s"))!["context"], { n: 1 });
});

test("an event that comes before the one that starts its instance waits for it (XST-11)", async () => {
  const seen: string[] = [];
  const note = ({ event }: { event: { type: string; data?: unknown } }) =>
    void seen.push(`${event.type} ${event.data}`);
  const m = createMachine({
    id: "counter",
    on: { "c.start": { actions: note }, "c.early": { actions: note }, "c.late": { actions: note } },
  } as never);
  const rig = rigOf(m as never, { starts: ["c.st*"] });
  rig.deliver("c.early", "s", { data: 1 });
  rig.deliver("c.early", "s", { data: 2 });
  rig.deliver("c.start", "s", { data: 3 });
  rig.deliver("c.late", "s", { data: 4 });
  const report = await rig.settle(4);
  assert.deepEqual(seen, ["c.start 3", "c.early 1", "c.early 2", "c.late 4"]);
  assert.equal(report.processed, 4);
  assert.equal(rig.clock.monotonic(), 0, "nobody had to wait out a delay");
});

test("an event waits for a starter that comes later, also from another topic (XST-11)", async () => {
  const rig = rigOf(counter(), { starts: ["c.inc"] });
  rig.deliver("c.close", "s");
  rig.deliver("c.close", "z");
  const run = rig.run("t", "u");
  await rig.clock.advance(50);
  rig.deliver("c.inc", "s");
  await rig.clock.flush();
  assert.deepEqual(rig.ended.map(({ envelope }) => envelope.type), ["c.inc", "c.close"]);
  rig.deliver("c.inc", "z", {}, "u");
  await rig.untilEnded(4);
  await rig.finish(run);
  assert.ok(rig.ended.every(({ outcome }) => outcome === "processed"));
});

test("an event whose instance never starts is given up as such, and others of the subject were not held up (XST-11)", async () => {
  const rig = rigOf(counter(), { starts: ["c.inc"] }, { maxAttempts: 3 });
  rig.deliver("c.close", "s");
  const report = await rig.settle(1);
  assert.deepEqual(report.deadLettered, { no_instance: 1 });
  assert.equal(report.retried, 2);
  const strict = rigOf(counter(), { starts: ["c.inc"], onMissing: "dead_letter" });
  strict.deliver("c.close", "s");
  await strict.settle(1);
  assert.deepEqual(strict.told, ["dead_lettered:no_instance"]);
});

test("a machine within a machine within a machine goes on from JSON over four events (XST-12)", async () => {
  const level3 = setup({ actors: { work: fromPromise(() => Promise.resolve(5)) } }).createMachine({
    id: "three",
    context: { got: 0 },
    initial: "idle",
    states: {
      idle: { on: { down: "working" } },
      working: {
        invoke: {
          src: "work",
          onDone: {
            target: "idle",
            actions: assign({ got: ({ context, event }) => context.got + (event.output as number) }) as never,
          },
        },
      },
    },
  });
  const level2 = setup({ actors: { three: level3 } }).createMachine({
    id: "two",
    invoke: { src: "three", id: "three" },
    on: {
      down: {
        actions: ({ self }) =>
          (self.getSnapshot() as never as { children: Record<string, { send(e: object): void }> }).children["three"]!
            .send({ type: "down" }),
      },
    },
  });
  const level1 = setup({ actors: { two: level2 } }).createMachine({
    id: "one",
    invoke: { src: "two", id: "two" },
    on: {
      "c.down": {
        actions: ({ self }) =>
          (self.getSnapshot() as never as { children: Record<string, { send(e: object): void }> }).children["two"]!
            .send({ type: "down" }),
      },
    },
  });
  const rig = rigOf(level1 as never);
  for (let n = 0; n < 4; n++) {
    rig.deliver("c.down", "s");
    await rig.settle(n + 1);
  }
  assert.deepEqual(rig.told, ["processed", "processed", "processed", "processed"]);
  const one = await stateOf(rig, "one/s") as never as {
    children: { two: { snapshot: { children: { three: { snapshot: { context: unknown } } } } } };
  };
  assert.deepEqual(one.children.two.snapshot.children.three.snapshot.context, { got: 20 });
});

test("an event whose ack was lost is a duplicate: one transition, and what was emitted went out once (XST-13)", async () => {
  const m = counter({ "c.tell": { actions: [increment, emit({ type: "c.told", topic: "out" })] } });
  const rig = rigOf(m);
  rig.broker.ackFaults = [new Error("gone"), "stale"];
  rig.deliver("c.tell", "s");
  const report = await rig.settle(3);
  assert.deepEqual(rig.told, ["processed", "duplicate", "duplicate"]);
  assert.deepEqual((await stateOf(rig, "counter/s"))!["context"], { n: 1 });
  assert.equal(report.relayed, 1);
  assert.equal(rig.broker.published.length, 1);
});

test("what a machine emits is published: its topic or the route's, its subject or the instance's, its data or its members", async () => {
  const m = counter({
    "c.tell": {
      actions: [
        emit({ type: "c.a", data: { x: 1 } }),
        emit({ type: "c.b", topic: "elsewhere", subject: "other", y: 2 }),
        emit({ type: "c.c" }),
      ],
    },
  });
  const rig = rigOf(m, { topic: "out" });
  const sent = rig.deliver("c.tell", "s");
  await rig.settle(1);
  const rows = rig.broker.published.map(({ topic, envelope }) => ({
    topic,
    type: envelope.type,
    subject: envelope.subject,
    data: envelope.data,
    cause: envelope.causationid,
  }));
  assert.deepEqual(rows.toSorted((a, b) => a.type < b.type ? -1 : 1), [
    { topic: "out", type: "c.a", subject: "s", data: { x: 1 }, cause: sent.id },
    { topic: "elsewhere", type: "c.b", subject: "other", data: { y: 2 }, cause: sent.id },
    { topic: "out", type: "c.c", subject: "s", data: undefined, cause: sent.id },
  ]);
});

test("an emitted event that names no topic fails the event and stores nothing", async () => {
  const rig = rigOf(counter({ "c.tell": { actions: emit({ type: "c.a" }) } }), {}, { maxAttempts: 1 });
  rig.deliver("c.tell", "s");
  await rig.settle(1);
  assert.deepEqual(rig.told, ["dead_lettered:max_attempts"]);
  assert.equal(await rig.store.snapshots.get("counter/s"), undefined);
  assert.equal(rig.broker.published.length, 0);
});

test("an event that a machine does not handle is counted, ignored or given up, as asked for", async () => {
  const outcomes: Record<string, unknown> = {};
  for (const unhandled of ["process", "ignore", "dead_letter"] as const) {
    const rig = rigOf(counter(), { unhandled });
    rig.deliver("c.inc", "s");
    rig.deliver("c.unknown", "s");
    const report = await rig.settle(2);
    outcomes[unhandled] = [rig.told[1], report.unhandled, (await rig.store.snapshots.get("counter/s"))!.version];
  }
  assert.deepEqual(outcomes, {
    process: ["processed", 1, 1],
    ignore: ["ignored", 0, 1],
    dead_letter: ["dead_lettered:unhandled", 0, 1],
  });
});

test("an ignored event starts no instance", async () => {
  const rig = rigOf(counter(), { unhandled: "ignore" });
  rig.deliver("c.unknown", "s");
  await rig.settle(1);
  assert.deepEqual(rig.told, ["ignored"]);
  assert.equal(await rig.store.snapshots.get("counter/s"), undefined);
});

test("a transition that only runs an action is handled, a guard that says no is not", async () => {
  const ran: string[] = [];
  const rig = rigOf(
    counter({ "c.act": { actions: () => void ran.push("act") }, "c.deny": { guard: () => false, target: "closed" } }),
    { unhandled: "dead_letter" },
  );
  rig.deliver("c.act", "s");
  rig.deliver("c.deny", "s");
  await rig.settle(2);
  assert.deepEqual(rig.told, ["processed", "dead_lettered:unhandled"]);
  assert.deepEqual(ran, ["act"]);
});

test("the machine's event has type, data and envelope, or what toEvent makes; byEventName splits xsm types", async () => {
  const seen: unknown[] = [];
  const m = createMachine({ id: "counter", on: { "*": { actions: ({ event }) => void seen.push(event) } } });
  const plain = rigOf(m as never);
  const sent = plain.deliver("c.inc", "s", { data: { total: 1 } });
  await plain.settle(1);
  assert.deepEqual({ ...(seen[0] as object), envelope: undefined }, {
    type: "c.inc",
    data: { total: 1 },
    envelope: undefined,
  });
  assert.equal((seen[0] as { envelope: Envelope }).envelope.id, sent.id);
  const named = new Rig({ routes: { "*": machine(m, { toEvent: byEventName }) } });
  named.deliver("xsm.order.PAY.NOW", "s", { data: { total: 1, type: "forged" } });
  named.deliver("xsm.order", "s");
  named.deliver("xsm.order.PAY", "s", { data: [1] });
  await named.settle(3);
  assert.deepEqual(seen.slice(1), [{ type: "PAY.NOW", total: 1 }, { type: "xsm.order" }]);
  assert.equal(named.told[2], "dead_lettered:invalid");
});

test("a new instance gets the input made from its first event, once", async () => {
  const m = setup({ types: { input: {} as { total: number } } }).createMachine({
    id: "counter",
    context: ({ input }) => ({ total: input.total }),
    on: { "c.go": {} },
  });
  let made = 0;
  const rig = rigOf(m as never, { input: (envelope) => (made++, envelope.data) });
  rig.deliver("c.go", "s", { data: { total: 7 } });
  rig.deliver("c.go", "s", { data: { total: 8 } });
  await rig.settle(2);
  assert.deepEqual((await stateOf(rig, "counter/s"))!["context"], { total: 7 });
  assert.equal(made, 1);
});

test("a machine that throws while it is made fails the event", async () => {
  const m = createMachine({
    id: "counter",
    context: () => {
      throw new RangeError("no context");
    },
    on: { "c.go": {} },
  });
  const rig = rigOf(m as never, {}, { maxAttempts: 1 });
  rig.deliver("c.go", "s");
  await rig.settle(1);
  const [letter] = await rig.store.deadLetters.list();
  assert.equal(letter!.errors[0]!.name, "RangeError");
});

test("callbacks and reducers beside the machine are not waited for", async () => {
  const m = setup({
    actors: {
      tick: fromCallback(() => () => {}),
      sum: fromTransition((state: { n: number }, event: { type: string }) => {
        if (event.type !== "add") throw new Error("asked about an event that is not its own");
        return { n: state.n + 1 };
      }, { n: 0 }),
    },
  }).createMachine({ id: "counter", invoke: [{ src: "tick" }, { src: "sum" }], on: { "c.go": {} } });
  const rig = rigOf(m as never);
  for (let n = 0; n < 2; n++) rig.deliver("c.go", "s");
  await rig.settle(2);
  assert.deepEqual(rig.told, ["processed", "processed"]);
  assert.equal(rig.clock.monotonic(), 0);
});

test("machine names a wrong option", () => {
  const wrong: readonly (readonly [string, MachineOptions])[] = [
    ["settleMs", { settleMs: 0 }],
    ["onMissing", { onMissing: "hunter2" as never }],
    ["onFinal", { onFinal: "hunter2" as never }],
    ["unhandled", { unhandled: "hunter2" as never }],
    ["removeFinal", { removeFinal: true }],
    ["settleMS", { settleMS: 3 } as never],
  ];
  for (const [name, options] of wrong) {
    assert.throws(
      () => machine(counter() as never, options),
      (error: Error) =>
        error instanceof InvalidOptionError && error.message.includes(name) && !/hunter2/.test(error.message),
      name,
    );
  }
  assert.throws(() => machine({} as never), InvalidOptionError);
  assert.throws(() => machine(createMachine({})), /id/);
});
