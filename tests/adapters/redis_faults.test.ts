import assert from "node:assert/strict";
import type { EdaError } from "../../core/errors.ts";
import type { Transport } from "../../core/transport.ts";
import { type LegInfo, onLegs, onServer, type Proxy, startProxy, type TestContext, until } from "../support/test.ts";
import {
  admin,
  blocked,
  bodies,
  bodiesOf,
  groupInfo,
  type Listener,
  names,
  openTransport,
  pendingOf,
  publish,
  Reader,
} from "./redis_support.ts";

/** A transport behind a proxy, and one beside it that publishes undisturbed. */
async function behindProxy(
  { url }: LegInfo,
  context: TestContext,
  options: { readonly ordered: boolean; readonly [name: string]: unknown },
): Promise<{
  n: ReturnType<typeof names>;
  proxy: Proxy;
  reader: Reader;
  transport: Transport;
  listener: Listener;
  publisher: Transport;
}> {
  const n = names();
  const proxy = await startProxy({ port: Number(new URL(url).port) });
  context.cleanup(() => proxy.close());
  const { transport: publisher } = await openTransport(context, { url, prefix: n.prefix });
  const { transport, listener } = await openTransport(context, { url: proxy.url(url), prefix: n.prefix, ...options });
  return { n, proxy, reader: new Reader(transport, n.topic, n.group), transport, listener, publisher };
}

const onOwn = onServer("redis");

