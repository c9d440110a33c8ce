import assert from "node:assert/strict";
import { MemoryBroker } from "../../adapters/memory/mod.ts";
import { fresh, test, within } from "../support/test.ts";
import { fixture, FixtureBroker } from "./fixtures/fixture_broker.ts";

/** What a timer of the host met while `work` ran. */
interface Measured {
  /** The longest that it was kept waiting. */
  readonly worstMs: number;
  readonly fired: number;
  readonly tookMs: number;
  /** The most steps of the work between two firings: what starving means, however slow the machine is. */
  readonly steps: number;
}

async function measured(work: (step: () => void) => Promise<void>): Promise<Measured> {
  const everyMs = 5;
  const start = performance.now();
  let last = start;
  let worstMs = 0;
  let fired = 0;
  let since = 0;
  let steps = 0;
  const look = (): void => {
    const now = performance.now();
    worstMs = Math.max(worstMs, now - last - everyMs);
    steps = Math.max(steps, since);
    last = now;
    since = 0;
  };
  const timer = setInterval(() => {
    look();
    fired++;
  }, everyMs);
  try {
    await work(() => void since++);
    look();
  } finally {
    clearInterval(timer);
  }
  return { worstMs, fired, tookMs: performance.now() - start, steps };
}

/** It fired all the time, and no single wait was most of it. A machine with other work keeps everybody waiting at times. */
function assertNotStarved({ worstMs, fired, tookMs }: Measured): void {
  const text = `fired ${fired} times in ${Math.round(tookMs)} ms, waited ${Math.round(worstMs)} ms at worst`;
  assert.ok(worstMs < Math.max(100, tookMs / 2), text);
  assert.ok(fired >= tookMs / 100, text);
}

function spin(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

const makers: readonly (readonly [string, () => FixtureBroker | MemoryBroker])[] = [
  ["worker", () => new FixtureBroker({ prefetch: 1_000 })],
  ["inline", () => new FixtureBroker({ isolation: "inline", prefetch: 1_000 })],
  ["memory", () => new MemoryBroker({ source: "/t", logger: false, prefetch: 1_000 })],
  ["memory, one at a time", () => new MemoryBroker({ source: "/t", logger: false, prefetch: 1 })],
];

for (const [name, make] of makers) {
  test(
    `${name}: timers of the host go on firing while it consumes at full speed`,
    { timeoutMs: 60_000 },
    async (context) => {
      const broker = make();
      context.cleanup(() => broker.close());
      const topic = fresh("t");
      const total = 30_000;
      for (let n = 0; n < total; n += 5_000) {
        await broker.publishAll(topic, Array.from({ length: 5_000 }, () => ({ type: "n" })));
      }
      const met = await measured(async () => {
        let count = 0;
        for await (const delivery of broker.subscribe(topic)) {
          void delivery.ack();
          if (++count === total) break;
        }
      });
      assertNotStarved(met);
      await broker.close();
    },
  );

  test(`${name}: timers of the host are kept waiting by one handler that computes, not by all that are ready`, async (context) => {
    const broker = make();
    context.cleanup(() => broker.close());
    const topic = fresh("t");
    await broker.publishAll(topic, Array.from({ length: 60 }, () => ({ type: "n" })));
    const { steps } = await measured(async (step) => {
      for await (const delivery of broker.subscribe(topic, { idleMs: 0 })) {
        spin(10);
        step();
        void delivery.ack();
      }
    });
    assert.ok(steps <= 6, `a timer waited for ${steps} handlers of 10 ms`);
    await broker.close();
  });
}

test(
  "worker: publishing as fast as it goes leaves timers of the host their turn",
  { timeoutMs: 60_000 },
  async (context) => {
    const broker = fixture(context);
    const topic = fresh("t");
    await broker.connect();
    const met = await measured(async () => {
      for (let round = 0; round < 30; round++) {
        await Promise.all(Array.from({ length: 500 }, () => broker.publish(topic, { type: "n" })));
      }
    });
    assertNotStarved(met);
    await within(5_000, "close", broker.close());
  },
);
