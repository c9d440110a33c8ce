import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { InboundDispatcher } from "../../core/dispatch/dispatcher.ts";
import type { Envelope } from "../../core/envelope.ts";
import { BrokerUnavailableError, InvalidOptionError } from "../../core/errors.ts";
import { healthHandler } from "../../core/health_handler.ts";
import { MemoryStore } from "../../core/store/memory_store.ts";
import { FakeBroker } from "../support/fake_broker.ts";
import { test } from "../support/test.ts";
import { VirtualClock } from "../support/virtual_clock.ts";
import { gate, Rig, type RigOptions } from "./dispatch_rig.ts";
import { down, FaultyStore } from "./faulty_store.ts";

test("run finishes what it has taken, gives back what takes too long, and aborts its signal first (COR-09)", async () => {
  let signal: AbortSignal | undefined;
  const order: string[] = [];
  const rig: Rig = new Rig({
    drainMs: 300,
    routes: {
      "n.short": () => new Promise<void>((resolve) => void rig.clock.timer(100, resolve)),
      "n.long": (_, ctx) => {
        signal = ctx.signal;
        signal.addEventListener("abort", () => order.push(`abort, ${rig.broker.settled.length} settled`));
        return new Promise(() => {});
      },
    },
  });
  const short = rig.deliver("n.short", "A");
  const long = rig.deliver("n.long", "B");
  const behind = rig.deliver("n.short", "B");
  const run = rig.run();
  await rig.clock.flush();
  rig.stop();
  await rig.clock.advance(299);
  assert.equal(signal!.aborted, false);
  assert.deepEqual(rig.broker.settled.map(({ kind, id }) => [kind, id]), [["ack", short.id]]);
  await rig.clock.advance(1);
  const report = await run;
  assert.deepEqual(order, ["abort, 1 settled"]);
  assert.deepEqual(rig.broker.settled.slice(1).map(({ kind, id }) => [kind, id]), [["retry", long.id], [
    "retry",
    behind.id,
  ]]);
  assert.equal(report.processed, 1);
  assert.equal(report.released, 2);
});

test("what a run gave back reaches the next consumer, in order (COR-09)", async () => {
  const rig = new Rig({ drainMs: 0, routes: { "n.step": () => new Promise(() => {}) } });
  for (let n = 0; n < 3; n++) rig.deliver("n.step", "s", { data: n });
  const run = rig.run();
  await rig.clock.flush();
  await rig.finish(run);
  const seen: unknown[] = [];
  for await (const delivery of rig.broker.subscribe("t", { idleMs: 0 })) {
    seen.push(delivery.envelope.data);
    await delivery.ack();
  }
  assert.deepEqual(seen, [0, 1, 2]);
});

test("run gives back at once what only waits for an attempt beyond the end", async () => {
  const rig = new Rig({
    drainMs: 10_000,
    retry: { baseMs: 60_000, capMs: 60_000 },
    routes: {
      "n.step": () => {
        throw new Error("no");
      },
    },
  });
  rig.deliver("n.step", "s");
  const run = rig.run();
  await rig.clock.flush();
  rig.stop();
  const report = await run;
  assert.equal(rig.clock.monotonic(), 0);
  assert.equal(report.released, 1);
});

test("run waits in its drain for attempts that are due before the end", async () => {
  let runs = 0;
  const rig = new Rig({
    drainMs: 1_000,
    routes: {
      "n.step": () => {
        if (++runs === 1) throw new Error("once");
      },
    },
  });
  rig.deliver("n.step", "s");
  const run = rig.run();
  await rig.clock.flush();
  const report = await rig.finish(run);
  assert.equal(report.processed, 1);
  assert.equal(report.released, 0);
});

test("nothing of a run is alive after it: no timer, no listener (COR-10)", async () => {
  const stop = new AbortController();
  const rig = new Rig({
    drainMs: 100,
    routes: { "n.step": () => new Promise(() => {}), "n.bad": () => Promise.reject(1) },
  });
  rig.deliver("n.step", "s");
  rig.deliver("n.bad", "s2");
  const before = getEventListeners(stop.signal, "abort").length;
  const run = rig.app.run(["t"], { signal: stop.signal });
  await rig.clock.advance(5_000);
  stop.abort();
  await rig.clock.advance(100);
  await run;
  assert.equal(rig.clock.armed, 0);
  assert.equal(getEventListeners(stop.signal, "abort").length, before);
});

