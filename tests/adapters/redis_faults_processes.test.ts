import assert from "node:assert/strict";
import { onLeg, type TestContext, until } from "../support/test.ts";
import type { ConsumerLine } from "./faults_consumer.ts";
import { assertFirstInOrder, Collector, Consumer, events, makeBroker, space, TOPIC } from "./redis_faults_rig.ts";

const onRedis = onLeg("redis");
const LEASE_MS = 600;
const PREFETCH = 16;
const options = { ownerLeaseMs: LEASE_MS, prefetch: PREFETCH };

/** A consumer in a process of its own that owns the topic and is in the middle of its work, and one here that stands by. */
async function midWork(context: TestContext, url: string): Promise<{ consumer: Consumer; collector: Collector }> {
  const own = space(url);
  const publisher = makeBroker(context, own);
  const consumer = new Consumer(context, { broker: { ...own, ...options }, slowMs: 15 });
  await consumer.said((line) => line.what === "state" && line.state === "active");
  const broker = makeBroker(context, { ...own, ...options });
  const collector = new Collector(context, broker);
  await until(() => broker.health().topics[0]?.state === "standby", { what: "the second one to stand by" });
  await publisher.publishAll(TOPIC, events(0, 60));
  await consumer.said((line) => line.what === "settled" && line.n === 10);
  assert.deepEqual(collector.numbers, []);
  return { consumer, collector };
}

/** What its settle of an event came to. */
async function settledBy(consumer: Consumer, n: number): Promise<Extract<ConsumerLine, { what: "settled" }>> {
  return await consumer.said((line) => line.what === "settled" && line.n === n) as never;
}

const all = Array.from({ length: 60 }, (_, n) => n);

onRedis("a consumer that is killed is taken over within its lease and a second; nothing is lost, order stands", {
  timeoutMs: 60_000,
}, async ({ url }, context) => {
  const { consumer, collector } = await midWork(context, url);
  consumer.child.kill("SIGKILL");
  const killedAt = performance.now();
  await consumer.child.done;
  await collector.has(all.slice(consumer.got.length));
  const tookMs = collector.got[0]!.at - killedAt;
  assert.ok(tookMs < LEASE_MS + 1_000, `taken over after ${Math.round(tookMs)} ms`);
  const sequence = [...consumer.got, ...collector.numbers];
  assert.deepEqual([...new Set(sequence)].sort((a, b) => a - b), all, "nothing is lost");
  assertFirstInOrder(sequence);
  const twice = sequence.length - new Set(sequence).size;
  assert.ok(twice <= PREFETCH, `${twice} came twice`);
});

onRedis(
  "a frozen consumer is taken over within its lease and a second; its late acks take no effect and it stands by",
  {
    timeoutMs: 60_000,
  },
  async ({ url }, context) => {
    const { consumer, collector } = await midWork(context, url);
    consumer.child.kill("SIGSTOP");
    const frozenAt = performance.now();
    await collector.has(all.slice(-1));
    const tookMs = collector.got[0]!.at - frozenAt;
    assert.ok(tookMs < LEASE_MS + 1_000, `taken over after ${Math.round(tookMs)} ms`);
    const before = consumer.got;
    const sequence = [...before, ...collector.numbers];
    assert.deepEqual([...new Set(sequence)].sort((a, b) => a - b), all, "nothing is lost");
    assertFirstInOrder(sequence);
    assert.ok(sequence.length - new Set(sequence).size <= PREFETCH);

    consumer.child.kill("SIGCONT");
    await consumer.said((line) => line.what === "state" && line.state === "standby");
    const last = before.at(-1)!;
    assert.equal((await settledBy(consumer, last)).outcome, "stale");
    assert.equal(collector.numbers.filter((n) => n === last).length, 1, "the new owner settled it");
    await collector.stop();
    assert.deepEqual(consumer.got.filter((n) => !before.includes(n)), [], "it started nothing that it had lost");
  },
);

