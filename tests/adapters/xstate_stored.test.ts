import assert from "node:assert/strict";
import { assign, createMachine, emit, fromPromise, raise, sendTo, setup } from "xstate";
import { invokeKey, machine } from "../../adapters/xstate/mod.ts";
import { MemoryStore } from "../../core/store/memory_store.ts";
import { gate, Rig } from "../core/dispatch_rig.ts";
import { FaultyStore } from "../core/faulty_store.ts";
import { test } from "../support/test.ts";
import { VirtualClock } from "../support/virtual_clock.ts";

type Json = Record<string, never> & { state: { value: unknown; status: string; context: unknown }; delays: unknown[] };

async function stored(rig: { store: Rig["store"] }, key: string): Promise<Json | undefined> {
  const snapshot = await rig.store.snapshots.get(key);
  return snapshot === undefined ? undefined : JSON.parse(snapshot.value);
}

function payment(pay: (args: { self: never; signal: AbortSignal }) => Promise<unknown>) {
  return setup({ actors: { pay: fromPromise(pay as never) } }).createMachine({
    id: "order",
    context: { paid: null as unknown },
    initial: "open",
    states: {
      open: { on: { "o.pay": "paying" } },
      paying: {
        invoke: {
          src: "pay",
          id: "charge",
          onDone: {
            target: "paid",
            actions: [assign({ paid: ({ event }) => event.output }), emit({ type: "o.paid", topic: "out" } as never)],
          },
          onError: "refused",
        },
      },
      paid: {},
      refused: { on: { "o.pay": "paying" } },
    },
  });
}

test("an event is settled only once the promises it invoked have ended, and what follows from them (XST-06)", async () => {
  const open = gate<number>();
  const rig = new Rig({ routes: { "o.*": machine(payment(() => open.promise)) } });
  rig.deliver("o.pay", "1");
  const run = rig.run();
  await rig.clock.advance(20_000);
  assert.deepEqual(rig.told, []);
  assert.equal(await stored(rig, "order/1"), undefined);
  open.open(42);
  await rig.untilEnded(1);
  const report = await rig.finish(run);
  const { state } = (await stored(rig, "order/1"))!;
  assert.equal(state.value, "paid");
  assert.deepEqual(state.context, { paid: 42 });
  assert.equal(report.relayed, 1);
});

test("an invoked promise that fails takes the machine's own way", async () => {
  const rig = new Rig({ routes: { "o.*": machine(payment(() => Promise.reject(new Error("no funds")))) } });
  rig.deliver("o.pay", "1");
  await rig.settle(1);
  assert.deepEqual(rig.told, ["processed"]);
  assert.equal((await stored(rig, "order/1"))!.state.value, "refused");
});

test("a promise that does not settle in time fails the event; it is told to stop, and nothing is stored", async () => {
  const signals: AbortSignal[] = [];
  const rig = new Rig({
    maxAttempts: 2,
    routes: {
      "o.*": machine(
        payment(({ signal }) => {
          signals.push(signal);
          return new Promise(() => {});
        }),
        { settleMs: 5_000 },
      ),
    },
  });
  rig.deliver("o.pay", "1");
  const run = rig.run();
  await rig.clock.advance(4_999);
  assert.deepEqual(rig.told, []);
  await rig.clock.advance(1);
  assert.deepEqual(rig.told, ["retry"]);
  assert.equal(signals[0]!.aborted, true);
  await rig.untilEnded(1);
  await rig.finish(run);
  assert.deepEqual(rig.told, ["retry", "dead_lettered:max_attempts"]);
  assert.equal(await stored(rig, "order/1"), undefined);
  assert.equal(rig.clock.armed, 0);
});

