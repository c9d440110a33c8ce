import assert from "node:assert/strict";
import type { EdaError } from "../../core/errors.ts";
import type { Raw } from "../../core/transport.ts";
import { onLeg, onLegs, startProxy, until } from "../support/test.ts";
import {
  bodies,
  bodiesOf,
  FreezableClock,
  hold,
  natsAdmin,
  natsNames,
  openNats,
  ownerRecord,
  publish,
  Reader,
} from "./nats_support.ts";

/** The one durable by which a group reads. */
async function onlyDurable(admin: Awaited<ReturnType<typeof natsAdmin>>, topic: string, group: string) {
  const durables = await admin.durablesOf(topic, group);
  assert.equal(durables.length, 1, `one durable, not ${durables.map(({ name }) => name).join(", ")}`);
  return durables[0]!;
}

onLegs(["nats", "nats29", "nats215"], (onEach) => {
  onEach("reads in publish order, once, and settles", async ({ url }, context) => {
    const n = natsNames();
    const { transport, listener } = await openNats(context, { url });
    const reader = new Reader(transport, n.topic, n.group);
    await publish(transport, n.topic, bodies(1, 300), "a");
    const raws = await reader.take(300);
    assert.deepEqual(bodiesOf(raws), bodies(1, 300));
    assert.ok(raws.every((raw) => raw.deliveries === 0 && raw.partition === 0 && raw.leaseMs === undefined));
    assert.deepEqual(await reader.fetch(), []);
    assert.ok((await reader.ack(raws)).every((outcome) => outcome === "settled"));
    const admin = await natsAdmin(context, url);
    const durable = await onlyDurable(admin, n.topic, n.group);
    assert.equal(durable.num_ack_pending, 0);
    assert.equal(durable.ack_floor.stream_seq, 300);
    assert.equal(listener.count("topic", "active"), 1);
    const owned = listener.told.find((told) => told.kind === "owned")!;
    const ahead = owned.leaseUntil! - performance.now();
    assert.ok(ahead > 10_000 && ahead <= 15_000);
  });

  onEach("two reads in flight hand out in order", async ({ url }, context) => {
    const n = natsNames();
    const { transport } = await openNats(context, { url });
    const reader = new Reader(transport, n.topic, n.group);
    await publish(transport, n.topic, bodies(1, 400), "a");
    await reader.take(1, 5_000, 1);
    const got: unknown[] = [];
    const note = (raws: readonly Raw[]) => void got.push(...bodiesOf(raws));
    await Promise.all([reader.fetch(1_000, 100).then(note), reader.fetch(0, 100).then(note)]);
    assert.deepEqual(got, bodies(2, got.length + 1));
    assert.ok(got.length >= 100);
  });

  onEach("a wait ends within milliseconds of a publish, and on abort", async ({ url }, context) => {
    const n = natsNames();
    const { transport } = await openNats(context, { url });
    const reader = new Reader(transport, n.topic, n.group);
    assert.deepEqual(await reader.fetch(0), []);
    const waiting = reader.fetch(10_000);
    const admin = await natsAdmin(context, url);
    const waits = async () => (await admin.durablesOf(n.topic, n.group)).some(({ num_waiting }) => num_waiting === 1);
    await until(waits, { what: "a pull waits" });
    const from = performance.now();
    await publish(transport, n.topic, ["m1"]);
    assert.deepEqual(bodiesOf(await waiting), ["m1"]);
    assert.ok(performance.now() - from < 500);
    const again = reader.fetch(10_000);
    const aborted = performance.now();
    reader.abort();
    assert.deepEqual(await again, []);
    assert.ok(performance.now() - aborted < 300);
    await until(async () => !await waits(), { what: "no pull waits" });
  });

  onEach("a take-over begins at the oldest unsettled message and hands out nothing that was settled", async (
    { url },
    context,
  ) => {
    const n = natsNames();
    const one = await openNats(context, { url });
    const first = new Reader(one.transport, n.topic, n.group);
    await publish(one.transport, n.topic, bodies(1, 20), "a");
    const held = await first.take(20);
    // Settled out of order: a floor alone would bring most of them again.
    await first.ack(held.filter((_, at) => at !== 2 && at !== 11));
    await one.transport.unsubscribe(n.topic, n.group);
    const two = await openNats(context, { url });
    const second = new Reader(two.transport, n.topic, n.group);
    const again = await second.take(2);
    assert.deepEqual(bodiesOf(again), ["m3", "m12"]);
    assert.ok(again.every(({ deliveries }) => deliveries === 0), "given back in order, so it counts for nothing");
    assert.deepEqual(await second.fetch(300), []);
    await second.ack(again);
    const admin = await natsAdmin(context, url);
    await until(async () => (await onlyDurable(admin, n.topic, n.group)).ack_floor.stream_seq === 20, {
      what: "everything is settled",
    });
  });

  onEach("an owner that froze is followed; its late settles and reads change nothing", async ({ url }, context) => {
    const n = natsNames();
    const clock = new FreezableClock();
    const frozen = await openNats(context, { url, ownerLeaseMs: 600 }, clock);
    const first = new Reader(frozen.transport, n.topic, n.group);
    await publish(frozen.transport, n.topic, bodies(1, 10), "a");
    const held = await first.take(4, 5_000, 4);
    const next = await openNats(context, { url, ownerLeaseMs: 600 });
    const second = new Reader(next.transport, n.topic, n.group);
    assert.deepEqual(await second.fetch(200), [], "stands by");
    assert.equal(next.listener.count("topic", "standby"), 1);
    clock.frozen = true;
    const from = performance.now();
    const taken = await second.take(10, 5_000);
    assert.ok(performance.now() - from < 1_900, "within the lease and a second");
    assert.deepEqual(bodiesOf(taken), bodies(1, 10));
    assert.deepEqual(taken.map(({ deliveries }) => deliveries), [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]);
    const admin = await natsAdmin(context, url);
    assert.equal((await onlyDurable(admin, n.topic, n.group)).num_ack_pending, 10);
    assert.deepEqual(await first.ack(held), ["stale", "stale", "stale", "stale"]);
    assert.deepEqual(await first.fetch(0), []);
    const durable = await onlyDurable(admin, n.topic, n.group);
    assert.equal(durable.num_ack_pending, 10);
    assert.deepEqual(await second.ack(taken), taken.map(() => "settled"));
    assert.equal((await onlyDurable(admin, n.topic, n.group)).num_ack_pending, 0);
  });

  onEach("a settle of who owned the partition before finds no durable, even past its own lease check", async (
    { url },
    context,
  ) => {
    const n = natsNames();
    const one = await openNats(context, { url });
    const reader = new Reader(one.transport, n.topic, n.group);
    await publish(one.transport, n.topic, bodies(1, 3), "a");
    const held = await reader.take(3);
    const admin = await natsAdmin(context, url);
    // As a newer owner would: the record is another's, and the durable is gone. The old one does not know yet.
    const record = await ownerRecord(admin, n.key);
    const durable = await onlyDurable(admin, n.topic, n.group);
    await admin.put(`$KV.xsm.${n.key}`, JSON.stringify({ ...record, epoch: 9e15, owner: "x:y", leaseMs: 60_000 }));
    await admin.removeDurable(n.topic, durable.name);
    assert.deepEqual(await reader.ack(held), ["stale", "stale", "stale"]);
    assert.deepEqual(await reader.fetch(300), []);
    assert.equal(one.listener.count("revoked"), 1);
    assert.deepEqual(await admin.durablesOf(n.topic, n.group), [], "who does not own it makes no durable");
    assert.equal((await ownerRecord(admin, n.key))["owner"], "x:y");
  });

  onEach("a read of who owned the partition before gets nothing and makes no durable", async ({ url }, context) => {
    const n = natsNames();
    const one = await openNats(context, { url });
    const reader = new Reader(one.transport, n.topic, n.group);
    await publish(one.transport, n.topic, bodies(1, 3), "a");
    await reader.take(1, 5_000, 1);
    const admin = await natsAdmin(context, url);
    const record = await ownerRecord(admin, n.key);
    await admin.put(`$KV.xsm.${n.key}`, JSON.stringify({ ...record, epoch: 9e15, owner: "x:y", leaseMs: 60_000 }));
    await admin.removeDurable(n.topic, (await onlyDurable(admin, n.topic, n.group)).name);
    assert.deepEqual(await reader.fetch(2_500), []);
    assert.equal(one.listener.count("revoked"), 1);
    assert.deepEqual(await admin.durablesOf(n.topic, n.group), []);
  });

  onEach("a durable that was removed is made again; what is held stays held and nothing comes twice", async (
    { url },
    context,
  ) => {
    const n = natsNames();
    const { transport, listener } = await openNats(context, { url });
    const reader = new Reader(transport, n.topic, n.group);
    await publish(transport, n.topic, bodies(1, 10), "a");
    const held = await reader.take(10);
    await reader.ack(held.slice(0, 3));
    await reader.ack(held.slice(5, 7));
    const admin = await natsAdmin(context, url);
    const before = await onlyDurable(admin, n.topic, n.group);
    await admin.removeDurable(n.topic, before.name);
    await publish(transport, n.topic, bodies(11, 13), "a");
    assert.deepEqual(bodiesOf(await reader.take(3)), bodies(11, 13));
    assert.equal(listener.count("revoked"), 0);
    assert.equal(listener.count("signal", "durable-renewed"), 1);
    const rest = held.filter((_, at) => [3, 4, 7, 8, 9].includes(at));
    assert.deepEqual(await reader.ack(rest), rest.map(() => "settled"));
    await until(async () => (await onlyDurable(admin, n.topic, n.group)).ack_floor.stream_seq === 10, {
      what: "the new durable knows all of it",
    });
  });

  onEach("a settle while the durable is gone counts: it does not come again, not even to the next owner", async (
    { url },
    context,
  ) => {
    const n = natsNames();
    const one = await openNats(context, { url });
    const reader = new Reader(one.transport, n.topic, n.group);
    await publish(one.transport, n.topic, bodies(1, 4), "a");
    const held = await reader.take(4);
    const admin = await natsAdmin(context, url);
    await admin.removeDurable(n.topic, (await onlyDurable(admin, n.topic, n.group)).name);
    assert.deepEqual(await reader.ack(held.slice(1, 3)), ["settled", "settled"]);
    // It never learns that another takes over.
    await admin.put(
      `$KV.xsm.${n.key}`,
      JSON.stringify({ ...await ownerRecord(admin, n.key), owner: "", epoch: 9e15, generation: 9e15 }),
    );
    const two = await openNats(context, { url });
    const second = new Reader(two.transport, n.topic, n.group);
    assert.deepEqual(bodiesOf(await second.take(2)), ["m1", "m4"]);
    assert.deepEqual(await second.fetch(200), []);
  });

  onEach("a stream that was removed and made again is read from its start", async ({ url }, context) => {
    const n = natsNames();
    const { transport, listener } = await openNats(context, { url });
    const reader = new Reader(transport, n.topic, n.group);
    await publish(transport, n.topic, bodies(1, 5), "a");
    const held = await reader.take(5);
    await reader.ack(held.slice(0, 4));
    const admin = await natsAdmin(context, url);
    await admin.api(`STREAM.DELETE.${n.topic}`);
    // The first one finds no stream; it was never stored.
    const refused = await transport.send(n.topic, [{ body: "lost" }]);
    assert.equal((refused[0] as EdaError | undefined)?.code, "broker-unavailable");
    await publish(transport, n.topic, bodies(6, 8), "a");
    assert.deepEqual(bodiesOf(await reader.takeThrough(3, listener)), bodies(6, 8));
    assert.deepEqual(await reader.ack(held.slice(4)), ["stale"]);
    assert.ok(listener.count("revoked") >= 1);
  });
});