onRedis("a consumer that was frozen and stands by takes over when the new owner closes", {
  timeoutMs: 60_000,
}, async ({ url }, context) => {
  const own = space(url);
  const publisher = makeBroker(context, own);
  const consumer = new Consumer(context, { broker: { ...own, ...options } });
  await consumer.said((line) => line.what === "state" && line.state === "active");
  const broker = makeBroker(context, { ...own, ...options });
  const collector = new Collector(context, broker);
  await publisher.publishAll(TOPIC, events(0, 5));
  await consumer.said((line) => line.what === "settled" && line.n === 4);
  consumer.child.kill("SIGSTOP");
  await publisher.publishAll(TOPIC, events(5, 10));
  await collector.has([5, 6, 7, 8, 9]);
  consumer.child.kill("SIGCONT");
  await consumer.said((line) => line.what === "state" && line.state === "standby");
  await publisher.publishAll(TOPIC, events(10, 15));
  await collector.has([10, 11, 12, 13, 14]);
  assert.deepEqual(consumer.got, [0, 1, 2, 3, 4]);
  await broker.close();
  await publisher.publishAll(TOPIC, events(15, 20));
  await consumer.said((line) => line.what === "settled" && line.n === 19);
  assert.deepEqual(consumer.got, [0, 1, 2, 3, 4, 15, 16, 17, 18, 19]);
  await consumer.close();
});

onRedis(
  "in a worker, a handler that computes for three leases costs no redelivery, no reconnect and no partition (COR-13)",
  {
    timeoutMs: 60_000,
  },
  async ({ url }, context) => {
    const own = space(url);
    const publisher = makeBroker(context, own);
    await publisher.publishAll(TOPIC, events(0, 10));
    const consumer = new Consumer(context, { broker: { ...own, ...options }, burnMs: 3 * LEASE_MS });
    await consumer.said((line) => line.what === "burning");
    const collector = new Collector(context, makeBroker(context, { ...own, ...options }));
    await consumer.said((line) => line.what === "settled" && line.n === 9);
    assert.deepEqual(collector.numbers, [], "the one that stands by gets nothing");
    assert.deepEqual(consumer.got, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    for (const line of consumer.lines) {
      if (line.what === "got") assert.equal(line.attempt, 0);
      if (line.what === "settled") assert.deepEqual([line.outcome, line.lost], ["settled", false]);
      if (line.what === "state") assert.ok(["starting", "active"].includes(line.state), line.state);
    }
    await collector.stop();
    const counters = await consumer.close();
    assert.equal(counters["disconnects"], undefined);
    assert.equal(counters["worker-restarts"], undefined);
  },
);

onRedis("inline, a handler that computes for three leases loses its partition, learns so, and stands by (COR-13)", {
  timeoutMs: 60_000,
}, async ({ url }, context) => {
  const own = space(url);
  const publisher = makeBroker(context, own);
  await publisher.publishAll(TOPIC, events(0, 10));
  const broker = { ...own, ...options, isolation: "inline" } as const;
  // Connected before, so that it has the whole time of the computing to take over.
  const second = makeBroker(context, { ...own, ...options });
  await second.connect();
  const consumer = new Consumer(context, { broker, burnMs: 3 * LEASE_MS });
  await consumer.said((line) => line.what === "burning");
  const collector = new Collector(context, second);
  await collector.has([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  assert.equal((await settledBy(consumer, 0)).outcome, "stale");
  await consumer.said((line) => line.what === "state" && line.state === "standby");
  assert.deepEqual(consumer.got, [0], "it started nothing that it had lost");
  await collector.stop();
  await consumer.close();
});

onRedis("a host that computes for longer than maxStallMs gives everything back, and consumes again after that", {
  timeoutMs: 60_000,
}, async ({ url }, context) => {
  const own = space(url);
  const publisher = makeBroker(context, own);
  await publisher.publishAll(TOPIC, events(0, 10));
  const consumer = new Consumer(context, { broker: { ...own, ...options, maxStallMs: 1_000 }, burnMs: 6_000 });
  await consumer.said((line) => line.what === "burning");
  const burningAt = performance.now();
  const broker = makeBroker(context, { ...own, ...options });
  const collector = new Collector(context, broker);
  await collector.has([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 5_000);
  const tookMs = collector.got[0]!.at - burningAt;
  assert.ok(tookMs < 4_500, `taken over after ${Math.round(tookMs)} ms`);
  assert.ok(!consumer.lines.some((line) => line.what === "settled"), "it still computes");
  assert.equal((await settledBy(consumer, 0)).outcome, "stale");
  await broker.close();
  await publisher.publishAll(TOPIC, events(10, 15));
  await consumer.said((line) => line.what === "settled" && line.n === 14);
  assert.deepEqual(consumer.got.filter((n) => n < 10), [0]);
  await consumer.close();
});