onLegs(["redis"], (onRedis) => {
  for (const ordered of [true, false]) {
    const mode = ordered ? "ordered" : "unordered";

    onOwn(
      `${mode}: publishing takes no notice of a blocked read, and topics none of each other (RED-04)`,
      async (start, context) => {
        const { url } = await start();
        const n = names();
        const { transport } = await openTransport(context, { url, prefix: n.prefix, ordered });
        const one = new Reader(transport, "one", n.group);
        const two = new Reader(transport, "two", n.group);
        const reads = [one.fetch(5_000), two.fetch(5_000)];
        await blocked(context, url);
        for (let at = 0; at < 20; at++) {
          const from = performance.now();
          await publish(transport, "other", [`m${at}`]);
          assert.ok(performance.now() - from < 200);
        }
        const from = performance.now();
        await publish(transport, "two", ["second"]);
        assert.deepEqual(bodiesOf(await reads[1]!), ["second"]);
        await publish(transport, "one", ["first"]);
        assert.deepEqual(bodiesOf(await reads[0]!), ["first"]);
        assert.ok(performance.now() - from < 1_000);
      },
    );

    onOwn(
      `${mode}: five connections lost in a row under a blocked read: each event comes, once (RED-05)`,
      async (start, context) => {
        const leg = await start();
        const { n, proxy, reader, listener, publisher } = await behindProxy(leg, context, { ordered, blockMs: 1_000 });
        const client = await admin(context, leg.url);
        for (let round = 0; round < 5; round++) {
          const read = reader.takeThrough(1, listener, 5_000);
          await blocked(context, leg.url);
          await proxy.cut();
          const from = performance.now();
          await publish(publisher, n.topic, [`m${round}`], "a");
          const raws = await read;
          assert.ok(performance.now() - from < 3_000);
          assert.deepEqual(bodiesOf(raws), [`m${round}`]);
          assert.deepEqual(await reader.ack(raws), ["settled"]);
        }
        assert.equal(await pendingOf(client, n.stream, n.group), 0);
        assert.deepEqual(await reader.fetch(0), []);
      },
    );

    onRedis(`${mode}: replies lost on the way are read again, in order, uncounted`, async (leg, context) => {
      const { n, proxy, reader, listener, publisher } = await behindProxy(leg, context, { ordered });
      const client = await admin(context, leg.url);
      await publish(publisher, n.topic, bodies(1, 5), "a");
      const first = await reader.take(5);
      for (let round = 0; round < 6; round++) {
        const texts = bodies(6 + round * 100, 105 + round * 100);
        await publish(publisher, n.topic, texts, "a");
        // Somewhere in the replies of the reads.
        await proxy.cutAfter(500 + round * 700, "down");
        const raws = await reader.takeThrough(100, listener);
        if (ordered) assert.deepEqual(bodiesOf(raws), texts);
        else assert.deepEqual(bodiesOf(raws).sort(), [...texts].sort());
        assert.ok(raws.every((raw) => raw.deliveries === 0));
        while (true) {
          try {
            const outcomes = await reader.ack(raws);
            assert.ok(outcomes.every((outcome) => outcome === "settled"));
            break;
          } catch {
            await transportBack(reader, listener);
          }
        }
      }
      assert.equal(await pendingOf(client, n.stream, n.group), 5);
      await proxy.heal();
      await transportBack(reader, listener);
      assert.ok((await reader.ack(first)).every((outcome) => outcome === "settled"));
    });

    onRedis(`${mode}: an ack whose answer was lost is settled when asked again, not stale`, async (leg, context) => {
      const { n, proxy, reader, listener, publisher } = await behindProxy(leg, context, { ordered });
      const client = await admin(context, leg.url);
      await publish(publisher, n.topic, bodies(1, 30), "a");
      const raws = await reader.take(30);
      await proxy.blackHole("down");
      const lost = reader.ack(raws);
      await until(async () => await pendingOf(client, n.stream, n.group) === 0, { what: "the ack to be carried out" });
      await proxy.cut();
      await assert.rejects(lost, { code: "outcome-unknown" });
      await proxy.heal();
      await transportBack(reader, listener);
      assert.ok((await reader.ack(raws)).every((outcome) => outcome === "settled"));
    });

    onOwn(
      `${mode}: a silent line is noticed and replaced; nothing waits longer than its deadline (RED-06)`,
      async (start, context) => {
        const leg = await start();
        const { n, proxy, reader, listener, publisher, transport } = await behindProxy(leg, context, {
          ordered,
          blockMs: 300,
          commandTimeoutMs: 600,
          publishTimeoutMs: 700,
          connectTimeoutMs: 700,
        });
        assert.deepEqual(await reader.fetch(100), []);
        await publish(transport, n.topic, ["before"], "a");
        await reader.ack(await reader.take(1));
        const read = reader.fetch(20_000);
        await blocked(context, leg.url);
        await proxy.blackHole();
        const from = performance.now();
        const sent = transport.send(n.topic, [{ body: "lost", subject: "a" }]).then(
          ([outcome]) => outcome,
          (error) => error,
        );
        const stalled = assert.rejects(read, { code: "outcome-unknown" }).then(() => performance.now() - from);
        const outcome = await sent as { code: string };
        assert.equal(outcome.code, "outcome-unknown");
        assert.ok(performance.now() - from < 700 + 500);
        assert.ok(await stalled < 2 * 300 + 1_000 + 500);
        await proxy.heal();
        await publish(publisher, n.topic, ["after"], "a");
        // The line kept what it swallowed and has passed it on by now, or not: either way nothing comes twice.
        const raws = await reader.takeThrough(1, listener);
        const rest = await reader.fetch(500);
        const got = bodiesOf([...raws, ...rest]).filter((body) => body !== "lost");
        assert.deepEqual(got, ["after"]);
      },
    );

    onRedis(
      `${mode}: an idle wait is no lost connection, whoever else is served (RED-15)`,
      { timeoutMs: 40_000 },
      async (leg, context) => {
        const n = names();
        const proxy = await startProxy({ port: Number(new URL(leg.url).port) });
        context.cleanup(() => proxy.close());
        const readers: Reader[] = [];
        for (let at = 0; at < 3; at++) {
          const { transport } = await openTransport(context, {
            url: proxy.url(leg.url),
            prefix: n.prefix,
            ordered,
            blockMs: 300,
          });
          readers.push(new Reader(transport, n.topic, n.group));
        }
        const { transport: publisher } = await openTransport(context, { url: leg.url, prefix: n.prefix });
        let over = false;
        let got = 0;
        let failed = 0;
        const loops = readers.map(async (reader) => {
          while (!over) {
            try {
              const raws = await reader.fetch(1_000);
              got += raws.length;
              if (raws.length > 0) await reader.ack(raws);
            } catch {
              failed++;
            }
          }
        });
        await until(async () => (await proxy.counts()).accepted >= (ordered ? 4 : 6), { what: "all connections" });
        const before = (await proxy.counts()).accepted;
        for (let at = 0; at < 12; at++) {
          await publish(publisher, n.topic, [`m${at}`], "a");
          await new Promise((resolve) => setTimeout(resolve, 150 + 40 * (at % 5)));
        }
        await until(() => got === 12, { what: "all events" });
        over = true;
        for (const reader of readers) reader.abort();
        await Promise.all(loops);
        assert.equal(failed, 0);
        assert.equal((await proxy.counts()).accepted, before);
      },
    );

    onOwn(`${mode}: closing takes less than a second, also while the line is silent`, async (start, context) => {
      const leg = await start();
      const { proxy, reader, transport } = await behindProxy(leg, context, { ordered });
      assert.deepEqual(await reader.fetch(50), []);
      const read = reader.fetch(60_000).catch(() => []);
      await blocked(context, leg.url);
      await proxy.blackHole();
      const from = performance.now();
      await transport.close();
      assert.ok(performance.now() - from < 1_000);
      await read;
      await proxy.heal();
    });
  }

  onOwn(
    "ordered: closing ends a long wait, leaves no socket and nothing read in vain (RED-14)",
    async (start, context) => {
      const leg = await start();
      const { n, proxy, reader, transport, publisher } = await behindProxy(leg, context, { ordered: true });
      const client = await admin(context, leg.url);
      const read = reader.fetch(60_000);
      await blocked(context, leg.url);
      const from = performance.now();
      await transport.close();
      assert.ok(performance.now() - from < 1_000);
      assert.deepEqual(await read, []);
      await until(async () => (await proxy.counts()).open === 0, { what: "its sockets to close" });
      await publish(publisher, n.topic, ["m1"], "a");
      const info = await groupInfo(client, n.stream, n.group);
      assert.deepEqual([info["last-delivered-id"], info["pending"], info["consumers"]], ["0-0", 0, 0]);
      assert.equal(await client.call("EXISTS", n.owner), 0);
    },
  );

  onRedis(
    "ordered: an owner cut off for less than its lease keeps the partition, what it holds and its place",
    async (leg, context) => {
      const { n, proxy, reader, listener, publisher } = await behindProxy(leg, context, {
        ordered: true,
        ownerLeaseMs: 6_000,
      });
      await publish(publisher, n.topic, bodies(1, 4), "a");
      const held = await reader.take(2, 5_000, 2);
      await proxy.refuse();
      await proxy.cut();
      await assert.rejects(reader.ack(held));
      await new Promise((resolve) => setTimeout(resolve, 300));
      await proxy.accept();
      await transportBack(reader, listener);
      assert.ok((await reader.ack(held)).every((outcome) => outcome === "settled"));
      assert.deepEqual(bodiesOf(await reader.takeThrough(2, listener)), ["m3", "m4"]);
      assert.equal(listener.count("revoked"), 0);
    },
  );

  onRedis(
    "ordered: an owner cut off for longer loses the partition by its own clock, before another can have it",
    async (leg, context) => {
      const { n, proxy, reader, listener, publisher } = await behindProxy(leg, context, {
        ordered: true,
        ownerLeaseMs: 1_200,
        commandTimeoutMs: 300,
        connectTimeoutMs: 300,
      });
      await publish(publisher, n.topic, bodies(1, 4), "a");
      const held = await reader.take(2, 5_000, 2);
      await proxy.blackHole();
      const { transport: other } = await openTransport(context, {
        url: leg.url,
        prefix: n.prefix,
        ownerLeaseMs: 1_200,
      });
      const next = new Reader(other, n.topic, n.group);
      const raws = await next.take(4);
      assert.equal(listener.count("revoked"), 1, "it was told before the other one had anything");
      assert.deepEqual(bodiesOf(raws), bodies(1, 4));
      assert.deepEqual(await reader.ack(held).catch(() => ["stale", "stale"]), ["stale", "stale"]);
      await proxy.heal();
      await transportBack(reader, listener);
      assert.deepEqual(await reader.ack(held), ["stale", "stale"]);
    },
  );

  onRedis(
    "ordered: a read that the network delivers after its connection was replaced takes nothing",
    async (leg, context) => {
      const { n, proxy, reader, listener, publisher } = await behindProxy(leg, context, {
        ordered: true,
        commandTimeoutMs: 300,
      });
      assert.deepEqual(await reader.fetch(0), []);
      await proxy.delay(1_500, "up");
      await assert.rejects(reader.fetch(0), { code: "outcome-unknown" });
      await proxy.delay(0, "up");
      await transportBack(reader, listener);
      assert.deepEqual(await reader.fetch(0), [], "it has looked for what the lost read may have brought");
      await publish(publisher, n.topic, bodies(1, 3), "a");
      // By now what was held back has reached the server, if anything of its connection is left there.
      await new Promise((resolve) => setTimeout(resolve, 1_600));
      await publish(publisher, n.topic, ["m4"], "a");
      assert.deepEqual(bodiesOf(await reader.take(4)), bodies(1, 4));
      assert.equal(listener.count("revoked"), 0);
    },
  );
});

