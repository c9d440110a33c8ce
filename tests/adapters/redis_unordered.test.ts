import assert from "node:assert/strict";
import { onLegs, onServer, until } from "../support/test.ts";
import {
  type Admin,
  admin,
  blocked,
  bodies,
  bodiesOf,
  groupInfo,
  names,
  openTransport,
  pendingOf,
  publish,
  Reader,
  serverMs,
} from "./redis_support.ts";

const idOf = (raw: { native: unknown }): string => (raw.native as { id: string }).id;

/** The rows of XPENDING: id, consumer, idle ms, deliveries. */
async function rows(client: Admin, stream: string, group: string): Promise<[string, string, number, number][]> {
  return await client.call("XPENDING", stream, group, "-", "+", 1_000) as [string, string, number, number][];
}

onLegs(["redis", "redis8", "valkey"], (onEach) => {
  onEach("competing consumers get each message once, and settle it", async ({ url }, context) => {
    const n = names();
    const options = { url, prefix: n.prefix, ordered: false };
    const one = await openTransport(context, options);
    const two = await openTransport(context, options);
    const readers = [new Reader(one.transport, n.topic, n.group), new Reader(two.transport, n.topic, n.group)];
    const got: unknown[] = [];
    let over = false;
    const loops = readers.map(async (reader) => {
      while (!over) {
        const raws = await reader.fetch(500, 8);
        got.push(...bodiesOf(raws));
        if (raws.length > 0) assert.ok((await reader.ack(raws)).every((outcome) => outcome === "settled"));
      }
    });
    await publish(one.transport, n.topic, bodies(1, 200), "a");
    await until(() => got.length >= 200, { what: "200 messages" });
    over = true;
    for (const reader of readers) reader.abort();
    await Promise.all(loops);
    assert.deepEqual([...new Set(got)].sort(), bodies(1, 200).sort());
    assert.equal(got.length, 200);
    const client = await admin(context, url);
    assert.equal(await pendingOf(client, n.stream, n.group), 0);
    assert.equal(one.listener.count("topic", "active"), 1);
    assert.equal(one.listener.count("owned"), 0);
  });

  onEach(
    "a pending entry that was deleted is handed out once as null; its page goes on (RED-02)",
    async ({ url }, context) => {
      const n = names();
      const client = await admin(context, url);
      const options = { url, prefix: n.prefix, ordered: false, minIdleMs: 200 };
      const one = await openTransport(context, options);
      const first = new Reader(one.transport, n.topic, n.group);
      await publish(one.transport, n.topic, bodies(1, 3), "a");
      const held = await first.take(3);
      await client.call("XDEL", n.stream, idOf(held[1]!));
      const two = await openTransport(context, options);
      const second = new Reader(two.transport, n.topic, n.group);
      const again = await second.take(3);
      assert.deepEqual(bodiesOf(again), ["m1", null, "m3"]);
      assert.deepEqual(again.map((raw) => raw.deliveries), [1, 1, 1]);
      assert.deepEqual(await second.ack(again), ["settled", "settled", "settled"]);
      assert.equal(await pendingOf(client, n.stream, n.group), 0);
      assert.deepEqual(await second.fetch(400), []);
    },
  );
});