test("an open circuit leaves no timer behind a run (COR-10)", async () => {
  const store = new FaultyStore();
  const rig = new Rig({ store, drainMs: 0, routes: { "n.step": () => {} } });
  store.beforeWork = down;
  for (let n = 0; n < 8; n++) rig.deliver("n.step", `s${n}`);
  const run = rig.run();
  await rig.clock.flush();
  await rig.finish(run);
  assert.equal(rig.clock.armed, 0);
  assert.equal(rig.app.health().dispatcher.store, "closed");
});

test("run can follow run on one dispatcher, each taking every event once (COR-11)", async () => {
  const seen: unknown[] = [];
  const rig = new Rig({ routes: { "n.step": (envelope: Envelope) => void seen.push(envelope.data) } });
  for (let n = 0; n < 20; n++) {
    rig.deliver("n.step", "s", { data: n });
    const run = rig.run();
    await rig.untilEnded(n + 1);
    const report = await rig.finish(run);
    assert.equal(report.processed, 1, "a report is of its own run");
  }
  assert.deepEqual(seen, [...seen.keys()]);
});

test("a second run beside the first is refused", async () => {
  const rig = new Rig({ routes: { "n.step": () => {} } });
  const run = rig.run();
  await assert.rejects(rig.app.run(["u"]), InvalidOptionError);
  await rig.finish(run);
});

test("a signal that serves many events and idle polls gathers no listeners (COR-20)", async () => {
  const stop = new AbortController();
  const rig = new Rig({ routes: { "n.step": async (_, ctx) => void await ctx.signal } });
  const run = rig.app.run(["t"], { signal: stop.signal });
  await rig.clock.flush();
  const before = getEventListeners(stop.signal, "abort").length;
  for (let n = 0; n < 10_000; n++) rig.deliver("n.step", `s${n % 7}`);
  await rig.untilEnded(10_000);
  await rig.clock.advance(1_000_000);
  assert.equal(getEventListeners(stop.signal, "abort").length, before);
  stop.abort();
  await rig.finish(run);
  assert.equal(getEventListeners(stop.signal, "abort").length, 0);
  const other = new AbortController();
  for (let n = 0; n < 50; n++) await rig.app.runOnce(["t"], { signal: other.signal });
  assert.equal(getEventListeners(other.signal, "abort").length, 0);
});

test("a subscription that fails for a reason that may pass is opened again; the run goes on", async () => {
  const rig = new Rig({ routes: { "n.step": () => {} } });
  let faults = 2;
  rig.broker.subscribeFault = () => faults-- > 0 ? new BrokerUnavailableError("away") : undefined;
  rig.deliver("n.step", "s");
  const report = await rig.settle(1);
  assert.equal(report.processed, 1);
});

test("a subscription that fails for good stops the run, which settles what it has and rejects with it", async () => {
  const open = gate();
  const rig = new Rig({ routes: { "n.step": () => open.promise } });
  const sent = rig.deliver("n.step", "s");
  let tries = 0;
  rig.broker.subscribeFault = (topic) => {
    if (topic === "t") return undefined;
    return ++tries === 1 ? new BrokerUnavailableError("away") : new InvalidOptionError("group is missing");
  };
  const run = rig.run("t", "u");
  await rig.clock.advanceUntil(() => tries === 2);
  open.open();
  await assert.rejects(rig.finish(run), InvalidOptionError);
  assert.deepEqual(rig.broker.acked, [sent.id]);
});

test("runOnce takes what is ready, to the end of every event, and ends", async () => {
  let failures = 2;
  const rig = new Rig({
    fake: { prefetch: 3 },
    routes: {
      "n.step": async () => {
        await null;
        if (failures-- > 0) throw new Error("not yet");
      },
    },
  });
  for (let n = 0; n < 20; n++) rig.deliver("n.step", `s${n % 4}`);
  const run = rig.app.runOnce(["t"]);
  await rig.untilEnded(20);
  const report = await run;
  assert.equal(report.processed, 20);
  assert.equal(report.retried, 2);
  assert.equal(rig.clock.armed, 0);
});