onOwn(
  "reset destroys the connections; what waited is told, and the next call connects again",
  { sanitize: false },
  async (start, context) => {
    const { url } = await start();
    const n = names();
    const { transport, listener } = await openTransport(context, { url, prefix: n.prefix });
    const reader = new Reader(transport, n.topic, n.group);
    const read = reader.fetch(5_000);
    await blocked(context, url);
    transport.reset("a test");
    // Which of the two depends on whether the read was on its way or between two commands.
    await assert.rejects(read, (error: EdaError) => ["outcome-unknown", "broker-unavailable"].includes(error.code));
    await publish(transport, n.topic, ["m1"]);
    assert.deepEqual(bodiesOf(await reader.takeThrough(1, listener)), ["m1"]);
  },
);

onOwn(
  "a server that is killed and comes back empty is used again within two seconds",
  { sanitize: false },
  async (start, context) => {
    const server = await start();
    const n = names();
    const { transport, listener } = await openTransport(context, { url: server.url, prefix: n.prefix });
    const reader = new Reader(transport, n.topic, n.group);
    await publish(transport, n.topic, bodies(1, 3), "a");
    await reader.ack(await reader.take(3));
    await server.kill();
    await assert.rejects(reader.fetch(5_000));
    await assert.rejects(transport.open(listener), { code: "broker-unavailable" });
    await server.restart();
    const from = performance.now();
    const read = reader.takeThrough(1, listener);
    await until(async () => {
      const [outcome] = await transport.send(n.topic, [{ body: "m4", subject: "a" }]).catch((error: Error) => [error]);
      return outcome === undefined;
    }, { what: "publishing to work" });
    assert.deepEqual(bodiesOf(await read), ["m4"]);
    assert.ok(performance.now() - from < 2_000);
  },
);

