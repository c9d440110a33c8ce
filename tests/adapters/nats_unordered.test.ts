import assert from "node:assert/strict";
import { isEdaError } from "../../core/errors.ts";
import { onLeg, onLegs, until } from "../support/test.ts";
import {
  bodies,
  bodiesOf,
  FreezableClock,
  hold,
  natsAdmin,
  natsNames,
  openNats,
  publish,
  Reader,
} from "./nats_support.ts";

onLegs(["nats", "nats29", "nats215"], (onEach) => {
  onEach("competing members get each message once, and settle it", async ({ url }, context) => {
    const n = natsNames();
    const members = await Promise.all([1, 2, 3].map(() => openNats(context, { url, ordered: false })));
    await publish(members[0]!.transport, n.topic, bodies(1, 300));
    const got: (string | null)[] = [];
    await Promise.all(members.map(async ({ transport }) => {
      const reader = new Reader(transport, n.topic, n.group);
      for (;;) {
        const raws = await reader.fetch(500, 10);
        if (raws.length === 0) return;
        got.push(...bodiesOf(raws));
        assert.deepEqual(await reader.ack(raws), raws.map(() => "settled"));
      }
    }));
    assert.deepEqual([...got].sort(), bodies(1, 300).sort());
    const admin = await natsAdmin(context, url);
    const durable = await admin.durable(n.topic, n.group);
    assert.deepEqual([durable.num_ack_pending, durable.ack_floor.stream_seq], [0, 300]);
  });

  onEach("a durable that was removed starts again behind what was settled, and the loss is told", async (
    { url },
    context,
  ) => {
    const n = natsNames();
    const { transport, listener } = await openNats(context, { url, ordered: false });
    const reader = new Reader(transport, n.topic, n.group);
    await publish(transport, n.topic, bodies(1, 20));
    const first = await reader.take(20);
    await reader.ack(first.slice(0, 15));
    const admin = await natsAdmin(context, url);
    const key = `$KV.xsm.floor.${n.topic}.${n.group}`;
    await until(async () => {
      const found = await admin.api<{ message: { data: string } }>("STREAM.MSG.GET.KV_xsm", { last_by_subj: key })
        .catch(() => undefined);
      return found !== undefined && JSON.parse(atob(found.message.data)).floor === 15;
    }, { what: "the floor is saved" });
    await admin.removeDurable(n.topic, n.group);
    await publish(transport, n.topic, bodies(21, 22));
    assert.deepEqual(bodiesOf(await reader.take(7)), bodies(16, 22));
    assert.equal(listener.count("signal", "group-lost"), 1);
    assert.equal(listener.count("lost", "5: the durable was lost"), 1);
  });

  onEach("what is given back comes again after its delay, and not before", async ({ url }, context) => {
    const n = natsNames();
    const { transport } = await openNats(context, { url, ordered: false });
    const reader = new Reader(transport, n.topic, n.group);
    await publish(transport, n.topic, ["m1"]);
    const raws = await reader.take(1);
    const from = performance.now();
    await transport.release(n.topic, n.group, raws.map((raw) => raw.native), 700);
    const [again] = await reader.take(1);
    const tookMs = performance.now() - from;
    assert.ok(tookMs > 650 && tookMs < 1_700, `after ${Math.round(tookMs)} ms`);
    assert.equal(again!.deliveries, 1);
  });
});

const onNats = onLeg("nats");

onNats("what a dead member left comes past its ack wait and not before, counted", async ({ url }, context) => {
  const n = natsNames();
  const options = { url, ordered: false, ackWaitMs: 800 };
  const clock = new FreezableClock();
  const one = await openNats(context, options, clock);
  await publish(one.transport, n.topic, bodies(1, 3));
  const raws = await new Reader(one.transport, n.topic, n.group).take(3);
  assert.ok(raws.every(({ leaseMs }) => leaseMs === 800));
  const from = performance.now();
  clock.frozen = true;
  const two = await openNats(context, options);
  const again = await new Reader(two.transport, n.topic, n.group).take(3);
  assert.ok(performance.now() - from > 700);
  assert.deepEqual(again.map(({ deliveries }) => deliveries), [1, 1, 1]);
});

onNats("extending keeps a message from others, uncounted", async ({ url }, context) => {
  const n = natsNames();
  const options = { url, ordered: false, ackWaitMs: 500 };
  const one = await openNats(context, options);
  const first = new Reader(one.transport, n.topic, n.group);
  await publish(one.transport, n.topic, ["m1"]);
  const raws = await first.take(1);
  const two = await openNats(context, options);
  const second = new Reader(two.transport, n.topic, n.group);
  for (let round = 0; round < 6; round++) {
    const other = second.fetch(200);
    assert.deepEqual(await first.extend(raws), ["settled"]);
    assert.deepEqual(await other, []);
  }
  assert.deepEqual(await first.ack(raws), ["settled"]);
});

