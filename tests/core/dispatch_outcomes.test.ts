import assert from "node:assert/strict";
import { createEnvelope, textOf } from "../../core/codec.ts";
import type { Envelope } from "../../core/envelope.ts";
import { EventRejectedError } from "../../core/errors.ts";
import { MemoryStore } from "../../core/store/memory_store.ts";
import { test } from "../support/test.ts";
import { VirtualClock } from "../support/virtual_clock.ts";
import { type AnyHandler, gate, Rig } from "./dispatch_rig.ts";

const DAY = 24 * 3_600_000;

class NotRetriable extends Error {
  override readonly name = "NotRetriable";
}

/** What a handler may do to fail, and the name under which the dead letter shows it. */
const FAILURES: readonly (readonly [what: string, run: AnyHandler, name: string])[] = [
  ["throws an Error", () => {
    throw new Error("x");
  }, "Error"],
  ["throws a subclass", () => {
    throw new NotRetriable("x");
  }, "NotRetriable"],
  ["throws a string", () => {
    throw "x";
  }, "string"],
  ["throws undefined", () => {
    throw undefined;
  }, "undefined"],
  ["throws null", () => {
    throw null;
  }, "null"],
  ["throws a frozen object", () => {
    throw Object.freeze({ why: "x" });
  }, "object"],
  ["throws an object with hostile getters", () => {
    throw Object.defineProperty({}, "message", {
      get() {
        throw new Error("no");
      },
    });
  }, "object"],
  ["answers a rejected promise", () => Promise.reject(new TypeError("x")), "TypeError"],
  ["answers a promise rejected with undefined", () => Promise.reject(undefined), "undefined"],
  ["throws after its first await", async () => {
    await null;
    throw new RangeError("x");
  }, "RangeError"],
  ["answers a thenable that rejects", () => ({
    then: (_: unknown, reject: (error: unknown) => void) => reject(new SyntaxError("x")),
  }), "SyntaxError"],
  ["answers a thenable that throws", () => ({
    then: () => {
      throw new EvalError("x");
    },
  }), "EvalError"],
  ["throws an AbortError of its own", () => {
    throw new DOMException("aborted", "AbortError");
  }, "AbortError"],
];

for (const [what, run, name] of FAILURES) {
  test(`a handler that ${what} has failed: it is tried again, then given up with the cause (COR-07)`, async () => {
    let runs = 0;
    const rig = new Rig({
      maxAttempts: 2,
      routes: {
        "n.step": (envelope, ctx) => {
          runs++;
          return run(envelope, ctx);
        },
      },
    });
    rig.deliver("n.step", "s");
    await rig.settle(1);
    assert.deepEqual(rig.told, ["retry", "dead_lettered:max_attempts"]);
    assert.equal(runs, 2);
    const [letter] = await rig.store.deadLetters.list();
    assert.equal(letter!.errors[0]!.name, name);
  });
}

for (const value of [undefined, null, 0, "", false, "ignored", { done: true }, () => {}]) {
  test(`a handler that answers ${typeof value} ${String(value).slice(0, 9)} has handled the event (COR-07)`, async () => {
    const rig = new Rig({ routes: { "n.now": () => value, "n.later": () => Promise.resolve(value) } });
    rig.deliver("n.now", "s");
    rig.deliver("n.later", "s");
    await rig.settle(2);
    assert.deepEqual(rig.told, ["processed", "processed"]);
  });
}

test("a handler whose promise never settles fails at its time limit, its signal aborted, and the subject goes on (COR-07)", async () => {
  const signals: AbortSignal[] = [];
  const rig = new Rig({
    maxAttempts: 2,
    handlerTimeoutMs: 5_000,
    routes: {
      "n.hang": (_, ctx) => {
        signals.push(ctx.signal);
        return new Promise(() => {});
      },
      "n.step": () => {},
    },
  });
  rig.deliver("n.hang", "s");
  rig.deliver("n.step", "s");
  const run = rig.run();
  await rig.clock.advance(4_999);
  assert.deepEqual(rig.told, []);
  await rig.clock.advance(1);
  assert.deepEqual(rig.told, ["retry"]);
  assert.equal(signals[0]!.aborted, true);
  assert.equal((signals[0]!.reason as Error).name, "HandlerTimeoutError");
  await rig.untilEnded(2);
  assert.deepEqual(rig.told, ["retry", "dead_lettered:max_attempts", "processed"]);
  await rig.finish(run);
});