onLegs(["redis"], (onRedis) => {
  onRedis(
    "a consumer with a name of its own first takes back what it had before (RED-03)",
    async ({ url }, context) => {
      const n = names();
      const options = { url, prefix: n.prefix, ordered: false, minIdleMs: 3_600_000, consumer: "worker-1" };
      const client = await admin(context, url);
      await client.call("XGROUP", "CREATE", n.stream, n.group, "0", "MKSTREAM");
      const { transport } = await openTransport(context, options);
      await publish(transport, n.topic, bodies(1, 2), "a");
      // What it read before it was killed.
      await client.call("XREADGROUP", "GROUP", n.group, "worker-1", "COUNT", 1, "STREAMS", n.stream, ">");
      const from = performance.now();
      const raws = await new Reader(transport, n.topic, n.group).take(2);
      assert.ok(performance.now() - from < 1_000);
      assert.deepEqual(bodiesOf(raws), ["m1", "m2"]);
      assert.deepEqual(raws.map((raw) => raw.deliveries), [1, 0]);
    },
  );

  onRedis("what a dead consumer left comes past minIdleMs and not before, counted", async ({ url }, context) => {
    const n = names();
    const client = await admin(context, url);
    await client.call("XGROUP", "CREATE", n.stream, n.group, "0", "MKSTREAM");
    const { transport } = await openTransport(context, { url, prefix: n.prefix, ordered: false, minIdleMs: 600 });
    await publish(transport, n.topic, bodies(1, 3), "a");
    const from = await serverMs(client);
    await client.call("XREADGROUP", "GROUP", n.group, "dead", "COUNT", 2, "STREAMS", n.stream, ">");
    const reader = new Reader(transport, n.topic, n.group);
    assert.deepEqual(bodiesOf(await reader.take(1)), ["m3"]);
    const late = await reader.take(2);
    assert.ok(await serverMs(client) - from >= 600);
    assert.deepEqual(bodiesOf(late), ["m1", "m2"]);
    assert.deepEqual(late.map((raw) => raw.deliveries), [1, 1]);
  });

  onRedis("a consumer does not claim again what it holds, nor count it up (B13)", async ({ url }, context) => {
    const n = names();
    const client = await admin(context, url);
    const { transport } = await openTransport(context, { url, prefix: n.prefix, ordered: false, minIdleMs: 600 });
    const reader = new Reader(transport, n.topic, n.group);
    await publish(transport, n.topic, bodies(1, 5), "a");
    const held = await reader.take(5);
    // For several windows, as a session keeps what it holds.
    for (let round = 0; round < 12; round++) {
      assert.deepEqual(await reader.fetch(120), []);
      assert.ok((await reader.extend(held)).every((outcome) => outcome === "settled"));
    }
    const now = await rows(client, n.stream, n.group);
    assert.deepEqual(now.map((row) => [row[0], row[3]]), held.map((raw) => [idOf(raw), 1]));
  });

  onRedis("what nobody extended comes again to the same consumer, counted", async ({ url }, context) => {
    const n = names();
    const { transport } = await openTransport(context, { url, prefix: n.prefix, ordered: false, minIdleMs: 150 });
    const reader = new Reader(transport, n.topic, n.group);
    await publish(transport, n.topic, bodies(1, 3), "a");
    await reader.take(3);
    const again = await reader.take(3);
    assert.deepEqual(bodiesOf(again), ["m1", "m2", "m3"]);
    assert.deepEqual(again.map((raw) => raw.deliveries), [1, 1, 1]);
    assert.deepEqual(await reader.ack(again), ["settled", "settled", "settled"]);
  });

  onRedis(
    "giving back an earlier hold leaves what came again to the same consumer in its hands",
    async ({ url }, context) => {
      const n = names();
      const client = await admin(context, url);
      const options = { url, prefix: n.prefix, ordered: false, minIdleMs: 400 };
      const one = await openTransport(context, options);
      const reader = new Reader(one.transport, n.topic, n.group);
      await publish(one.transport, n.topic, bodies(1, 2), "a");
      const earlier = await reader.take(2);
      const again = await reader.take(2);
      assert.deepEqual(await reader.release(earlier), ["stale", "stale"]);
      const idle = (await rows(client, n.stream, n.group)).map((row) => Number(row[2]));
      assert.ok(idle.every((ms) => ms < 400), "it is not offered to others");
      assert.deepEqual(await reader.extend(again), ["settled", "settled"]);
      assert.deepEqual(await reader.release([again[0]!]), ["settled"]);
      assert.deepEqual(await reader.ack([again[1]!]), ["settled"]);
    },
  );

  onRedis("extending keeps a message from others, uncounted (RED-10)", async ({ url }, context) => {
    const n = names();
    const client = await admin(context, url);
    const options = { url, prefix: n.prefix, ordered: false, minIdleMs: 300 };
    const one = await openTransport(context, options);
    const two = await openTransport(context, options);
    const first = new Reader(one.transport, n.topic, n.group);
    const second = new Reader(two.transport, n.topic, n.group);
    await publish(one.transport, n.topic, ["m1"], "a");
    const held = await first.take(1);
    const end = performance.now() + 1_200;
    while (performance.now() < end) {
      assert.deepEqual(await first.extend(held), ["settled"]);
      assert.deepEqual(await second.fetch(60), []);
    }
    assert.deepEqual((await rows(client, n.stream, n.group)).map((row) => row[3]), [1]);
    assert.deepEqual(await first.ack(held), ["settled"]);
  });

  onRedis("who lost a message to another cannot settle or extend it any more (RED-10)", async ({ url }, context) => {
    const n = names();
    const client = await admin(context, url);
    const options = { url, prefix: n.prefix, ordered: false, minIdleMs: 300 };
    const one = await openTransport(context, options);
    const two = await openTransport(context, options);
    const first = new Reader(one.transport, n.topic, n.group);
    const second = new Reader(two.transport, n.topic, n.group);
    await publish(one.transport, n.topic, bodies(1, 40), "a");
    const held = await first.take(40);
    const taken = await second.take(40);
    assert.deepEqual(await first.extend(held.slice(0, 2)), ["stale", "stale"]);
    assert.ok((await first.ack(held)).every((outcome) => outcome === "stale"));
    assert.equal(await pendingOf(client, n.stream, n.group), 40);
    assert.ok((await second.ack(taken)).every((outcome) => outcome === "settled"));
    assert.equal(await pendingOf(client, n.stream, n.group), 0);
  });

  onRedis("an ack of what was settled by hand is stale, and reading goes on (RED-11)", async ({ url }, context) => {
    const n = names();
    const client = await admin(context, url);
    const { transport } = await openTransport(context, { url, prefix: n.prefix, ordered: false });
    const reader = new Reader(transport, n.topic, n.group);
    await publish(transport, n.topic, bodies(1, 3), "a");
    const held = await reader.take(3);
    await client.call("XACK", n.stream, n.group, idOf(held[1]!));
    assert.deepEqual(await reader.ack(held), ["settled", "stale", "settled"]);
    const from = performance.now();
    await publish(transport, n.topic, ["m4"], "a");
    assert.deepEqual(bodiesOf(await reader.take(1)), ["m4"]);
    assert.ok(performance.now() - from < 1_000);
  });

  onRedis("what is given back goes to others within a second and a half, uncounted", async ({ url }, context) => {
    const n = names();
    const options = { url, prefix: n.prefix, ordered: false };
    const one = await openTransport(context, options);
    const two = await openTransport(context, options);
    const first = new Reader(one.transport, n.topic, n.group);
    const second = new Reader(two.transport, n.topic, n.group);
    await publish(one.transport, n.topic, bodies(1, 20), "a");
    const held = await first.take(20);
    assert.deepEqual(await second.fetch(0), []);
    assert.ok((await first.release(held.slice(0, 18))).every((outcome) => outcome === "settled"));
    const from = performance.now();
    const got = await second.take(18);
    assert.ok(performance.now() - from < 1_500);
    assert.deepEqual(bodiesOf(got), bodies(1, 18));
    assert.ok(got.every((raw) => raw.deliveries === 0));
    await one.transport.close();
    const rest = await second.take(2);
    assert.deepEqual(bodiesOf(rest), ["m19", "m20"]);
    assert.ok(rest.every((raw) => raw.deliveries === 0), "closing gives back the same way");
  });

  onRedis("aborting a blocked read takes no time and loses nothing it brought", async ({ url }, context) => {
    const n = names();
    const { transport } = await openTransport(context, { url, prefix: n.prefix, ordered: false });
    const reader = new Reader(transport, n.topic, n.group);
    let got = 0;
    for (let round = 0; round < 40; round++) {
      const stop = new AbortController();
      const read = reader.fetch(2_000, 10, stop.signal);
      if (round % 4 !== 0) await new Promise((resolve) => setTimeout(resolve, round % 3));
      const sent = publish(transport, n.topic, [`m${round}`], "a");
      const from = performance.now();
      stop.abort();
      const raws = await read;
      assert.ok(performance.now() - from < 500);
      await sent;
      got += raws.length;
      if (raws.length > 0) await reader.ack(raws);
      else {
        const rest = await reader.take(1);
        got += rest.length;
        await reader.ack(rest);
      }
    }
    assert.equal(got, 40);
  });

  onRedis(
    "a lost group is created again at the floor, with one signal a member that sees it (RED-07)",
    async ({ url }, context) => {
      const n = names();
      const client = await admin(context, url);
      const { transport, listener } = await openTransport(context, { url, prefix: n.prefix, ordered: false });
      const reader = new Reader(transport, n.topic, n.group);
      await publish(transport, n.topic, bodies(1, 6), "a");
      const held = await reader.take(6);
      await reader.ack(held.slice(0, 4));
      await client.call("XGROUP", "DESTROY", n.stream, n.group);
      assert.deepEqual(bodiesOf(await reader.take(2)), ["m5", "m6"]);
      assert.equal(listener.count("signal", "group-lost"), 1);
      await client.call("DEL", ...await client.call("KEYS", `*${n.prefix}*`) as string[]);
      await publish(transport, n.topic, ["m7"], "a");
      assert.deepEqual(bodiesOf(await reader.take(1)), ["m7"]);
      assert.equal(listener.count("signal", "group-lost"), 2);
    },
  );

  onRedis("all partitions of a topic are read", async ({ url }, context) => {
    const n = names();
    const { transport } = await openTransport(context, { url, prefix: n.prefix, ordered: false, partitions: 3 });
    const reader = new Reader(transport, n.topic, n.group);
    const sent = Array.from({ length: 60 }, (_, at) => ({ body: `m${at}`, subject: `s${at % 12}` }));
    await transport.send(n.topic, sent);
    const raws = await reader.take(60, 5_000, 7);
    assert.deepEqual(new Set(raws.map((raw) => raw.partition)), new Set([0, 1, 2]));
    assert.ok((await reader.ack(raws)).every((outcome) => outcome === "settled"));
    const client = await admin(context, url);
    for (let at = 0; at < 3; at++) assert.equal(await pendingOf(client, `${n.stream}:${at}`, n.group), 0);
  });
});

onServer("redis")("nothing is read after closing, and nobody is left in the group (RED-14)", async (start, context) => {
  const { url } = await start();
  const n = names();
  const client = await admin(context, url);
  const { transport } = await openTransport(context, { url, prefix: n.prefix, ordered: false });
  const reader = new Reader(transport, n.topic, n.group);
  const read = reader.fetch(60_000);
  await blocked(context, url, /cmd=xreadgroup/);
  const from = performance.now();
  await transport.close();
  assert.ok(performance.now() - from < 1_000);
  assert.deepEqual(await read, []);
  await client.call("XADD", n.stream, "*", "ce", "m1", "subject", "");
  const info = await groupInfo(client, n.stream, n.group);
  assert.deepEqual([info["last-delivered-id"], info["pending"], info["consumers"]], ["0-0", 0, 0]);
  await assert.rejects(reader.fetch(), { code: "closed" });
});
