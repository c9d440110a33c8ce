import assert from "node:assert/strict";
import type { EdaError } from "../../core/errors.ts";
import type { Raw } from "../../core/transport.ts";
import { onLegs, onServer, until } from "../support/test.ts";
import {
  admin,
  bodies,
  bodiesOf,
  FreezableClock,
  groupInfo,
  names,
  openTransport,
  pendingOf,
  publish,
  Reader,
  serverMs,
} from "./redis_support.ts";

onLegs(["redis", "redis8", "valkey"], (onEach) => {
  onEach("reads in publish order, once, and settles", async ({ url }, context) => {
    const n = names();
    const { transport, listener } = await openTransport(context, { url, prefix: n.prefix });
    const reader = new Reader(transport, n.topic, n.group);
    await publish(transport, n.topic, bodies(1, 300), "a");
    const raws = await reader.take(300);
    assert.deepEqual(bodiesOf(raws), bodies(1, 300));
    assert.ok(raws.every((raw) => raw.deliveries === 0 && raw.partition === 0 && raw.leaseMs === undefined));
    assert.deepEqual(await reader.fetch(), []);
    assert.ok((await reader.ack(raws)).every((outcome) => outcome === "settled"));
    const client = await admin(context, url);
    assert.equal(await pendingOf(client, n.stream, n.group), 0);
    assert.equal(listener.count("topic", "active"), 1);
    const owned = listener.told.find((told) => told.kind === "owned")!;
    const ahead = owned.leaseUntil! - performance.now();
    assert.ok(ahead > 10_000 && ahead <= 15_000);
  });

  onEach("two reads in flight hand out in order", async ({ url }, context) => {
    const n = names();
    const { transport } = await openTransport(context, { url, prefix: n.prefix });
    const reader = new Reader(transport, n.topic, n.group);
    await publish(transport, n.topic, bodies(1, 400), "a");
    await reader.fetch(0, 1);
    const got: unknown[] = [];
    const seen: string[] = [];
    const note = (name: string) => (raws: readonly Raw[]) => {
      seen.push(name);
      got.push(...bodiesOf(raws));
    };
    await Promise.all([reader.fetch(1_000, 100).then(note("first")), reader.fetch(0, 100).then(note("second"))]);
    assert.deepEqual(seen, ["first", "second"]);
    assert.deepEqual(got, bodies(2, 201));
  });

  onEach("a wait ends within milliseconds of a publish, and on abort", async ({ url }, context) => {
    const n = names();
    const { transport } = await openTransport(context, { url, prefix: n.prefix });
    const reader = new Reader(transport, n.topic, n.group);
    assert.deepEqual(await reader.fetch(0), []);
    const waiting = reader.fetch(10_000);
    await new Promise((resolve) => setTimeout(resolve, 100));
    const from = performance.now();
    await publish(transport, n.topic, ["m1"]);
    assert.deepEqual(bodiesOf(await waiting), ["m1"]);
    assert.ok(performance.now() - from < 500);
    const again = reader.fetch(10_000);
    const aborted = performance.now();
    reader.abort();
    assert.deepEqual(await again, []);
    assert.ok(performance.now() - aborted < 200);
  });

  onEach("an owner whose key is another's reads nothing and settles nothing", async ({ url }, context) => {
    const n = names();
    const client = await admin(context, url);
    const { transport, listener } = await openTransport(context, { url, prefix: n.prefix });
    const reader = new Reader(transport, n.topic, n.group);
    await publish(transport, n.topic, bodies(1, 5), "a");
    const held = await reader.take(2, 5_000, 2);
    await client.call("SET", n.owner, "1:somebody:else", "PX", 60_000);
    // It does not know yet, and its lease runs: only the server can tell.
    assert.deepEqual(await reader.ack(held), ["stale", "stale"]);
    assert.deepEqual(await reader.fetch(300), []);
    assert.deepEqual(await reader.ack(held), ["stale", "stale"]);
    assert.equal(await pendingOf(client, n.stream, n.group), 2);
    assert.equal(
      (await groupInfo(client, n.stream, n.group))["last-delivered-id"],
      (held[1]!.native as { id: string }).id,
    );
    assert.equal(listener.count("revoked"), 1);
    assert.equal(listener.count("topic", "standby"), 1);
  });

  onEach("a read on its way when ownership changes gets nothing", async ({ url }, context) => {
    const n = names();
    const client = await admin(context, url);
    const { transport } = await openTransport(context, { url, prefix: n.prefix });
    const reader = new Reader(transport, n.topic, n.group);
    assert.deepEqual(await reader.fetch(), []);
    // Owner key and message appear in one step: whenever the read comes, it comes after both or before both.
    for (let round = 0; round < 30; round++) {
      const read = reader.fetch(0);
      await client.call(
        "EVAL",
        "redis.call('SET', KEYS[2], 'another', 'PX', 60000) redis.call('XADD', KEYS[1], '*', 'ce', ARGV[1], 'subject', '')",
        2,
        n.stream,
        n.owner,
        `m${round}`,
      );
      assert.deepEqual(await read, []);
      assert.deepEqual(await reader.fetch(0), []);
    }
    assert.equal((await groupInfo(client, n.stream, n.group))["last-delivered-id"], "0-0");
  });

  onEach("an owner key that ran out is taken back while nobody else had it", async ({ url }, context) => {
    const n = names();
    const client = await admin(context, url);
    const { transport, listener } = await openTransport(context, { url, prefix: n.prefix });
    const reader = new Reader(transport, n.topic, n.group);
    await publish(transport, n.topic, bodies(1, 3), "a");
    const held = await reader.take(1, 5_000, 1);
    await client.call("DEL", n.owner);
    // The refused read asks the server, which gives the key back: same epoch, nothing lost.
    assert.deepEqual(bodiesOf(await reader.take(2)), ["m2", "m3"]);
    assert.deepEqual(await reader.ack(held), ["settled"]);
    assert.equal(listener.count("revoked"), 0);
  });
});