test("the same event invokes with the same key, also after its unit was lost; another event with another (XST-06)", async () => {
  const clock = new VirtualClock();
  const store = new FaultyStore({ clock });
  const effects = new Map<string, number>();
  const m = payment(({ self }) => {
    const key = invokeKey(self);
    effects.set(key, (effects.get(key) ?? 0) + 1);
    return Promise.reject(new Error("refused"));
  });
  let faults = 2;
  store.beforeCommit = () => faults-- > 0 ? new Error("the process died here") : undefined;
  const rig = new Rig({ clock, store, routes: { "o.*": machine(m) } });
  rig.deliver("o.pay", "1");
  rig.deliver("o.pay", "1");
  rig.deliver("o.pay", "2");
  await rig.settle(3);
  assert.equal(effects.size, 3);
  assert.equal([...effects.values()].reduce((sum, count) => sum + count), 5);
  for (const key of effects.keys()) assert.match(key, /^[0-9a-f]{64}$/);
  assert.throws(() => invokeKey({ id: "x", system: {} }), /self/);
});

test("a handler that runs into its time limit stops the machine's promises", async () => {
  const signals: AbortSignal[] = [];
  const rig = new Rig({
    handlerTimeoutMs: 1_000,
    maxAttempts: 1,
    routes: {
      "o.*": machine(payment(({ signal }) => {
        signals.push(signal);
        return new Promise(() => {});
      })),
    },
  });
  rig.deliver("o.pay", "1");
  await rig.settle(1);
  assert.equal(signals[0]!.aborted, true);
});

const order = (after: object = { 5_000: "late" }) =>
  createMachine({
    id: "order",
    initial: "open",
    states: {
      open: {
        after,
        on: { "o.touch": { actions: () => {} }, "o.again": { target: "open", reenter: true }, "o.pay": "paid" },
      },
      paid: {},
      late: { entry: emit({ type: "o.late", topic: "out" }), on: { "o.touch": {} } },
    },
  } as never);

test("a delay of a machine ends by a durable timer, once, wherever the events in between were handled", async () => {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock });
  const route = { "o.*": machine(order()) };
  const first = new Rig({ clock, store, routes: route });
  first.deliver("o.touch", "1");
  await first.settle(1);
  await clock.advance(3_000);
  const rig = new Rig({ clock, store, routes: route });
  rig.deliver("o.touch", "1");
  const run = rig.run();
  await clock.advance(1_999);
  assert.equal((await stored(rig, "order/1"))!.state.value, "open");
  await clock.advance(1);
  assert.equal((await stored(rig, "order/1"))!.state.value, "late");
  assert.equal(rig.broker.published.length, 1);
  await clock.advance(60_000);
  const report = await rig.finish(run);
  assert.equal(report.timers, 1);
  assert.equal(rig.broker.published.length, 1);
  assert.equal(await store.timers.next(), undefined);
});

test("leaving the state takes its timer away; entering it anew sets it anew", async () => {
  const rig = new Rig({ routes: { "o.*": machine(order()) } });
  rig.deliver("o.touch", "1");
  rig.deliver("o.touch", "2");
  const run = rig.run();
  await rig.clock.advance(3_000);
  rig.deliver("o.pay", "1");
  rig.deliver("o.again", "2");
  await rig.clock.flush();
  assert.deepEqual((await rig.store.timers.due(Infinity, 9)).map(({ owner }) => owner), ["order/2"]);
  await rig.clock.advance(4_999);
  assert.equal((await stored(rig, "order/1"))!.state.value, "paid");
  assert.equal((await stored(rig, "order/2"))!.state.value, "open");
  await rig.clock.advance(1);
  assert.equal((await stored(rig, "order/2"))!.state.value, "late");
  await rig.finish(run);
});

test("a delay that leads back to its own state goes on for ever, a timer each", async () => {
  const rig = new Rig({
    routes: {
      "o.*": machine(createMachine({
        id: "order",
        initial: "tick",
        states: {
          tick: { entry: emit({ type: "o.tick", topic: "out" }), after: { 1_000: { target: "tick", reenter: true } } },
        },
      })),
    },
  });
  rig.deliver("o.start", "1");
  const run = rig.run();
  await rig.clock.advance(10_000);
  await rig.finish(run);
  assert.equal(rig.broker.published.length, 11);
});

