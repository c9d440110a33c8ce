import assert from "node:assert/strict";
import { test } from "../support/test.ts";
import { Rig } from "./dispatch_rig.ts";

test("middleware runs around the handler, the first one outermost, inside the unit", async () => {
  const steps: string[] = [];
  const rig = new Rig({
    use: [
      async (envelope, ctx, next) => {
        steps.push(`outer in ${envelope.type} ${ctx.topic}`);
        await next();
        ctx.publish("audit", { type: "n.audited" });
        steps.push("outer out");
      },
      async (_, __, next) => {
        steps.push("inner in");
        await next();
        steps.push("inner out");
      },
    ],
    routes: { "n.step": () => void steps.push("handler") },
  });
  rig.deliver("n.step", "s");
  const report = await rig.settle(1);
  assert.deepEqual(steps, ["outer in n.step t", "inner in", "handler", "inner out", "outer out"]);
  assert.equal(report.relayed, 1);
});

test("a handler's error passes through the middleware, which may turn it into something else", async () => {
  const seen: unknown[] = [];
  const rig = new Rig({
    use: [async (_, __, next) => {
      try {
        await next();
      } catch (error) {
        seen.push(error);
      }
    }],
    routes: {
      "n.step": () => {
        throw "boom";
      },
    },
  });
  rig.deliver("n.step", "s");
  await rig.settle(1);
  assert.deepEqual(seen, ["boom"]);
  assert.deepEqual(rig.told, ["processed"]);
});

test("a middleware that does not call next skips the handler, and the event counts as handled", async () => {
  let runs = 0;
  const rig = new Rig({ use: [() => {}], routes: { "n.step": () => void runs++ } });
  rig.deliver("n.step", "s");
  await rig.settle(1);
  assert.equal(runs, 0);
  assert.deepEqual(rig.told, ["processed"]);
});

test("calling next twice is an error", async () => {
  let runs = 0;
  const rig = new Rig({
    maxAttempts: 1,
    use: [async (_, __, next) => {
      await next();
      await next();
    }],
    routes: { "n.step": () => void runs++ },
  });
  rig.deliver("n.step", "s");
  await rig.settle(1);
  assert.equal(runs, 1);
  assert.deepEqual(rig.told, ["dead_lettered:max_attempts"]);
  const [letter] = await rig.store.deadLetters.list();
  assert.match(letter!.errors[0]!.message, /next\(\) was called twice/);
});

test("a middleware that does not wait for next is an error, because the handler still works in the unit", async () => {
  const rig: Rig = new Rig({
    maxAttempts: 1,
    use: [(_, __, next) => {
      void next();
    }],
    routes: { "n.step": () => new Promise<void>((resolve) => rig.clock.turn(resolve)) },
  });
  rig.deliver("n.step", "s");
  await rig.settle(1);
  assert.deepEqual(rig.told, ["dead_lettered:max_attempts"]);
});