const onNats = onLeg("nats");

onNats("deliveries that a cut line swallowed come again, in order, and what is held stays ours", async (
  { url },
  context,
) => {
  const n = natsNames();
  const proxy = await startProxy({ port: Number(new URL(url).port) });
  context.cleanup(() => proxy.close());
  const publisher = await openNats(context, { url });
  const { transport, listener } = await openNats(context, { url: proxy.url(url) });
  const reader = new Reader(transport, n.topic, n.group);
  await publish(publisher.transport, n.topic, bodies(1, 5), "a");
  const held = await reader.take(5);
  await publish(publisher.transport, n.topic, bodies(6, 105), "a");
  // The server delivers into the void.
  await proxy.cutAfter(3_000, "down");
  const got = await reader.takeThrough(100, listener);
  assert.deepEqual(bodiesOf(got), bodies(6, 105));
  assert.equal(listener.count("revoked"), 0);
  assert.deepEqual(await reader.ack(held), held.map(() => "settled"));
  assert.deepEqual(await reader.ack(got), got.map(() => "settled"));
  const admin = await natsAdmin(context, url);
  await until(async () => (await onlyDurable(admin, n.topic, n.group)).ack_floor.stream_seq === 105, {
    what: "everything is settled",
  });
});

onNats("a member that comes long after its predecessor died does not wait for a lease", async ({ url }, context) => {
  const n = natsNames();
  const admin = await natsAdmin(context, url);
  const one = await openNats(context, { url });
  await publish(one.transport, n.topic, bodies(1, 2), "a");
  await new Reader(one.transport, n.topic, n.group).take(1, 5_000, 1);
  await one.transport.unsubscribe(n.topic, n.group);
  const record = { ...await ownerRecord(admin, n.key), owner: "dead:dead", leaseMs: 1_000 };
  await admin.put(`$KV.xsm.${n.key}`, JSON.stringify(record));
  const written = performance.now();
  // Only the server's clock can tell a newcomer how old the record is.
  await hold(8_100 - (performance.now() - written));
  const two = await openNats(context, { url });
  const from = performance.now();
  await new Reader(two.transport, n.topic, n.group).take(2);
  assert.ok(performance.now() - from < 900, "at once");
});