test("runOnce publishes what its handlers wrote, once, and leaves what that leads to for the next call", async () => {
  const rig = new Rig({
    routes: {
      "n.ping": (_, ctx) => {
        ctx.publish("t", { type: "n.ping", subject: "s" });
      },
    },
  });
  rig.deliver("n.ping", "s");
  const first = await rig.app.runOnce(["t"]);
  assert.deepEqual([first.processed, first.relayed], [1, 1]);
  const second = await rig.app.runOnce(["t"]);
  assert.deepEqual([second.processed, second.relayed], [1, 1]);
});

test("runOnce publishes its outbox also while timers cannot be read", async () => {
  const store = new MemoryStore();
  store.timers.due = () => Promise.reject(down());
  const rig = new Rig({
    store,
    routes: {
      "n.step": (_, ctx) => {
        ctx.publish("out", { type: "n.out" });
      },
    },
  });
  rig.deliver("n.step", "s");
  const report = await rig.app.runOnce(["t"]);
  assert.deepEqual([report.processed, report.relayed], [1, 1]);
});

test("runOnce gives back what is left when its signal aborts", async () => {
  const stop = new AbortController();
  const rig = new Rig({ drainMs: 50, routes: { "n.step": () => new Promise(() => {}) } });
  rig.deliver("n.step", "s");
  const run = rig.app.runOnce(["t"], { signal: stop.signal });
  await rig.clock.flush();
  stop.abort();
  await rig.clock.advance(50);
  assert.equal((await run).released, 1);
});

test("what handlers publish goes out while a run goes on, with its cause, and to the relay's broker where one is given", async () => {
  const other = new FakeBroker({ source: "/other" });
  const rig = new Rig({
    relay: other,
    routes: {
      "n.step": (_, ctx) => {
        ctx.publish("out", { type: "n.out", subject: "s", data: { total: 1 } });
      },
    },
  });
  const sent = rig.deliver("n.step", "s", { correlationid: "story" });
  const run = rig.run();
  await rig.clock.advanceUntil(() => other.published.length === 1);
  const report = await rig.finish(run);
  const [{ envelope, topic }] = other.published as [typeof other.published[0]];
  assert.equal(topic, "out");
  assert.equal(envelope.causationid, sent.id);
  assert.equal(envelope.correlationid, "story");
  assert.equal(envelope.source, "/fake");
  assert.equal(report.relayed, 1);
  assert.equal(rig.broker.published.length, 0);
});

test("relay: false leaves the outbox to others", async () => {
  const rig = new Rig({
    relay: false,
    routes: {
      "n.step": (_, ctx) => {
        ctx.publish("out", { type: "n.out" });
      },
    },
  });
  rig.deliver("n.step", "s");
  await rig.settle(1);
  assert.equal(await rig.store.outbox.pending(), 1);
  const health = rig.app.health().dispatcher;
  assert.equal(health.relay, undefined);
  assert.equal(health.outboxPending, 1);
});

test("what the last handlers published before the end still goes out", async () => {
  const rig: Rig = new Rig({
    routes: {
      "n.step": async (_, ctx) => {
        await new Promise<void>((resolve) => void rig.clock.timer(200, resolve));
        ctx.publish("out", { type: "n.out" });
      },
    },
  });
  rig.deliver("n.step", "s");
  const run = rig.run();
  await rig.clock.flush();
  const report = await rig.finish(run);
  assert.equal(report.relayed, 1);
});

test("what was written while the relay was busy goes out before the end, too", async () => {
  const open = gate();
  const rig = new Rig({
    routes: {
      "n.step": (envelope, ctx) => {
        ctx.publish("out", { type: "n.out", data: envelope.data });
      },
    },
  });
  rig.broker.beforeConfirm = () => open.promise;
  rig.deliver("n.step", "s", { data: 1 });
  const run = rig.run();
  await rig.clock.flush();
  rig.deliver("n.step", "s", { data: 2 });
  await rig.clock.flush();
  rig.stop();
  await rig.clock.flush();
  open.open();
  const report = await rig.finish(run);
  assert.deepEqual(rig.broker.published.map(({ envelope }) => envelope.data), [1, 2]);
  assert.equal(report.relayed, 2);
});