test("what a handler does after its time limit has no effect", async () => {
  const late = gate();
  const errors: unknown[] = [];
  const rig = new Rig({
    handlerTimeoutMs: 1_000,
    routes: {
      "n.step": async (_, ctx) => {
        if (ctx.attempt > 0) return;
        await late.promise;
        try {
          ctx.publish("out", { type: "n.out" });
        } catch (error) {
          errors.push(error);
        }
      },
    },
  });
  rig.deliver("n.step", "s");
  const run = rig.run();
  await rig.untilEnded(1);
  late.open();
  await rig.clock.flush();
  await rig.finish(run);
  assert.deepEqual(rig.told, ["retry", "processed"]);
  assert.equal(rig.broker.published.length, 0);
});

test("a context that is used after its handler has ended throws", async () => {
  const errors: unknown[] = [];
  const after = gate();
  const rig = new Rig({
    routes: {
      "n.step": (_, ctx) => {
        void after.promise.then(() => ctx.publish("out", { type: "n.out" })).catch((error) => errors.push(error));
      },
    },
  });
  rig.deliver("n.step", "s");
  await rig.settle(1);
  after.open();
  await rig.clock.flush();
  assert.equal((errors[0] as { code?: string }).code, "closed");
});

test("an event that no route takes is a dead letter, never a silent ack (COR-06)", async () => {
  const rig = new Rig({ routes: { "n.a": () => {} } });
  const sent = rig.deliver("n.b", "s", { data: { keep: 1 } });
  const report = await rig.settle(1);
  assert.deepEqual(report.deadLettered, { unknown_event: 1 });
  const [letter] = await rig.store.deadLetters.list();
  assert.equal(letter!.reason, "unknown_event");
  assert.equal(letter!.body, textOf(sent));
  assert.deepEqual(rig.broker.acked, [sent.id]);
});

test("an event that no route takes is acked without a record where that was asked for (COR-06)", async () => {
  const rig = new Rig({ onUnknown: "ignore", routes: { "n.a": () => {} } });
  const sent = rig.deliver("n.b", "s");
  const report = await rig.settle(1);
  assert.equal(report.ignored, 1);
  assert.deepEqual(await rig.store.deadLetters.list(), []);
  assert.deepEqual(rig.broker.acked, [sent.id]);
});

test("a handler that fails leaves no receipt, and its next attempt runs (COR-02)", async () => {
  let runs = 0;
  const rig: Rig = new Rig({
    routes: {
      "n.step": async () => {
        const key = { consumer: "test", source: "/fake", id: "e-1" };
        assert.equal(await rig.store.inbox.get(key), undefined);
        if (++runs === 1) throw new Error("first");
      },
    },
  });
  rig.deliver("n.step", "s", { id: "e-1" });
  await rig.settle(1);
  assert.equal(runs, 2);
  assert.deepEqual(rig.told, ["retry", "processed"]);
});

test("an event whose unit was stored but whose ack was lost is acked without a second run (COR-02, COR-03)", async () => {
  let runs = 0;
  const rig = new Rig({
    maxAttempts: 2,
    routes: { "n.step": () => void runs++ },
  });
  rig.broker.ackFaults = [new Error("gone"), "stale", new Error("gone"), "stale", new Error("gone"), "stale"];
  const sent = rig.deliver("n.step", "s");
  const report = await rig.settle(7);
  assert.equal(runs, 1);
  assert.equal(report.processed, 1);
  assert.equal(report.duplicates, 6);
  assert.equal(report.staleSettles, 6);
  assert.deepEqual(report.deadLettered, {});
  assert.deepEqual(rig.broker.acked, [sent.id]);
  assert.equal(rig.broker.unsettled("t"), 0);
});