onNats("a member that comes to a record that changes stands by", async ({ url }, context) => {
  const n = natsNames();
  const one = await openNats(context, { url, ownerLeaseMs: 300 });
  const first = new Reader(one.transport, n.topic, n.group);
  await publish(one.transport, n.topic, bodies(1, 2), "a");
  await first.take(2);
  const two = await openNats(context, { url, ownerLeaseMs: 300 });
  const second = new Reader(two.transport, n.topic, n.group);
  assert.deepEqual(await second.fetch(1_500), []);
  assert.equal(one.listener.count("revoked"), 0);
  assert.equal(two.listener.count("owned"), 0);
});

onNats("what is held is kept from being delivered again, past the ack wait", async ({ url }, context) => {
  const n = natsNames();
  const { transport } = await openNats(context, { url, ackWaitMs: 300 });
  const reader = new Reader(transport, n.topic, n.group);
  await publish(transport, n.topic, bodies(1, 3), "a");
  const held = await reader.take(3);
  const admin = await natsAdmin(context, url);
  assert.deepEqual(await reader.fetch(1_500), []);
  const { num_redelivered } = await onlyDurable(admin, n.topic, n.group) as unknown as { num_redelivered: number };
  assert.equal(num_redelivered, 0);
  assert.deepEqual(await reader.ack(held), held.map(() => "settled"));
});