onOwn(
  "a server that stops for a while loses nothing, and its late answers reach nobody",
  { sanitize: false },
  async (start, context) => {
    const server = await start();
    const n = names();
    const { transport, listener } = await openTransport(context, {
      url: server.url,
      prefix: n.prefix,
      commandTimeoutMs: 400,
      publishTimeoutMs: 400,
      connectTimeoutMs: 400,
      blockMs: 100,
    });
    const reader = new Reader(transport, n.topic, n.group);
    await publish(transport, n.topic, bodies(1, 50), "a");
    const first = await reader.take(10, 5_000, 10);
    server.pause();
    await assert.rejects(reader.fetch(0, 10));
    await assert.rejects(transport.open(listener), { code: "broker-unavailable" });
    server.resume();
    await transportBack(reader, listener);
    const rest = await reader.takeThrough(40, listener);
    assert.deepEqual(bodiesOf(rest), bodies(11, 50));
    await transportBack(reader, listener);
    assert.ok((await reader.ack([...first, ...rest])).every((outcome) => outcome === "settled"));
  },
);

/** Opens the transport until that works, as a session would. */
async function transportBack(reader: Reader, listener: Listener): Promise<void> {
  await until(() => reader.transport.open(listener).then(() => true), { everyMs: 50, what: "the server to be back" });
}
