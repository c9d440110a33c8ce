import assert from "node:assert/strict";
import { InboundDispatcher, MemoryStore } from "../../mod.ts";
import { createTransport } from "../../adapters/nats/transport.ts";
import { assertExits, fresh, onLeg, until } from "../support/test.ts";
import { Collector, events, natsBroker } from "./nats_rig.ts";
import {
  bodies,
  bodiesOf,
  FreezableClock,
  Listener,
  natsAdmin,
  natsNames,
  openNats,
  publish,
  Reader,
} from "./nats_support.ts";

const onNats = onLeg("nats");

for (const ordered of [true, false]) {
  const mode = ordered ? "ordered" : "unordered";

  onNats(
    `NAT-01 ${mode}: a durable that is removed while reading is made again within 5 s; a stream that is gone is told`,
    {
      timeoutMs: 40_000,
    },
    async ({ url }, context) => {
      const topic = fresh("t");
      const admin = await natsAdmin(context, url);
      const broker = natsBroker(context, { url, ordered });
      const collector = new Collector(context, broker, undefined, topic);
      await broker.publishAll(topic, events(0, 3));
      await collector.has([0, 1, 2]);
      await until(async () => await admin.inFlight(topic, "billing") === 0, { what: "all is settled" });
      const [durable] = await admin.durablesOf(topic, "billing");
      // The floor of competing members is saved once a second.
      if (!ordered) {
        const key = `$KV.xsm.floor.${topic}.billing`;
        await until(() => admin.api("STREAM.MSG.GET.KV_xsm", { last_by_subj: key }).then(() => true, () => false));
      }
      await admin.removeDurable(topic, durable!.name);
      await broker.publishAll(topic, events(3, 6));
      await collector.has([3, 4, 5], 5_000);
      assert.deepEqual(collector.numbers, [0, 1, 2, 3, 4, 5], "nothing settled came again");

      const bound = natsBroker(context, { url, ordered, create: false });
      const other = fresh("t");
      await admin.api(`STREAM.CREATE.${other}`, { name: other, subjects: [`${other}.>`] });
      if (!ordered) {
        await admin.api(`CONSUMER.CREATE.${other}.billing`, {
          stream_name: other,
          config: { name: "billing", durable_name: "billing", ack_policy: "explicit", deliver_policy: "all" },
        });
      }
      if (ordered) return;
      const reader = new Collector(context, bound, undefined, other);
      await bound.publish(other, { type: "n", data: 1 });
      await reader.has([1]);
      await admin.api(`STREAM.DELETE.${other}`);
      await until(() => !bound.healthy && bound.health().topics[0]?.state === "failing", {
        what: "health says so",
        timeoutMs: 5_000,
      });
    },
  );

  onNats(
    `NAT-04 ${mode}: close gives back what was not settled; another has it within a second, whatever the ack wait`,
    {
      timeoutMs: 20_000,
    },
    async ({ url }, context) => {
      const topic = fresh("t");
      const options = { url, ordered, ackWaitMs: 60_000, ownerLeaseMs: 60_000, prefetch: 10 };
      const first = natsBroker(context, options);
      await first.publishAll(topic, events(0, 10));
      const stream = first.subscribe(topic)[Symbol.asyncIterator]();
      const held = (await stream.next()).value!;
      const second = natsBroker(context, options);
      await second.connect();
      void held;
      const closing = first.close({ drainMs: 200 });
      const collector = new Collector(context, second, undefined, topic);
      await closing;
      const from = performance.now();
      await collector.has(Array.from({ length: 10 }, (_, n) => n), 5_000);
      assert.ok(performance.now() - from < 1_500);
      if (ordered) assert.ok(collector.got.every(({ attempt }) => attempt === 0), "a shut-down counts for nothing");
    },
  );

  onNats(`NAT-08 ${mode}: times reach the server in its own unit`, async ({ url }, context) => {
    const topic = fresh("t");
    const admin = await natsAdmin(context, url);
    const broker = natsBroker(context, {
      url,
      ordered,
      ackWaitMs: 20_000,
      duplicateWindowMs: 30_000,
      unsafeMaxAgeMs: 3_600_000,
    });
    const collector = new Collector(context, broker, undefined, topic);
    await broker.publish(topic, { type: "n", data: 1 });
    await collector.has([1]);
    const [durable] = await admin.durablesOf(topic, "billing");
    assert.equal(durable!.config["ack_wait"], 20_000_000_000);
    assert.ok((durable!.config["max_deliver"] as number) < 0);
    assert.equal(durable!.config["inactive_threshold"] ?? 0, 0);
    const { config } = await admin.stream(topic);
    assert.equal(config["duplicate_window"], 30_000_000_000);
    assert.equal(config["max_age"], 3_600_000_000_000);
  });

  onNats(`NAT-10 ${mode}: 500 messages of 5 ms each outlast an ack wait of a second and come once`, {
    timeoutMs: 60_000,
  }, async ({ url }, context) => {
    const topic = fresh("t");
    const broker = natsBroker(context, { url, ordered, ackWaitMs: 1_000, prefetch: 500 });
    await broker.publishAll(topic, events(0, 500, 1));
    const attempts: number[] = [];
    for await (const delivery of broker.subscribe(topic)) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      attempts.push(delivery.attempt);
      void delivery.ack();
      if (attempts.length === 500) break;
    }
    const admin = await natsAdmin(context, url);
    await until(async () => await admin.inFlight(topic, "billing") === 0, { what: "all is settled" });
    assert.deepEqual(attempts.filter((attempt) => attempt > 0), []);
    const [durable] = await admin.durablesOf(topic, "billing") as unknown as { num_redelivered: number }[];
    assert.equal(durable!.num_redelivered, 0);
  });

  onNats(`NAT-11 ${mode}: close right behind the last ack leaves nothing unsettled`, {
    timeoutMs: 30_000,
  }, async ({ url }, context) => {
    const topic = fresh("t");
    const admin = await natsAdmin(context, url);
    const broker = natsBroker(context, { url, ordered });
    await broker.publishAll(topic, events(0, 100));
    let count = 0;
    for await (const delivery of broker.subscribe(topic)) {
      void delivery.ack();
      if (++count === 100) break;
    }
    assert.deepEqual(await broker.close(), { released: 0, unconfirmed: 0, terminated: false });
    assert.equal(await admin.inFlight(topic, "billing"), 0);
  });
}