test("duplicates are acked however often the broker says it delivered them (COR-03)", async () => {
  let runs = 0;
  const rig = new Rig({ maxAttempts: 3, routes: { "n.step": () => void runs++ } });
  const sent = rig.deliver("n.step", "s");
  for (let attempt = 1; attempt < 10; attempt++) rig.broker.deliver("t", sent, attempt);
  const report = await rig.settle(10);
  assert.equal(runs, 1);
  assert.equal(report.duplicates, 9);
  assert.deepEqual(report.deadLettered, {});
});

test("a duplicate is no warning and no error (COR-21)", async () => {
  const rig = new Rig({ routes: { "n.step": () => {} } });
  const sent = rig.deliver("n.step", "s");
  rig.broker.deliver("t", sent);
  await rig.settle(2);
  assert.deepEqual(rig.logs.filter(({ level }) => level === "warn" || level === "error"), []);
});

test("the same id and source with other content is given up, and the receipt stays that of the first", async () => {
  const rig = new Rig({ routes: { "n.step": () => {} } });
  rig.deliver("n.step", "s", { id: "e-1", data: { total: 1 } });
  rig.deliver("n.step", "s", { id: "e-1", data: { total: 2 } });
  rig.deliver("n.step", "s", { id: "e-1", data: { total: 1 } });
  const report = await rig.settle(3);
  assert.deepEqual(rig.told, ["processed", "dead_lettered:idempotency_mismatch", "duplicate"]);
  assert.deepEqual(report.deadLettered, { idempotency_mismatch: 1 });
});

test("events are told apart by consumer, source and id as they stand (COR-19)", async () => {
  const seen: string[] = [];
  const store = new MemoryStore();
  const first = new Rig({ store, consumer: "one", routes: { "*": (envelope) => void seen.push(envelope.id) } });
  const identities = [
    ["a|b", "c"],
    ["a", "b|c"],
    ["ab", "c"],
    ["a", "bc"],
    ["n", "\u00e9"],
    ["n", "e\u0301"],
    ["A", "x"],
    ["a", "x"],
    ["a", "x "],
    ["1:a", "b"],
  ] as const;
  for (const [source, id] of identities) first.deliver("n.step", "s", { source, id });
  const report = await first.settle(identities.length);
  assert.equal(report.processed, identities.length);
  assert.equal(report.duplicates, 0);
  const second = new Rig({ store, consumer: "two", routes: { "*": (envelope) => void seen.push(envelope.id) } });
  second.deliver("n.step", "s", { source: "a", id: "x" });
  assert.equal((await second.settle(1)).processed, 1);
  assert.equal(seen.length, identities.length + 1);
});

test("a receipt expires by its own retention, purged or not, and is written anew (COR-18)", async () => {
  let runs = 0;
  const rig = new Rig({ inboxRetentionMs: DAY, routes: { "n.step": () => void runs++ } });
  const sent = rig.deliver("n.step", "s");
  const run = rig.run();
  await rig.untilEnded(1);
  // The purge has its own pace; a call right at the edge must not depend on it.
  rig.store.inbox.purge = () => Promise.resolve(0);
  await rig.clock.jump(DAY + 1);
  rig.broker.deliver("t", sent);
  await rig.untilEnded(2);
  await rig.clock.advance(1);
  rig.broker.deliver("t", sent);
  await rig.untilEnded(3);
  await rig.finish(run);
  assert.deepEqual(rig.told, ["processed", "processed", "duplicate"]);
  assert.equal(runs, 2);
});

test("expired receipts are removed while a run goes on, others stay (COR-18)", async () => {
  const rig = new Rig({ routes: { "n.step": () => {} } });
  rig.deliver("n.step", "s", { id: "old" });
  const run = rig.run();
  await rig.clock.jump(6 * DAY);
  rig.deliver("n.step", "s", { id: "new" });
  await rig.clock.jump(DAY + 2 * 3_600_000);
  await rig.finish(run);
  const get = (id: string) => rig.store.inbox.get({ consumer: "test", source: "/fake", id });
  assert.equal(await get("old"), undefined);
  assert.notEqual(await get("new"), undefined);
});