test("ctx.schedule publishes at its time, not before, and once", async () => {
  const rig: Rig = new Rig({
    routes: {
      "n.step": (_, ctx) => {
        ctx.schedule(rig.clock.now() + 2_500, "out", { type: "n.late", subject: "s" });
      },
    },
  });
  const sent = rig.deliver("n.step", "s");
  const run = rig.run();
  await rig.clock.advance(2_499);
  assert.equal(rig.broker.published.length, 0);
  await rig.clock.advance(1);
  assert.equal(rig.broker.published.length, 1);
  assert.equal(rig.broker.published[0]!.envelope.causationid, sent.id);
  await rig.clock.advance(10_000);
  const report = await rig.finish(run);
  assert.equal(rig.broker.published.length, 1);
  assert.equal(report.timers, 1);
});

test("two dispatchers over one store fire a timer once", async () => {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock });
  const routes: RigOptions["routes"] = {
    "n.step": (_, ctx) => {
      ctx.schedule(new Date(clock.now() + 1_500), "out", { type: "n.late" });
    },
  };
  const rigs = [new Rig({ clock, store, routes }), new Rig({ clock, store, routes })];
  // Both read the row before either fires it.
  const due = store.timers.due.bind(store.timers);
  const both = gate();
  let readers = 0;
  store.timers.due = async (...args) => {
    const rows = await due(...args);
    if (rows.length > 0 && ++readers === 2) both.open();
    if (rows.length > 0) await both.promise;
    return rows;
  };
  rigs[0]!.deliver("n.step", "s");
  const runs = rigs.map((rig) => rig.run());
  await clock.advance(5_000);
  assert.equal(readers, 2);
  for (const [at, rig] of rigs.entries()) await rig.finish(runs[at]!);
  assert.equal(rigs[0]!.broker.published.length + rigs[1]!.broker.published.length, 1);
});

test("handle makes one attempt and answers the outcome", async () => {
  const rig = new Rig({
    maxAttempts: 2,
    routes: {
      "n.ok": () => {},
      "n.bad": () => {
        throw new Error("no");
      },
      "n.away": () => {
        throw new BrokerUnavailableError("away");
      },
    },
  });
  const ok = rig.broker.deliver("unread", { type: "n.ok", subject: "s" });
  assert.equal(await rig.app.handle(ok), "processed");
  assert.equal(await rig.app.handle(ok), "duplicate");
  assert.equal(await rig.app.handle({ type: "n.none" }), "dead_lettered:unknown_event");
  assert.equal(await rig.app.handle({ type: "n.away" }), "unavailable");
  const bad = rig.broker.deliver("unread", { type: "n.bad", subject: "s" });
  assert.equal(await rig.app.handle(bad), "retry");
  assert.equal(await rig.app.handle(bad), "dead_lettered:max_attempts");
  assert.equal(await rig.app.handle(bad), "duplicate");
  assert.equal(rig.clock.armed, 0);
  await assert.rejects(rig.app.handle({ type: "" }), { code: "envelope-invalid" });
});

test("handle takes its turn behind what its subject does already, also when a handler calls it", async () => {
  const seen: string[] = [];
  const rig: Rig = new Rig({
    routes: {
      "n.outer": async () => {
        seen.push("outer begins");
        void rig.app.handle({ type: "n.inner", subject: "s" }, { topic: "t" });
        await new Promise<void>((resolve) => rig.clock.turn(resolve));
        seen.push("outer ends");
      },
      "n.inner": () => void seen.push("inner"),
    },
  });
  rig.deliver("n.outer", "s");
  await rig.settle(2);
  assert.deepEqual(seen, ["outer begins", "outer ends", "inner"]);
});

