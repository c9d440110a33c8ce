/** What is over is over: contexts, middleware and timers do nothing behind the end of their unit. */
import assert from "node:assert/strict";
import type { Context, Middleware } from "../../core/dispatch/context.ts";
import { MemoryStore } from "../../core/store/memory_store.ts";
import { gate, Rig } from "./dispatch_rig.ts";
import { test } from "../support/test.ts";
import { VirtualClock } from "../support/virtual_clock.ts";

test("a context is closed once its handler threw", async () => {
  let kept: Context | undefined;
  const rig = new Rig({
    maxAttempts: 1,
    routes: {
      n: (_, ctx) => {
        kept = ctx as unknown as Context;
        throw new Error("no");
      },
    },
  });
  rig.deliver("n", "s");
  await rig.settle(1);
  assert.throws(() => kept!.publish("t", { type: "late" }), { code: "closed" });
});

test("a context is closed once its handler ran out of time", async () => {
  const go = gate();
  const thrown: unknown[] = [];
  const rig = new Rig({
    maxAttempts: 1,
    handlerTimeoutMs: 1_000,
    routes: {
      n: async (_, ctx) => {
        await go.promise;
        try {
          ctx.publish("t", { type: "late" });
        } catch (error) {
          thrown.push(error);
        }
      },
    },
  });
  rig.deliver("n", "s");
  await rig.settle(1);
  go.open();
  await rig.clock.flush();
  assert.deepEqual(thrown.map((error) => (error as { code: string }).code), ["closed"]);
});

test("next() behind the end of its middleware runs no handler", async () => {
  let later: (() => Promise<void>) | undefined;
  let handled = 0;
  const rig = new Rig({
    use: [(_, __, next) => {
      later = next;
    }],
    routes: { n: () => void handled++ },
  });
  rig.deliver("n", "s");
  await rig.settle(1);
  await assert.rejects(later!(), TypeError);
  assert.equal(handled, 0);
});

for (
  const [how, handler] of [
    ["throws", () => {
      throw new Error("at once");
    }],
    ["rejects", async () => {
      await Promise.resolve();
      throw new Error("late");
    }],
    ["rejects much later", async () => {
      for (let n = 0; n < 20; n++) await Promise.resolve();
      throw new Error("later");
    }],
  ] as const
) {
  const plain: Middleware = (_, __, next) => void next();
  const slow: Middleware = async (_, __, next) => {
    void next();
    await Promise.resolve();
  };
  for (const [which, step] of [["a", plain], ["a slow", slow]] as const) {
    test(`a handler that ${how} behind a next() that ${which} middleware did not wait for fails its event, and nothing else`, async () => {
      const use = [step];
      const rig = new Rig({ maxAttempts: 1, use: use as never, routes: { n: handler } });
      rig.deliver("n", "s");
      await rig.settle(1);
      // An unhandled rejection would end this process meanwhile.
      await rig.clock.flush();
      assert.deepEqual(rig.told, ["dead_lettered:max_attempts"]);
    });
  }
}

test("a middleware that catches what its next() rejects with has handled the event", async () => {
  const rig = new Rig({
    use: [(_, __, next) => next().catch(() => {})],
    routes: {
      n: () => {
        throw new Error("no");
      },
    },
  });
  rig.deliver("n", "s");
  await rig.settle(1);
  assert.deepEqual(rig.told, ["processed"]);
});

test("due timers of other dispatchers neither keep the timers busy nor hide ours", async () => {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock });
  const rig = new Rig({
    clock,
    store,
    routes: { n: (_, ctx) => void ctx.schedule(clock.now() + 500, "t", { type: "n2" }), n2: () => {} },
  });
  await store.transact({}, (unit) => {
    for (let n = 0; n < 250; n++) {
      unit.setTimer({ id: `${n}`, owner: "gone/s", dueAt: clock.now() - 1_000, envelope: "{}" });
    }
  });
  let looks = 0;
  const { due } = store.timers;
  store.timers.due = (now, limit) => {
    looks++;
    if (looks > 1_000) return new Promise(() => {});
    return due.call(store.timers, now, limit);
  };
  rig.deliver("n", "s");
  const run = rig.run();
  await clock.advance(10_000);
  rig.stop();
  await rig.finish(run);
  assert.ok(looks < 60, `it looked ${looks} times in 10 s`);
  assert.deepEqual(rig.broker.published.map(({ envelope }) => envelope.type), ["n2"]);
});

test("a handler cannot publish on a topic that no broker takes", async () => {
  const rig = new Rig({ maxAttempts: 1, routes: { n: (_, ctx) => void ctx.publish("x".repeat(201), { type: "m" }) } });
  rig.deliver("n", "s");
  await rig.settle(1);
  assert.equal((rig.ended[0]!.error as { code: string }).code, "invalid-option");
});

test("a drain waits for a timer that is late, and does not spin meanwhile", async () => {
  const clock = new VirtualClock();
  const timer = clock.timer.bind(clock);
  let lateMs = 0;
  clock.timer = (ms, run) => timer(ms + lateMs, run);
  let looks = 0;
  const monotonic = clock.monotonic.bind(clock);
  clock.monotonic = () => {
    if (++looks > 100_000) throw new Error("it spins");
    return monotonic();
  };
  let calls = 0;
  const rig = new Rig({
    clock,
    retry: { baseMs: 1_000, capMs: 1_000 },
    routes: {
      n: () => {
        if (calls++ === 0) throw new Error("once");
      },
    },
  });
  rig.deliver("n", "s");
  lateMs = 20;
  const run = rig.run();
  await clock.flush();
  lateMs = 0;
  const report = await rig.finish(run);
  assert.deepEqual([report.processed, report.released], [1, 0]);
});

test("a stopped run ends in its time though the downstream of its relay never answers", async () => {
  const rig = new Rig({ drainMs: 5_000, routes: { n: (_, ctx) => void ctx.publish("out", { type: "m" }) } });
  rig.broker.publishAll = () => new Promise(() => {});
  rig.deliver("n", "s");
  const run = rig.run();
  await rig.untilEnded(1);
  rig.stop();
  const before = rig.clock.monotonic();
  let over = false;
  void run.then(() => over = true);
  await rig.clock.advanceUntil(() => over, 60_000);
  assert.ok(rig.clock.monotonic() - before <= 10_000);
});
