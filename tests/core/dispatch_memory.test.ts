import assert from "node:assert/strict";
import { MemoryBroker } from "../../adapters/memory/mod.ts";
import { systemClock } from "../../core/clock.ts";
import { InboundDispatcher } from "../../core/dispatch/dispatcher.ts";
import type { Envelope } from "../../core/envelope.ts";
import { MemoryStore } from "../../core/store/memory_store.ts";
import { defineTopics, type Schema, typed } from "../../core/topics.ts";
import { fresh, test, until } from "../support/test.ts";
import { VirtualClock } from "../support/virtual_clock.ts";

/** Turns `{ total: "7" }` into `{ total: 7 }`, at once or later. */
function totals(later: boolean): Schema<{ total: string }, { total: number }> {
  const check = (value: unknown) => {
    const total = (value as { total?: unknown } | null)?.total;
    return typeof total === "string"
      ? { value: { total: Number(total) } }
      : { issues: [{ message: "total must be a text" }] };
  };
  return {
    "~standard": {
      version: 1,
      vendor: "test",
      validate: (value) => later ? Promise.resolve().then(() => check(value)) : check(value),
    },
  };
}

for (const later of [false, true]) {
  const kind = later ? "asynchronous" : "synchronous";
  const topics = defineTopics({ sums: { "n.sum": totals(later) }, plain: { "n.plain": typed<{ bad: boolean }>() } });

  test(`every attempt sees the output of an ${kind} schema, made anew`, async (t) => {
    const broker = new MemoryBroker({ topics, source: "/s", logger: false });
    t.cleanup(() => broker.close());
    const seen: unknown[] = [];
    const app = new InboundDispatcher({
      broker,
      retry: { baseMs: 1, capMs: 1 },
      logger: false,
      routes: {
        "n.sum": (envelope, ctx) => {
          seen.push({ ...envelope.data });
          (envelope.data as { total: number }).total = -1;
          if (ctx.attempt === 0) throw new Error("once");
        },
      },
    });
    await broker.publish("sums", { type: "n.sum", subject: "s", data: { total: "7" } });
    const report = await app.runOnce(["sums"]);
    assert.equal(report.processed, 1);
    assert.deepEqual(seen, [{ total: 7 }, { total: 7 }]);
  });

  test(`an event that does not pass an ${kind} schema fails the handler that publishes it, and nothing is stored`, async (t) => {
    const broker = new MemoryBroker({ topics, source: "/s", logger: false });
    t.cleanup(() => broker.close());
    const store = new MemoryStore();
    const app = new InboundDispatcher({
      broker,
      store,
      maxAttempts: 1,
      logger: false,
      routes: {
        "n.plain": (envelope, ctx) => {
          const data = (envelope.data.bad ? { total: 7 } : { total: "7" }) as { total: string };
          ctx.publish("sums", { type: "n.sum", subject: "s", data });
        },
      },
    });
    await broker.publish("plain", { type: "n.plain", subject: "s", data: { bad: true } });
    await broker.publish("plain", { type: "n.plain", subject: "s", data: { bad: false } });
    const report = await app.runOnce(["plain"]);
    assert.deepEqual(report.deadLettered, { max_attempts: 1 });
    assert.equal(report.processed, 1);
    assert.equal(report.relayed, 1);
    const [letter] = await store.deadLetters.list();
    assert.equal(letter!.errors[0]!.code, "schema-invalid");
  });
}

test("InboundDispatcher on the memory broker handles 1,000 deliveries with 100 duplicates, in order and once", async () => {
  const topic = fresh("orders");
  const broker = new MemoryBroker({ source: "/s", logger: false });
  const delivered: Envelope[] = [];
  for (let n = 0; n < 900; n++) {
    const envelope = await broker.publish(topic, { type: "n.counted", subject: `s${n % 10}`, data: n });
    delivered.push(envelope);
    if (n % 9 === 0) await broker.publish(topic, envelope);
  }
  const seen = new Map<string, unknown[]>();
  const app = new InboundDispatcher({
    broker,
    logger: false,
    routes: {
      "n.*": async (envelope) => {
        await new Promise<void>((resolve) => systemClock.turn(resolve));
        seen.set(envelope.subject!, [...(seen.get(envelope.subject!) ?? []), envelope.data]);
      },
    },
  });
  const report = await app.runOnce([topic]);
  assert.deepEqual([report.processed, report.duplicates], [900, 100]);
  for (const [subject, data] of seen) {
    assert.deepEqual(
      data,
      delivered.filter((envelope) => envelope.subject === subject).map((envelope) => envelope.data),
    );
  }
  assert.deepEqual(await broker.close(), { released: 0, unconfirmed: 0, terminated: false });
});