test("a delayed raise, a delayed sendTo to a child and a child's own delay are timers too", async () => {
  const child = createMachine({
    id: "child",
    initial: "wait",
    context: { pings: 0 },
    on: { ping: { actions: assign({ pings: ({ context }) => context.pings + 1 }) } },
    states: { wait: { after: { 4_000: "done" } }, done: {} },
  });
  const rig = new Rig({
    routes: {
      "o.*": machine(
        setup({ actors: { child } }).createMachine({
          id: "order",
          invoke: { src: "child", id: "kid" },
          initial: "a",
          states: {
            a: {
              entry: [
                raise({ type: "soon" }, { delay: 1_000, id: "r" }),
                sendTo("kid", { type: "ping" }, { delay: 2_000, id: "p" }),
              ],
              on: { soon: "b" },
            },
            b: {},
          },
        }),
      ),
    },
  });
  rig.deliver("o.start", "1");
  const run = rig.run();
  const at = async () => {
    const { state } = (await stored(rig, "order/1"))!;
    const kid =
      (state as never as { children: { kid: { snapshot: { value: string; context: object } } } }).children.kid.snapshot;
    return [state.value, kid.value, kid.context];
  };
  await rig.clock.advance(999);
  assert.deepEqual(await at(), ["a", "wait", { pings: 0 }]);
  await rig.clock.advance(1);
  assert.deepEqual(await at(), ["b", "wait", { pings: 0 }]);
  await rig.clock.advance(1_000);
  assert.deepEqual(await at(), ["b", "wait", { pings: 1 }]);
  await rig.clock.advance(2_000);
  assert.deepEqual(await at(), ["b", "done", { pings: 1 }]);
  await rig.finish(run);
  assert.equal(await rig.store.timers.next(), undefined);
});

test("a timer whose transition fails is tried again and then given up, and its row goes with the record", async () => {
  let fails = 0;
  const rig = new Rig({
    maxAttempts: 3,
    routes: {
      "o.*": machine(order({
        5_000: {
          target: "late",
          actions: () => {
            fails++;
            throw new Error("never");
          },
        },
      })),
    },
  });
  rig.deliver("o.touch", "1");
  const run = rig.run();
  await rig.clock.advance(60_000);
  rig.deliver("o.touch", "1");
  await rig.clock.flush();
  const report = await rig.finish(run);
  assert.equal(fails, 3);
  assert.deepEqual(report.deadLettered, { max_attempts: 1 });
  assert.equal(report.processed, 2, "the instance goes on");
});

test("two dispatchers over one store end a delay once", async () => {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock });
  const rigs = [0, 1].map(() => new Rig({ clock, store, routes: { "o.*": machine(order()) } }));
  rigs[0]!.deliver("o.touch", "1");
  const runs = rigs.map((rig) => rig.run());
  await clock.advance(10_000);
  const reports = [await rigs[0]!.finish(runs[0]!), await rigs[1]!.finish(runs[1]!)];
  assert.equal(reports[0]!.timers + reports[1]!.timers, 1);
  assert.equal(rigs[0]!.broker.published.length + rigs[1]!.broker.published.length, 1);
});

const versioned = (states: readonly string[], version?: string) =>
  createMachine({
    id: "order",
    ...(version === undefined ? {} : { version }),
    initial: states[0],
    states: Object.fromEntries(
      states.map((name, at) => [name, { on: { "o.next": states[at + 1] ?? name, "o.touch": {} } }]),
    ),
  } as never);