test("a handler that changes its data and fails is given the original again, and so is the dead letter (CE-18)", async () => {
  const seen: unknown[] = [];
  const rig = new Rig({
    maxAttempts: 2,
    routes: {
      "n.step": (envelope) => {
        const data = envelope.data as Record<string, unknown>;
        seen.push({ ...data });
        data["changed"] = true;
        throw new Error("no");
      },
    },
  });
  const sent = rig.deliver("n.step", "s", { data: { total: 1 } });
  await rig.settle(1);
  assert.deepEqual(seen, [{ total: 1 }, { total: 1 }]);
  const [letter] = await rig.store.deadLetters.list();
  assert.equal(letter!.body, textOf(sent));
});

test("a handler gives an event up at once with an EventRejectedError", async () => {
  const rig = new Rig({
    routes: {
      "n.step": () => {
        throw new EventRejectedError("invalid", "no total");
      },
    },
  });
  rig.deliver("n.step", "s");
  await rig.settle(1);
  assert.deepEqual(rig.told, ["dead_lettered:invalid"]);
});

test("ctx.ignore reports the event as ignored, and what was asked for is stored", async () => {
  const rig = new Rig({
    routes: {
      "n.step": (_, ctx) => {
        ctx.publish("out", { type: "n.out" });
        ctx.ignore();
      },
    },
  });
  const sent = rig.deliver("n.step", "s");
  rig.broker.deliver("t", sent);
  const report = await rig.settle(2);
  assert.deepEqual(rig.told, ["ignored", "duplicate"]);
  assert.equal(report.relayed, 1);
});

test("failures are counted per event in the store, across deliveries and dispatchers", async () => {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock });
  const failing: AnyHandler = () => {
    throw new Error("no");
  };
  const first = new Rig({ clock, store, maxAttempts: 3, drainMs: 0, routes: { "n.step": failing } });
  const sent = first.deliver("n.step", "s");
  const run = first.run();
  await clock.flush();
  await first.finish(run);
  assert.deepEqual(first.told, ["retry", "released"]);
  const second = new Rig({ clock, store, maxAttempts: 3, routes: { "n.step": failing } });
  second.broker.deliver("t", sent);
  await second.settle(1);
  assert.deepEqual(second.told, ["retry", "dead_lettered:max_attempts"]);
  assert.equal(await store.failures.get({ consumer: "test", source: sent.source, id: sent.id }), undefined);
});

test("a success forgets the failures before it", async () => {
  const rig = new Rig({
    routes: {
      "n.step": (_, ctx) => {
        if (ctx.attempt === 0) throw new Error("no");
      },
    },
  });
  const sent = rig.deliver("n.step", "s");
  await rig.settle(1);
  assert.equal(await rig.store.failures.get({ consumer: "test", source: sent.source, id: sent.id }), undefined);
});

test("an event delivered 20 times is given up unseen where only an exact broker count outlives the process", async () => {
  let runs = 0;
  const rig = new Rig({ routes: { "n.step": () => void runs++ } });
  rig.deliver("n.step", "s", { id: "killer" });
  rig.broker.deliver(
    "t",
    createEnvelope({ type: "n.step", id: "other", source: "/x" }, {
      now: () => 0,
      nextId: () => "",
    }, 10_000),
    20,
  );
  await rig.settle(2);
  assert.deepEqual(rig.told, ["processed", "dead_lettered:max_attempts"]);
  assert.equal(runs, 1);
  const hint = new Rig({
    fake: { capabilities: { deliveryCount: "hint" } },
    routes: { "n.step": () => void runs++ },
  });
  const again: Envelope = hint.deliver("n.step", "s");
  hint.broker.deliver("t", again, 20);
  await hint.settle(2);
  assert.deepEqual(hint.told, ["processed", "duplicate"]);
  assert.equal(hint.logs.filter(({ message }) => message.includes("across restarts")).length, 1);
});