onNats("NAT-02: what a dead member had fetched comes first and in order, then what was published meanwhile", {
  timeoutMs: 30_000,
}, async ({ url }, context) => {
  const n = natsNames();
  const options = { url, ackWaitMs: 1_000, ownerLeaseMs: 600 };
  // It ends without a word: nothing is given back.
  const dead = await createTransport(options);
  await dead.open(new Listener());
  await publish(dead, n.topic, bodies(1, 5), "a");
  await new Reader(dead, n.topic, n.group).take(5);
  dead.reset("killed");
  const next = await openNats(context, options);
  await publish(next.transport, n.topic, ["m6"], "a");
  const reader = new Reader(next.transport, n.topic, n.group);
  context.cleanup(() => dead.close());
  await dead.unsubscribe(n.topic, n.group).catch(() => {});
  const raws = await reader.take(6);
  assert.deepEqual(bodiesOf(raws), bodies(1, 6));
});

onNats("NAT-05: leaving and closing remove no durable, and what was acked does not come again", async (
  { url },
  context,
) => {
  const topic = fresh("t");
  const admin = await natsAdmin(context, url);
  for (const ordered of [false, true]) {
    const group = `g${ordered}`;
    const options = { url, ordered, group };
    const first = natsBroker(context, options);
    await first.publishAll(topic, events(ordered ? 5 : 0, ordered ? 10 : 5));
    let left = ordered ? 10 : 5;
    for await (const delivery of first.subscribe(topic)) {
      await delivery.ack({ confirm: true });
      if (--left === 0) break;
    }
    await first.close();
    const before = await admin.durablesOf(topic, group);
    assert.equal(before.length, 1);
    const second = natsBroker(context, options);
    for await (const delivery of second.subscribe(topic, { idleMs: 300 })) {
      assert.fail(`came: ${delivery.envelope.data}`);
    }
    await second.close();
    const after = await admin.durablesOf(topic, group);
    assert.equal(after.length, 1);
    if (!ordered) assert.equal(after[0]!.created, before[0]!.created);
  }
});