test("a snapshot in a state that the machine no longer has is given up, left as it was, and others go on (XST-04)", async () => {
  const store = new MemoryStore();
  const before = new Rig({ store, routes: { "o.*": machine(versioned(["open", "reviewing", "done"])) } });
  before.deliver("o.next", "1");
  before.deliver("o.touch", "2");
  await before.settle(2);
  const rig = new Rig({ store, routes: { "o.*": machine(versioned(["open", "done"])) } });
  rig.deliver("o.touch", "1");
  rig.deliver("o.next", "2");
  await rig.settle(2);
  assert.deepEqual(rig.outcomes.map(({ outcome, envelope }) => [envelope.subject, outcome]).toSorted(), [
    ["1", "dead_lettered:snapshot_incompatible"],
    ["2", "processed"],
  ]);
  assert.equal((await stored(rig, "order/1"))!.state.value, "reviewing");
  assert.equal((await stored(rig, "order/2"))!.state.value, "done");
  const [letter] = await store.deadLetters.list();
  assert.equal(letter!.errors[0]!.name, "SnapshotIncompatibleError");
});

test("a snapshot of another version or machine needs migrate, which brings it into form (XST-04)", async () => {
  const store = new MemoryStore();
  const v1 = new Rig({ store, routes: { "o.*": machine(versioned(["open", "reviewing", "done"], "1")) } });
  v1.deliver("o.next", "1");
  await v1.settle(1);
  const without = new Rig({ store, routes: { "o.*": machine(versioned(["open", "checking", "done"], "2")) } });
  without.deliver("o.next", "1");
  await without.settle(1);
  assert.deepEqual(without.told, ["dead_lettered:snapshot_incompatible"]);
  const seen: unknown[] = [];
  const v2 = new Rig({
    store,
    routes: {
      "o.*": machine(versioned(["open", "checking", "done"], "2"), {
        migrate: (state, from) => {
          seen.push(from);
          return { ...state as object, value: "checking" };
        },
      }),
    },
  });
  for (let n = 0; n < 2; n++) v2.deliver("o.next", "1");
  await v2.settle(2);
  assert.deepEqual(v2.told, ["processed", "processed"]);
  assert.deepEqual(seen, [{ machine: "order", version: "1" }]);
  assert.equal((await stored(v2, "order/1"))!.state.value, "done");
  assert.equal((await store.snapshots.get("order/1"))!.machineVersion, "2");
});

test("a migrate that throws, a child that is gone and a row that is no snapshot are incompatible, nothing else", async () => {
  const store = new MemoryStore();
  const kid = createMachine({ id: "kid" });
  const withChild = setup({ actors: { kid } }).createMachine({
    id: "order",
    invoke: { src: "kid", id: "k" },
    on: { "o.touch": {} },
  });
  const first = new Rig({ store, routes: { "o.*": machine(withChild) } });
  first.deliver("o.touch", "child");
  first.deliver("o.touch", "migrate");
  await first.settle(2);
  await store.transact({ snapshot: "order/bad" }, (unit) => unit.saveSnapshot("{", "order", ""));
  await store.transact({ snapshot: "order/odd" }, (unit) => unit.saveSnapshot("[]", "order", ""));
  const plain = createMachine({ id: "order", on: { "o.touch": {} } });
  const rig = new Rig({ store, routes: { "o.*": machine(plain) } });
  for (const subject of ["child", "bad", "odd"]) rig.deliver("o.touch", subject);
  await rig.settle(3);
  const throwing = new Rig({
    store,
    routes: {
      "o.*": machine(withChild, {
        version: "2",
        migrate: () => {
          throw new Error("cannot");
        },
      }),
    },
  });
  throwing.deliver("o.touch", "migrate");
  await throwing.settle(1);
  for (const outcome of [...rig.told, ...throwing.told]) assert.equal(outcome, "dead_lettered:snapshot_incompatible");
});

test("a machine inside middleware is the same machine", async () => {
  const steps: string[] = [];
  const rig = new Rig({
    use: [async (envelope, _, next) => {
      steps.push(envelope.type);
      await next();
    }],
    routes: { "o.*": machine(order(), { unhandled: "ignore" }) },
  });
  rig.deliver("o.touch", "1");
  rig.deliver("o.unknown", "1");
  const run = rig.run();
  await rig.clock.advance(6_000);
  const report = await rig.finish(run);
  assert.deepEqual(steps, ["o.touch", "o.unknown", "xsm.timer"]);
  assert.equal(report.timers, 1);
  assert.equal(report.ignored, 1);
});
