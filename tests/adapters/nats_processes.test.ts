import assert from "node:assert/strict";
import { fresh, onLeg, type TestContext, until } from "../support/test.ts";
import { assertFirstInOrder, Collector, events, natsBroker, NatsConsumer } from "./nats_rig.ts";
import { natsAdmin } from "./nats_support.ts";

const onNats = onLeg("nats");
const LEASE_MS = 600;
const PREFETCH = 16;
const options = { ownerLeaseMs: LEASE_MS, prefetch: PREFETCH };
const all = Array.from({ length: 60 }, (_, n) => n);

/** A consumer in a process of its own that owns the topic and is in the middle of its work, and one here that stands by. */
async function midWork(
  context: TestContext,
  url: string,
  topic: string,
): Promise<{ consumer: NatsConsumer; collector: Collector }> {
  const publisher = natsBroker(context, { url });
  const consumer = new NatsConsumer(context, { topic, broker: { url, ...options }, slowMs: 15 });
  await consumer.said((line) => line.what === "state" && line.state === "active");
  const broker = natsBroker(context, { url, ...options });
  const collector = new Collector(context, broker, undefined, topic);
  await until(() => broker.health().topics[0]?.state === "standby", { what: "the second one to stand by" });
  await publisher.publishAll(topic, events(0, 60));
  await consumer.said((line) => line.what === "settled" && line.n === 10);
  assert.deepEqual(collector.numbers, []);
  return { consumer, collector };
}

onNats("a consumer that is killed is taken over within its lease and a second; nothing is lost, order stands", {
  timeoutMs: 60_000,
}, async ({ url }, context) => {
  const { consumer, collector } = await midWork(context, url, fresh("t"));
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

onNats("a frozen consumer is taken over; its late acks take no effect and it stands by", {
  timeoutMs: 60_000,
}, async ({ url }, context) => {
  const topic = fresh("t");
  const { consumer, collector } = await midWork(context, url, topic);
  consumer.child.kill("SIGSTOP");
  const frozenAt = performance.now();
  await collector.has(all.slice(-1));
  const tookMs = collector.got[0]!.at - frozenAt;
  assert.ok(tookMs < LEASE_MS + 1_000, `taken over after ${Math.round(tookMs)} ms`);
  const before = consumer.got;
  const sequence = [...before, ...collector.numbers];
  assert.deepEqual([...new Set(sequence)].sort((a, b) => a - b), all, "nothing is lost");
  assertFirstInOrder(sequence);
  consumer.child.kill("SIGCONT");
  await consumer.said((line) => line.what === "state" && line.state === "standby");
  const last = before.at(-1)!;
  const settled = await consumer.said((line) => line.what === "settled" && line.n === last);
  assert.equal(settled.what === "settled" && settled.outcome, "stale");
  const admin = await natsAdmin(context, url);
  await until(async () => await admin.inFlight(topic, "billing") === 0, { what: "all is settled at the server" });
  assert.deepEqual(consumer.got.filter((n) => !before.includes(n)), [], "it started nothing that it had lost");
});

for (const ordered of [true, false]) {
  onNats(
    `in a worker, a handler that computes for three ack waits costs no redelivery and no reconnect${
      ordered ? "" : ", unordered"
    } (COR-13)`,
    { timeoutMs: 60_000 },
    async ({ url }, context) => {
      const topic = fresh("t");
      const publisher = natsBroker(context, { url });
      await publisher.publishAll(topic, events(0, 10));
      const own = { url, ...options, ordered, ackWaitMs: LEASE_MS };
      const consumer = new NatsConsumer(context, { topic, broker: own, burnMs: 3 * LEASE_MS });
      await consumer.said((line) => line.what === "burning");
      const collector = new Collector(context, natsBroker(context, own), undefined, topic);
      await consumer.said((line) => line.what === "settled" && line.n === 9);
      assert.deepEqual(collector.numbers, [], "the other one gets nothing");
      assert.deepEqual(consumer.got, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
      for (const line of consumer.lines) {
        if (line.what === "got") assert.equal(line.attempt, 0);
        if (line.what === "settled") assert.deepEqual([line.outcome, line.lost], ["settled", false]);
      }
      await collector.stop();
      const counters = await consumer.close();
      assert.equal(counters["disconnects"], undefined);
      assert.equal(counters["worker-restarts"], undefined);
    },
  );
}

onNats("inline, a handler that computes for three leases loses its partition, learns so, and stands by (COR-13)", {
  timeoutMs: 60_000,
}, async ({ url }, context) => {
  const topic = fresh("t");
  await natsBroker(context, { url }).publishAll(topic, events(0, 10));
  const second = natsBroker(context, { url, ...options });
  await second.connect();
  const broker = { url, ...options, isolation: "inline" } as const;
  const consumer = new NatsConsumer(context, { topic, broker, burnMs: 3 * LEASE_MS });
  await consumer.said((line) => line.what === "burning");
  const collector = new Collector(context, second, undefined, topic);
  await collector.has([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  const settled = await consumer.said((line) => line.what === "settled" && line.n === 0);
  assert.equal(settled.what === "settled" && settled.outcome, "stale");
  await consumer.said((line) => line.what === "state" && line.state === "standby");
  assert.deepEqual(consumer.got, [0], "it started nothing that it had lost");
  await collector.stop();
  await consumer.close();
});