test("health tells what runs, what waits and for how long", async () => {
  const open = gate();
  const rig = new Rig({ maxInFlight: 2, routes: { "n.step": () => open.promise } });
  for (const subject of ["a", "a", "b", "c"]) rig.deliver("n.step", subject);
  const run = rig.run();
  await rig.clock.advance(1_500);
  const { counts: _, ...health } = rig.app.health().dispatcher;
  assert.deepEqual(health, {
    running: true,
    lanes: 3,
    inFlight: 2,
    waiting: 2,
    oldestWaitingMs: 1_500,
    store: "closed",
    relay: "closed",
    outboxPending: 0,
  });
  open.open();
  await rig.untilEnded(4);
  await rig.finish(run);
  assert.deepEqual(rig.app.health().dispatcher.lanes, 0);
});

test("health answers 503 while the store is down, and 200 before and after", async () => {
  const clock = new VirtualClock();
  const store = new FaultyStore({ clock });
  const rig = new Rig({ clock, store, routes: { "n.step": () => {} } });
  const ask = () => healthHandler(rig.app)(new Request("http://service/health")).status;
  assert.equal(ask(), 200);
  for (let n = 0; n < 8; n++) rig.deliver("n.step", `s${n}`);
  store.beforeWork = down;
  const run = rig.run();
  await clock.flush();
  assert.equal(ask(), 503);
  assert.deepEqual(rig.app.health().error, { code: "store-unavailable", name: "InboundDispatcher" });
  store.beforeWork = () => undefined;
  await rig.untilEnded(8);
  assert.equal(ask(), 200);
  await rig.finish(run);
});

test("a timer that cannot fire holds up none behind it", async () => {
  const rig = new Rig({ routes: {} });
  await rig.store.transact({}, (unit) => {
    unit.setTimer({ id: "bad", owner: "test", dueAt: 0, topic: "out", envelope: "{" });
    const envelope = '{"specversion":"1.0","id":"1","source":"/s","type":"n.late"}';
    unit.setTimer({ id: "good", owner: "test", dueAt: 1, topic: "out", envelope });
  });
  const run = rig.run();
  await rig.clock.advance(10_000);
  await rig.finish(run);
  assert.deepEqual(rig.broker.published.map(({ envelope }) => envelope.type), ["n.late"]);
  assert.equal(rig.logs.filter(({ message }) => message.startsWith("a timer cannot fire")).length, 1);
  assert.deepEqual((await rig.store.timers.due(99, 9)).map(({ id }) => id), ["bad"]);
});

test("InboundDispatcher names a wrong option and never its value", () => {
  const broker = new FakeBroker();
  const routes = { "n.step": () => {} };
  const wrong: readonly (readonly [string, Record<string, unknown>])[] = [
    ["maxInflight", { maxInflight: 3 }],
    ["maxInFlight", { maxInFlight: 0 }],
    ["maxAttempts", { maxAttempts: 1.5 }],
    ["handlerTimeoutMs", { handlerTimeoutMs: -5 }],
    ["drainMs", { drainMs: NaN }],
    ["onUnknown", { onUnknown: "hunter2" }],
    ["retry.baseMs", { retry: { baseMs: 0 } }],
    ["jitter", { retry: { jitter: "hunter2" } }],
    ["inboxRetentionMs", { inboxRetentionMs: 60_000 }],
    ["use[0]", { use: ["hunter2"] }],
    ["routes", { routes: undefined }],
    ['routes["n.x"]', { routes: { "n.x": "hunter2" } }],
    ["consumer", { consumer: "" }],
    ["broker", { broker: undefined }],
  ];
  for (const [name, options] of wrong) {
    assert.throws(
      () => new InboundDispatcher({ broker, routes, ...options } as never),
      (error: Error) =>
        error instanceof InvalidOptionError && error.message.includes(name) && !/hunter2/.test(error.message),
      name,
    );
  }
});

test("run refuses no topics and unknown options", async () => {
  const rig = new Rig({ routes: { "n.step": () => {} } });
  await assert.rejects(rig.app.run([]), InvalidOptionError);
  await assert.rejects(rig.app.run(["t"], { drainMs: 3 } as never), InvalidOptionError);
});