onNats("a word about an earlier hold leaves what came again to the same member in its hands", async (
  { url },
  context,
) => {
  const n = natsNames();
  const { transport } = await openNats(context, { url, ordered: false, ackWaitMs: 500 });
  const reader = new Reader(transport, n.topic, n.group);
  await publish(transport, n.topic, bodies(1, 3), "a");
  const earlier = await reader.take(3);
  const again = await reader.take(3);
  assert.deepEqual(await reader.release(earlier.slice(0, 2)), ["stale", "stale"]);
  assert.deepEqual(await reader.ack([earlier[2]!, again[0]!]), ["stale", "settled"]);
  assert.deepEqual(await reader.extend(again.slice(1)), ["settled", "settled"]);
  const admin = await natsAdmin(context, url);
  assert.equal((await admin.durable(n.topic, n.group)).num_ack_pending, 2);
  const two = await openNats(context, { url, ordered: false, ackWaitMs: 500 });
  assert.deepEqual(await new Reader(two.transport, n.topic, n.group).fetch(200), [], "it is not offered to others");
  assert.deepEqual(await reader.ack(again.slice(1)), ["settled", "settled"]);
});

onNats("a durable that was made elsewhere is used as it is; what it lacks is named", async ({ url }, context) => {
  const n = natsNames();
  const admin = await natsAdmin(context, url);
  await admin.api(`STREAM.CREATE.${n.topic}`, { name: n.topic, subjects: [`${n.topic}.>`] });
  const make = (name: string, config: object) =>
    admin.api(`CONSUMER.CREATE.${n.topic}.${name}`, {
      stream_name: n.topic,
      config: { name, durable_name: name, deliver_policy: "all", ack_policy: "explicit", ...config },
    });
  await make("limited", { max_deliver: 3, ack_wait: 2e9, max_ack_pending: 20_000 });
  await make("small", { max_ack_pending: 5 });
  await make("all", { ack_policy: "all" });
  const { transport, listener } = await openNats(context, { url, ordered: false, create: false });
  await publish(transport, n.topic, ["m1"]);
  const [raw] = await new Reader(transport, n.topic, "limited").take(1);
  assert.equal(raw!.leaseMs, 2_000, "the server's own ack wait counts");
  assert.equal(listener.count("signal", "delivery-limit"), 1);
  assert.equal(listener.count("signal", "other-ack-wait"), 1);
  const invalid = (text: RegExp) => (error: unknown) =>
    isEdaError(error) && error.code === "invalid-option" && text.test(error.message);
  await assert.rejects(new Reader(transport, n.topic, "small").fetch(300), invalid(/max_ack_pending/));
  await assert.rejects(new Reader(transport, n.topic, "all").fetch(300), invalid(/another kind/));
  await assert.rejects(
    new Reader(transport, n.topic, "nobody").fetch(300),
    (error) => isEdaError(error) && error.code === "broker-unavailable" && /no durable/.test(error.message),
  );
});

onNats("events in binary mode are read, their values decoded once", async ({ url }, context) => {
  const n = natsNames();
  const admin = await natsAdmin(context, url);
  await admin.api(`STREAM.CREATE.${n.topic}`, { name: n.topic, subjects: [`${n.topic}.>`] });
  const { headers } = await import("@nats-io/transport-node");
  const head = headers();
  const attributes = { specversion: "1.0", id: "e 1", source: "/s", type: "t", subject: "a b%20é" };
  for (const [name, value] of Object.entries(attributes)) head.set(`ce-${name}`, encodeURIComponent(value));
  head.set("content-type", "application/json");
  await admin.put(`${n.topic}.a`, '{"n": 1}', head);
  const { transport } = await openNats(context, { url, ordered: false });
  const [raw] = await new Reader(transport, n.topic, n.group).take(1);
  assert.deepEqual(JSON.parse(String(raw!.body)), {
    ...attributes,
    datacontenttype: "application/json",
    data: { n: 1 },
  });
});

onNats("a wait that is aborted leaves nothing behind at the server", async ({ url }, context) => {
  const n = natsNames();
  const { transport } = await openNats(context, { url, ordered: false });
  const reader = new Reader(transport, n.topic, n.group);
  await reader.fetch(0);
  for (let round = 0; round < 10; round++) {
    const waiting = reader.fetch(5_000);
    await hold(20);
    await publish(transport, n.topic, [`m${round}`]);
    reader.abort();
    const raws = [...await waiting];
    if (raws.length === 0) raws.push(...await reader.take(1, 2_000));
    assert.deepEqual(bodiesOf(raws), [`m${round}`], "what came is handed out, whoever was first");
    assert.equal(raws[0]!.deliveries, 0);
    await reader.ack(raws);
  }
});
