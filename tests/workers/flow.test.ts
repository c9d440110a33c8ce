import assert from "node:assert/strict";
import type { ToHost, ToSession } from "../../core/session/messages.ts";
import { MemoryBroker } from "../../adapters/memory/mod.ts";
import { fresh, test, within } from "../support/test.ts";
import { fixture, FixtureBroker } from "./fixtures/fixture_broker.ts";
import { TapLink } from "./fixtures/tap_link.ts";

/** Counts what the session sent and has not been given back; remembers the most. */
class Window {
  open = 0;
  most = 0;
  frames = 0;

  in(message: ToHost): void {
    if (message.k === "deliver") {
      this.frames++;
      this.open += message.texts.length;
      this.most = Math.max(this.most, this.open);
    } else if (message.k === "lost") this.open -= countOf(message.ids);
  }

  out(message: ToSession): void {
    if (message.k === "settle") this.open -= countOf(message.acks) + countOf(message.drops);
  }
}

function countOf(ranges: readonly number[] = []): number {
  let count = 0;
  for (let at = 0; at < ranges.length; at += 2) count += ranges[at + 1]! - ranges[at]! + 1;
  return count;
}

for (const isolation of ["worker", "inline"] as const) {
  for (const prefetch of [1, 2, 7, 64, 256]) {
    test(`${isolation}: what the session sends and has not got back never exceeds a prefetch of ${prefetch}`, async (context) => {
      const window = new Window();
      const broker = fixture(context, { isolation, prefetch, tap: (link) => new TapLink(link, window) });
      const topic = fresh("t");
      const total = 1_000;
      const messages = Array.from({ length: total }, (_, n) => ({ type: "n", subject: `s${n % 50}`, data: n }));
      await broker.publishAll(topic, messages);
      const seen = new Set<unknown>();
      let held: { ack(): unknown }[] = [];
      for await (const delivery of broker.subscribe(topic)) {
        // Some at once, some in batches the other way round, some held back first.
        if (delivery.attempt === 0 && seen.size % 97 === 3) {
          await delivery.retry({ delayMs: 5 });
          continue;
        }
        seen.add(delivery.envelope.data);
        held.push(delivery);
        if (held.length >= Math.min(prefetch, 5) || seen.size >= total - prefetch) {
          for (const one of held.reverse()) await one.ack();
          held = [];
        }
        if (seen.size === total) break;
      }
      assert.ok(window.most <= prefetch, `${window.most} at once`);
      assert.ok(window.most > prefetch / 2, `the window is used: ${window.most}`);
      assert.equal((await broker.close()).unconfirmed, 0);
    });
  }

  test(`${isolation}: frames carry many messages where there are many`, async (context) => {
    const window = new Window();
    const broker = fixture(context, { isolation, prefetch: 256, tap: (link) => new TapLink(link, window) });
    const topic = fresh("t");
    await broker.publishAll(topic, Array.from({ length: 5_000 }, () => ({ type: "n" })));
    let count = 0;
    for await (const delivery of broker.subscribe(topic, { idleMs: 0 })) {
      count++;
      await delivery.ack();
    }
    assert.equal(count, 5_000);
    assert.ok(window.frames <= 5_000 / 50, `${window.frames} frames`);
    await broker.close();
  });
}

/** The longest that a timer of the host was kept waiting while `work` ran, and how often it fired. */
async function measured(work: () => Promise<void>): Promise<{ worstMs: number; fired: number; tookMs: number }> {
  const everyMs = 5;
  const start = performance.now();
  let last = start;
  let worstMs = 0;
  let fired = 0;
  const timer = setInterval(() => {
    const now = performance.now();
    worstMs = Math.max(worstMs, now - last - everyMs);
    last = now;
    fired++;
  }, everyMs);
  try {
    await work();
    worstMs = Math.max(worstMs, performance.now() - last - everyMs);
  } finally {
    clearInterval(timer);
  }
  return { worstMs, fired, tookMs: performance.now() - start };
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
      const { worstMs, fired, tookMs } = await measured(async () => {
        let count = 0;
        for await (const delivery of broker.subscribe(topic)) {
          void delivery.ack();
          if (++count === total) break;
        }
      });
      assert.ok(worstMs < 100, `a timer waited ${Math.round(worstMs)} ms of ${Math.round(tookMs)}`);
      assert.ok(fired >= tookMs / 50, `${fired} times in ${Math.round(tookMs)} ms`);
      await broker.close();
    },
  );

  test(`${name}: timers of the host are kept waiting by one handler that computes, not by all that are ready`, async (context) => {
    const broker = make();
    context.cleanup(() => broker.close());
    const topic = fresh("t");
    await broker.publishAll(topic, Array.from({ length: 60 }, () => ({ type: "n" })));
    const { worstMs } = await measured(async () => {
      for await (const delivery of broker.subscribe(topic, { idleMs: 0 })) {
        spin(10);
        void delivery.ack();
      }
    });
    assert.ok(worstMs < 80, `a timer waited ${Math.round(worstMs)} ms`);
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
    const { worstMs } = await measured(async () => {
      for (let round = 0; round < 30; round++) {
        await Promise.all(Array.from({ length: 500 }, () => broker.publish(topic, { type: "n" })));
      }
    });
    assert.ok(worstMs < 150, `a timer waited ${Math.round(worstMs)} ms`);
    await within(5_000, "close", broker.close());
  },
);