const onOwn = onServer("redis");

onOwn(
  "a foreign client that takes everything does not make the wait spin",
  { sanitize: false },
  async (start, context) => {
    // A server of its own: its count of commands is over all clients.
    const { url } = await start();
    const n = names();
    const client = await admin(context, url);
    const { transport } = await openTransport(context, { url, prefix: n.prefix });
    const reader = new Reader(transport, n.topic, n.group);
    assert.deepEqual(await reader.fetch(0), []);
    await client.call(
      "EVAL",
      "redis.call('XADD', KEYS[1], '*', 'ce', 'm') redis.call('XREADGROUP', 'GROUP', ARGV[1], 'stranger', 'STREAMS', KEYS[1], '>')",
      1,
      n.stream,
      n.group,
    );
    const commands = async () =>
      Number(/total_commands_processed:(\d+)/.exec(String(await client.call("INFO", "stats")))![1]);
    const before = await commands();
    assert.deepEqual(await reader.fetch(1_000), []);
    assert.ok(await commands() - before < 200);
  },
);

onLegs(["redis"], (onRedis) => {
  onOwn(
    "a full memory stops neither reading nor settling, nor opens the fence",
    { sanitize: false },
    async (start, context) => {
      const { url } = await start();
      const n = names();
      const client = await admin(context, url);
      const { transport, listener } = await openTransport(context, { url, prefix: n.prefix, ownerLeaseMs: 900 });
      const reader = new Reader(transport, n.topic, n.group);
      await publish(transport, n.topic, bodies(1, 6), "a");
      const first = await reader.take(1, 5_000, 1);
      await client.call("CONFIG", "SET", "maxmemory", "1");
      const [refused] = await transport.send(n.topic, [{ body: "m7" }]);
      assert.equal((refused as EdaError).code, "broker-unavailable");
      const second = await reader.take(2, 5_000, 2);
      assert.deepEqual(bodiesOf(second), ["m2", "m3"]);
      assert.deepEqual(await reader.ack([...first, ...second]), ["settled", "settled", "settled"]);
      await until(() => listener.count("owned") >= 4, { what: "renewals" });
      assert.equal(listener.count("revoked"), 0);
      await client.call("CONFIG", "SET", "maxmemory", "0");
      await client.call("SET", n.owner, "1:somebody:else", "PX", 60_000);
      await client.call("CONFIG", "SET", "maxmemory", "1");
      assert.deepEqual(await reader.fetch(0), []);
      assert.equal(await pendingOf(client, n.stream, n.group), 0);
    },
  );

  onRedis("a second member stands by and takes over at once after an orderly end", async ({ url }, context) => {
    const n = names();
    const first = await openTransport(context, { url, prefix: n.prefix });
    const second = await openTransport(context, { url, prefix: n.prefix });
    const reader = new Reader(first.transport, n.topic, n.group);
    const standby = new Reader(second.transport, n.topic, n.group);
    await publish(first.transport, n.topic, bodies(1, 10), "a");
    const held = await reader.take(5, 5_000, 5);
    assert.deepEqual(await standby.fetch(0), []);
    assert.equal(second.listener.count("topic", "standby"), 1);
    assert.deepEqual(await reader.ack(held.slice(0, 2)), ["settled", "settled"]);
    const from = performance.now();
    assert.deepEqual(await reader.release(held.slice(2)), ["settled", "settled", "settled"]);
    await first.transport.unsubscribe(n.topic, n.group);
    const rest = await standby.take(8);
    assert.ok(performance.now() - from < 1_000, "within a second");
    assert.deepEqual(bodiesOf(rest), bodies(3, 10));
    assert.ok(rest.every((raw) => raw.deliveries === 0), "given back politely, not counted");
    assert.equal(second.listener.count("topic", "active"), 1);
    assert.equal(second.listener.count("signal"), 0);
  });

  onRedis(
    "a member that froze is followed within its lease and a second, from its oldest unsettled message",
    async ({ url }, context) => {
      const n = names();
      const options = { url, prefix: n.prefix, ownerLeaseMs: 1_500 };
      const clock = new FreezableClock();
      const first = await openTransport(context, options, clock);
      context.cleanup(() => clock.frozen = false);
      const reader = new Reader(first.transport, n.topic, n.group);
      await publish(first.transport, n.topic, bodies(1, 10), "a");
      const held = await reader.take(6, 5_000, 6);
      await reader.ack([held[0]!, held[2]!]);
      const client = await admin(context, url);
      const second = await openTransport(context, options);
      const standby = new Reader(second.transport, n.topic, n.group);
      clock.frozen = true;
      const from = performance.now();
      const rest = await standby.take(8);
      assert.ok(performance.now() - from < 2_500);
      assert.deepEqual(bodiesOf(rest), ["m2", "m4", "m5", "m6", ...bodies(7, 10)]);
      assert.deepEqual(rest.map((raw) => raw.deliveries), [1, 1, 1, 1, 0, 0, 0, 0]);
      // It does not know yet; what it sends does nothing.
      assert.equal(first.listener.count("revoked"), 0);
      assert.deepEqual(await reader.ack(held.slice(3)), ["stale", "stale", "stale"]);
      assert.deepEqual(await reader.fetch(0), []);
      assert.equal(first.listener.count("revoked"), 1);
      assert.equal(await pendingOf(client, n.stream, n.group), 8);
      assert.equal(second.listener.count("signal", "foreign-consumer"), 0);
    },
  );

  onRedis("pending entries are drained page by page before anything new", async ({ url }, context) => {
    const n = names();
    const first = await openTransport(context, { url, prefix: n.prefix });
    const reader = new Reader(first.transport, n.topic, n.group);
    await publish(first.transport, n.topic, bodies(1, 50), "a");
    await reader.take(40, 5_000, 40);
    await first.transport.close();
    const second = await openTransport(context, { url, prefix: n.prefix });
    const next = new Reader(second.transport, n.topic, n.group);
    const got = [];
    for (let page = 0; got.length < 50; page++) {
      assert.ok(page < 20);
      const [one, two] = await Promise.all([next.fetch(1_000, 7), next.fetch(0, 7)]);
      got.push(...one, ...two);
    }
    assert.deepEqual(bodiesOf(got), bodies(1, 50));
  });

  onRedis(
    "entries of a name that never owned the partition come only past minIdleMs, with one signal",
    async ({ url }, context) => {
      const n = names();
      const client = await admin(context, url);
      await client.call("XGROUP", "CREATE", n.stream, n.group, "0", "MKSTREAM");
      const { transport, listener } = await openTransport(context, { url, prefix: n.prefix, minIdleMs: 700 });
      await publish(transport, n.topic, bodies(1, 4), "a");
      const from = await serverMs(client);
      await client.call("XREADGROUP", "GROUP", n.group, "stranger", "COUNT", 2, "STREAMS", n.stream, ">");
      const reader = new Reader(transport, n.topic, n.group);
      assert.deepEqual(bodiesOf(await reader.take(2)), ["m3", "m4"]);
      assert.equal(listener.count("signal", "foreign-consumer"), 1);
      const late = await reader.take(2);
      assert.ok(await serverMs(client) - from >= 700);
      assert.deepEqual(bodiesOf(late), ["m1", "m2"]);
      assert.deepEqual(late.map((raw) => raw.deliveries), [1, 1]);
      assert.equal(listener.count("signal", "foreign-consumer"), 1);
    },
  );

  onRedis(
    "a foreign client that joins later is noticed, and what it leaves is read past minIdleMs",
    async ({ url }, context) => {
      const n = names();
      const client = await admin(context, url);
      const options = { url, prefix: n.prefix, minIdleMs: 500, ownerLeaseMs: 900 };
      const { transport, listener } = await openTransport(context, options);
      const reader = new Reader(transport, n.topic, n.group);
      assert.deepEqual(await reader.fetch(0), []);
      await publish(transport, n.topic, bodies(1, 2), "a");
      await client.call("XREADGROUP", "GROUP", n.group, "stranger", "COUNT", 1, "STREAMS", n.stream, ">");
      assert.deepEqual(bodiesOf(await reader.take(1)), ["m2"]);
      assert.deepEqual(bodiesOf(await reader.take(1)), ["m1"]);
      assert.equal(listener.count("signal", "foreign-consumer"), 1);
    },
  );

  onRedis("an ack of what was settled by hand is stale, and reading goes on (RED-11)", async ({ url }, context) => {
    const n = names();
    const client = await admin(context, url);
    const { transport } = await openTransport(context, { url, prefix: n.prefix });
    const reader = new Reader(transport, n.topic, n.group);
    await publish(transport, n.topic, bodies(1, 3), "a");
    const held = await reader.take(3);
    await client.call("XACK", n.stream, n.group, (held[1]!.native as { id: string }).id);
    assert.deepEqual(await reader.ack(held), ["settled", "stale", "settled"]);
    const from = performance.now();
    await publish(transport, n.topic, ["m4"], "a");
    assert.deepEqual(bodiesOf(await reader.take(1)), ["m4"]);
    assert.ok(performance.now() - from < 1_000);
  });

  onRedis(
    "an entry without the field ce is handed out as no bytes, one whose entry is gone as null (RED-02)",
    async ({ url }, context) => {
      const n = names();
      const client = await admin(context, url);
      const first = await openTransport(context, { url, prefix: n.prefix });
      const reader = new Reader(first.transport, n.topic, n.group);
      await publish(first.transport, n.topic, bodies(1, 3), "a");
      await client.call("XADD", n.stream, "*", "other", "x");
      const held = await reader.take(4);
      assert.ok(held[3]!.body instanceof Uint8Array && held[3]!.body.length === 0);
      await client.call("XDEL", n.stream, (held[1]!.native as { id: string }).id);
      await first.transport.close();
      const second = await openTransport(context, { url, prefix: n.prefix });
      const next = new Reader(second.transport, n.topic, n.group);
      const again = await next.take(4);
      assert.deepEqual(bodiesOf(again).slice(0, 3), ["m1", null, "m3"]);
      assert.deepEqual(await next.ack(again), ["settled", "settled", "settled", "settled"]);
      assert.equal(await pendingOf(client, n.stream, n.group), 0);
    },
  );

  onRedis("what the server counts and nobody holds is read again, in order", async ({ url }, context) => {
    const n = names();
    const client = await admin(context, url);
    const { transport } = await openTransport(context, { url, prefix: n.prefix, ownerLeaseMs: 900 });
    const reader = new Reader(transport, n.topic, n.group);
    await publish(transport, n.topic, bodies(1, 6), "a");
    const held = await reader.take(2, 5_000, 2);
    // As if replies were lost: entries delivered under our name that never reached us.
    const [info] = await client.call("XINFO", "CONSUMERS", n.stream, n.group) as [string, string][];
    const consumer = info![1];
    await client.call("XREADGROUP", "GROUP", n.group, consumer, "COUNT", 2, "STREAMS", n.stream, ">");
    const rest = [...await reader.take(4)];
    assert.deepEqual(bodiesOf(rest).sort(), bodies(3, 6));
    assert.ok(rest.every((raw) => raw.deliveries === 0));
    await reader.ack([...held, ...rest]);
    assert.equal(await pendingOf(client, n.stream, n.group), 0);
  });

  onRedis(
    "a lost group starts again at the floor: unsettled ones come again, settled ones do not (RED-07)",
    async ({ url }, context) => {
      const n = names();
      const client = await admin(context, url);
      const { transport, listener } = await openTransport(context, { url, prefix: n.prefix, ownerLeaseMs: 900 });
      const reader = new Reader(transport, n.topic, n.group);
      await publish(transport, n.topic, bodies(1, 10), "a");
      const held = await reader.take(8, 5_000, 8);
      await reader.ack(held.slice(0, 5));
      const fifth = (held[4]!.native as { id: string }).id;
      const sixth = (held[5]!.native as { id: string }).id;
      await until(async () => {
        const floor = String(await client.call("GET", n.floor));
        return floor >= fifth && floor < sixth;
      }, { what: "the floor to be saved" });
      await client.call("XGROUP", "DESTROY", n.stream, n.group);
      assert.deepEqual(bodiesOf(await reader.take(5)), bodies(6, 10));
      assert.equal(listener.count("signal", "group-lost"), 1);
      assert.equal(listener.count("revoked", "the consumer group was lost"), 1);
    },
  );

  onRedis(
    "after the loss of all data, events published since are read within two seconds, once (RED-07)",
    async ({ url }, context) => {
      const n = names();
      const client = await admin(context, url);
      const options = { url, prefix: n.prefix };
      const one = await openTransport(context, options);
      const two = await openTransport(context, options);
      const readers = [new Reader(one.transport, n.topic, n.group), new Reader(two.transport, n.topic, n.group)];
      await publish(one.transport, n.topic, bodies(1, 3), "a");
      const before = await readers[0]!.take(3);
      await readers[0]!.ack(before);
      const got: unknown[] = [];
      let errors = 0;
      let over = false;
      const loops = readers.map(async (reader) => {
        while (!over) {
          try {
            const raws = await reader.fetch(1_000);
            got.push(...bodiesOf(raws));
            if (raws.length > 0) await reader.ack(raws);
          } catch {
            errors++;
          }
        }
      });
      await two.listener.heard("topic", "standby");
      const keys = await client.call("KEYS", `*${n.prefix}*`) as string[];
      await client.call("DEL", ...keys);
      await publish(one.transport, n.topic, bodies(4, 6), "a");
      const from = performance.now();
      await until(() => got.length >= 3, { timeoutMs: 4_000, what: "the three events" });
      assert.ok(performance.now() - from < 2_000);
      over = true;
      for (const reader of readers) reader.abort();
      await Promise.all(loops);
      assert.deepEqual(got, bodies(4, 6));
      assert.ok(errors < 5);
      const lost = one.listener.count("signal", "group-lost") + two.listener.count("signal", "group-lost");
      assert.equal(lost, 1);
    },
  );

  onRedis(
    "a deleted stream is followed by its successor though its ids are older than the floor",
    async ({ url }, context) => {
      const n = names();
      const client = await admin(context, url);
      const { transport } = await openTransport(context, { url, prefix: n.prefix, ownerLeaseMs: 600 });
      const reader = new Reader(transport, n.topic, n.group);
      await client.call("XADD", n.stream, "9999999999999-1", "ce", "m1", "subject", "");
      await reader.ack(await reader.take(1));
      await until(() => client.call("GET", n.floor), { what: "a floor" });
      await client.call("DEL", n.stream);
      await publish(transport, n.topic, ["m2"]);
      assert.deepEqual(bodiesOf(await reader.take(1)), ["m2"]);
    },
  );

  onRedis(
    "members share the partitions, keep order per subject, and take over what one leaves",
    async ({ url }, context) => {
      const n = names();
      const options = { url, prefix: n.prefix, partitions: 4 };
      const one = await openTransport(context, options);
      const two = await openTransport(context, options);
      const readers = [new Reader(one.transport, n.topic, n.group), new Reader(two.transport, n.topic, n.group)];
      const bySubject = new Map<string, number[]>();
      const partitionsOf: Set<number>[] = [new Set(), new Set()];
      let over = false;
      let count = 0;
      const loops = readers.map(async (reader, member) => {
        while (!over) {
          const raws = await reader.fetch(500, 64);
          for (const raw of raws) {
            partitionsOf[member]!.add(raw.partition);
            const [subject, at] = String(raw.body).split(":") as [string, string];
            bySubject.set(subject, [...bySubject.get(subject) ?? [], Number(at)]);
            count++;
          }
          if (raws.length > 0) await reader.ack(raws);
        }
      });
      await until(() => [one, two].every(({ listener }) => listener.count("topic", "active") === 1), {
        what: "both active",
      });
      const send = async (from: number, to: number) => {
        for (let at = from; at <= to; at++) {
          const outcomes = await one.transport.send(
            n.topic,
            Array.from({ length: 20 }, (_, s) => ({ body: `s${s}:${at}`, subject: `s${s}` })),
          );
          assert.ok(outcomes.every((outcome) => outcome === undefined));
        }
      };
      await send(1, 10);
      await until(() => count >= 200, { what: "the first half" });
      assert.equal(partitionsOf[0]!.size + partitionsOf[1]!.size >= 4, true);
      assert.ok(partitionsOf[0]!.size > 0 && partitionsOf[1]!.size > 0, "both work");
      await two.transport.unsubscribe(n.topic, n.group);
      await send(11, 20);
      await until(() => count >= 400, { timeoutMs: 10_000, what: "the second half" });
      over = true;
      for (const reader of readers) reader.abort();
      await Promise.all(loops);
      assert.equal(bySubject.size, 20);
      for (const seen of bySubject.values()) assert.deepEqual(seen, Array.from({ length: 20 }, (_, at) => at + 1));
    },
  );

  onRedis("a client with another number of partitions is refused, naming both", async ({ url }, context) => {
    const n = names();
    const one = await openTransport(context, { url, prefix: n.prefix, partitions: 4 });
    await publish(one.transport, n.topic, ["m1"], "a");
    const two = await openTransport(context, { url, prefix: n.prefix, partitions: 3 });
    const expected = (error: { code: string; message: string; retriable: boolean }) => {
      assert.equal(error.code, "partition-mismatch");
      assert.match(error.message, /3.*4/);
      assert.equal(error.retriable, false);
      return true;
    };
    await assert.rejects(two.transport.send(n.topic, [{ body: "m2" }]), expected);
    await assert.rejects(new Reader(two.transport, n.topic, n.group).fetch(), expected);
  });

  onRedis(
    "streams that another system divided otherwise are refused, nothing is written beside them",
    async ({ url }, context) => {
      const client = await admin(context, url);
      const n = names();
      await client.call("XADD", `${n.prefix}:stream:${n.topic}:0`, "*", "ce", "{}");
      await client.call("XADD", `${n.prefix}:stream:${n.topic}-b`, "*", "ce", "{}");
      const one = await openTransport(context, { url, prefix: n.prefix });
      const four = await openTransport(context, { url, prefix: n.prefix, partitions: 4 });
      const expected = { code: "partition-mismatch", retriable: false };
      await assert.rejects(one.transport.send(n.topic, [{ body: "m" }]), expected);
      await assert.rejects(new Reader(one.transport, n.topic, n.group).fetch(), expected);
      await assert.rejects(four.transport.send(`${n.topic}-b`, [{ body: "m" }]), expected);
      assert.equal(await client.call("EXISTS", `${n.prefix}:stream:${n.topic}`), 0);
      // Given the number, it is used; and a topic may be called like a part of another.
      await publish(four.transport, n.topic, ["m"], "a");
      await publish(one.transport, "shop:0", ["m"], "a");
      await publish(one.transport, "shop", ["m"], "a");
    },
  );

  onRedis("consumers that are long gone are removed, never one with entries pending", async ({ url }, context) => {
    const n = names();
    const client = await admin(context, url);
    const first = await openTransport(context, { url, prefix: n.prefix });
    const reader = new Reader(first.transport, n.topic, n.group);
    await publish(first.transport, n.topic, bodies(1, 2), "a");
    const held = await reader.take(2);
    await reader.ack(held.slice(0, 1));
    await first.transport.close();
    const consumers = async () => (await client.call("XINFO", "CONSUMERS", n.stream, n.group) as unknown[]).length;
    assert.equal(await consumers(), 1, "it has an entry pending");
    const second = await openTransport(context, { url, prefix: n.prefix });
    const next = new Reader(second.transport, n.topic, n.group);
    await next.ack(await next.take(1));
    assert.equal(await consumers(), 2);
    await second.transport.close();
    assert.equal(await consumers(), 1, "the one that closed with nothing pending is gone");
  });

  onRedis("the lag is told, where the server knows it (Redis 7)", async ({ url }, context) => {
    const n = names();
    const client = await admin(context, url);
    await client.call("XGROUP", "CREATE", n.stream, n.group, "0", "MKSTREAM");
    if ((await groupInfo(client, n.stream, n.group))["lag"] === undefined) return;
    const { transport, listener } = await openTransport(context, { url, prefix: n.prefix, ownerLeaseMs: 600 });
    await publish(transport, n.topic, bodies(1, 7), "a");
    const reader = new Reader(transport, n.topic, n.group);
    await reader.take(3, 5_000, 3);
    await listener.heard("lag", "4");
  });
});