test("events that lead to events go round until the run is stopped, and what was begun is given back in order", async () => {
  const topic = fresh("orders");
  const broker = new MemoryBroker({ source: "/s", logger: false });
  const stop = new AbortController();
  let steps = 0;
  const app = new InboundDispatcher({
    broker,
    drainMs: 20,
    logger: false,
    routes: {
      "n.step": (envelope, ctx) => {
        steps++;
        const n = envelope.data as number;
        if (n < 20) ctx.publish(topic, { type: "n.step", subject: "s", data: n + 1 });
      },
      "n.hang": () => new Promise(() => {}),
    },
  });
  for (let n = 0; n < 3; n++) await broker.publish(topic, { type: "n.hang", subject: "h", data: n });
  await broker.publish(topic, { type: "n.step", subject: "s", data: 0 });
  const run = app.run([topic], { signal: stop.signal });
  await until(() => steps === 21);
  stop.abort();
  const report = await run;
  assert.equal(report.processed, 21);
  assert.equal(report.relayed, 20);
  assert.equal(report.released, 3);
  const left: unknown[] = [];
  for await (const delivery of broker.subscribe(topic, { idleMs: 0 })) {
    left.push(delivery.envelope.data);
    await delivery.ack();
  }
  assert.deepEqual(left, [0, 1, 2]);
  await broker.close();
});

test("a backlog of events that are handled at once leaves the event loop its turns", async () => {
  class Ticking extends VirtualClock {
    turns = 0;
    #tick = 0;
    override monotonic(): number {
      return this.#tick += 1;
    }
    override turn(run: () => void): void {
      this.turns++;
      super.turn(run);
    }
  }
  const clock = new Ticking();
  let delivered = 0;
  const broker = {
    topics: {},
    group: "g",
    source: "/s",
    capabilities: { deliveryCount: "exact", dedupWindowMs: 0 },
    recordUndecodableTo: () => {},
    // What was delivered, and acked, is not delivered again.
    subscribe: async function* () {
      while (delivered < 3_200) {
        const envelope = deliveries[delivered++]!;
        yield { envelope, topic: "t", attempt: 0, lost: false, ack: () => Promise.resolve("accepted") };
      }
    },
  };
  const source = new MemoryBroker({ source: "/s", logger: false });
  const deliveries = await source.publishAll(
    "t",
    [...Array(3_200).keys()].map((n) => ({ type: "n.step", subject: `s${n}` })),
  );
  await source.close();
  const app = new InboundDispatcher({
    broker: broker as never,
    clock,
    relay: false,
    logger: false,
    routes: { "n.step": () => {} },
  });
  const report = await app.runOnce(["t"]);
  assert.equal(report.processed, 3_200);
  assert.ok(clock.turns >= 190, `${clock.turns} turns`);
});

test("runOnce takes all that is ready, also where the window is full whenever it asks for more", async (t) => {
  for (const waits of [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32]) {
    const broker = new MemoryBroker({ prefetch: 1, source: "/s", logger: false });
    t.cleanup(() => broker.close());
    const app = new InboundDispatcher({
      broker,
      logger: false,
      routes: {
        n: async () => {
          for (let n = 0; n < waits; n++) await Promise.resolve();
        },
      },
    });
    for (let n = 0; n < 10; n++) await broker.publish("t", { type: "n", subject: `s${n}` });
    assert.equal((await app.runOnce(["t"])).processed, 10, `with handlers that take ${waits} turns`);
  }
});