onNats("a message that the server delivers again to its owner is not handed out twice", async ({ url }, context) => {
  const n = natsNames();
  const { transport } = await openNats(context, { url });
  const reader = new Reader(transport, n.topic, n.group);
  await publish(transport, n.topic, bodies(1, 3), "a");
  const held = await reader.take(3);
  const admin = await natsAdmin(context, url);
  // As if the ack wait had passed.
  for (const raw of held) admin.client.publish((raw.native as { reply: string }).reply, "-NAK");
  await admin.client.flush();
  assert.deepEqual(await reader.fetch(500), []);
  assert.deepEqual(await reader.ack(held), held.map(() => "settled"));
  assert.equal((await onlyDurable(admin, n.topic, n.group)).num_ack_pending, 0);
});

onNats("where the bucket was lost, the durable alone tells where to go on", async ({ url }, context) => {
  const n = natsNames();
  const bucket = n.topic;
  const admin = await natsAdmin(context, url);
  for (let round = 0; round < 3; round++) {
    const { transport } = await openNats(context, { url, bucket });
    if (round === 0) {
      await publish(transport, n.topic, bodies(1, 5), "a");
      const reader = new Reader(transport, n.topic, n.group);
      await reader.ack(await reader.take(5));
    } else {
      // In the first of these rounds the new durable has delivered nothing when the next one takes over.
      assert.deepEqual(await new Reader(transport, n.topic, n.group).fetch(500), []);
    }
    await transport.unsubscribe(n.topic, n.group);
    await admin.api(`STREAM.DELETE.KV_${bucket}`);
  }
});