onNats("NAT-06: a retry comes after its delay and within a second of it", async ({ url }, context) => {
  const topic = fresh("t");
  for (const ordered of [true, false]) {
    const broker = natsBroker(context, { url, ordered, group: `g${ordered}` });
    if (ordered) await broker.publish(topic, { type: "n", subject: "s", data: 1 });
    let from = 0;
    for await (const delivery of broker.subscribe(topic)) {
      if (delivery.attempt === 0) {
        from = performance.now();
        await delivery.retry({ delayMs: 500 });
        continue;
      }
      const tookMs = performance.now() - from;
      assert.ok(tookMs >= 495 && tookMs < 1_500, `after ${Math.round(tookMs)} ms`);
      await delivery.ack({ confirm: true });
      break;
    }
  }
});

onNats("NAT-07: handlers that never end time out and make room; prefetch above the durable's limit is refused", {
  timeoutMs: 30_000,
}, async ({ url }, context) => {
  const topic = fresh("t");
  const admin = await natsAdmin(context, url);
  await admin.api(`STREAM.CREATE.${topic}`, { name: topic, subjects: [`${topic}.>`] });
  await admin.api(`CONSUMER.CREATE.${topic}.billing`, {
    stream_name: topic,
    config: {
      name: "billing",
      durable_name: "billing",
      ack_policy: "explicit",
      deliver_policy: "all",
      max_ack_pending: 5,
    },
  });
  const large = natsBroker(context, { url, ordered: false, prefetch: 6 });
  await assert.rejects(
    (async () => {
      for await (const _ of large.subscribe(topic, { idleMs: 0 }));
    })(),
    (error: { code?: string }) => error.code === "invalid-option",
  );
  const broker = natsBroker(context, { url, ordered: false, prefetch: 5 });
  await broker.publishAll(topic, events(0, 6, 6));
  const handled: unknown[] = [];
  const stop = new AbortController();
  const app = new InboundDispatcher({
    broker,
    store: new MemoryStore(),
    handlerTimeoutMs: 500,
    maxAttempts: 1,
    logger: false,
    routes: {
      n: async (envelope) => {
        if ((envelope.data as number) < 5) await new Promise(() => {});
        handled.push(envelope.data);
      },
    },
  });
  const running = app.run([topic], { signal: stop.signal });
  await until(() => handled.includes(5), { what: "the sixth is handled", timeoutMs: 5_000 });
  stop.abort();
  await running;
});

onNats("NAT-09: fifty times opened and closed, reading, the process ends by itself", {
  timeoutMs: 60_000,
}, async ({ url }) => {
  await assertExits(new URL("./nats_cycles_script.ts", import.meta.url), [url], {}, { timeoutMs: 40_000 });
});

onNats("NAT-12: no limit of deliveries strands a message: it comes until it is settled, and the next one with it", {
  timeoutMs: 30_000,
}, async ({ url }, context) => {
  const n = natsNames();
  // Each of these members dies with what it holds; only the ack wait, or its lease, brings it back.
  for (const options of [{ url, ordered: false, ackWaitMs: 150 }, { url, ordered: true, ownerLeaseMs: 300 }]) {
    const group = `g${options.ordered}`;
    const counts: number[] = [];
    if (!options.ordered) {
      const { transport } = await openNats(context, options);
      await publish(transport, n.topic, ["m1", "m2"], "a");
    }
    for (let death = 0; death < 8; death++) {
      const clock = new FreezableClock();
      const dying = await createTransport(options, clock);
      await dying.open(new Listener());
      const raws = await new Reader(dying, n.topic, group).take(2);
      assert.deepEqual(bodiesOf(raws).sort(), ["m1", "m2"]);
      counts.push(raws[0]!.deliveries);
      clock.frozen = true;
      dying.reset("killed");
      context.cleanup(() => {
        clock.frozen = false;
        return dying.close();
      });
    }
    assert.equal(counts[0], 0);
    assert.ok(counts.slice(1).every((count) => count > 0), `counted: ${counts.join(" ")}`);
    if (!options.ordered) assert.deepEqual(counts, [0, 1, 2, 3, 4, 5, 6, 7]);
    const { transport } = await openNats(context, options);
    const reader = new Reader(transport, n.topic, group);
    const raws = await reader.take(2);
    assert.deepEqual(await reader.ack(raws), ["settled", "settled"]);
    assert.deepEqual(await reader.fetch(400), []);
  }
});
