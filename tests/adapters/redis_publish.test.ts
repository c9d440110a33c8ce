import assert from "node:assert/strict";
import type { EdaError } from "../../core/errors.ts";
import { partitionOf } from "../../adapters/redis/keys.ts";
import { onLegs, onServer, startProxy, until } from "../support/test.ts";
import { admin, bodies, bodiesOf, names, openTransport, publish, Reader } from "./redis_support.ts";

type Row = [id: string, fields: string[]];
const bodiesIn = (rows: unknown): string[] => (rows as Row[]).map(([, fields]) => fields[1]!);
const codeOf = (outcome: Error | undefined): string | undefined => (outcome as EdaError | undefined)?.code;

/** The codes of a send that may also fail as a whole. */
async function codesOf(send: Promise<readonly (Error | undefined)[]>): Promise<(string | undefined)[]> {
  return (await send.catch((error: Error) => [error])).map(codeOf);
}

onLegs(["redis", "redis8", "valkey"], (onEach) => {
  onEach("stands on the wire as the reference system writes it", async ({ url }, context) => {
    const n = names();
    const client = await admin(context, url);
    const { transport } = await openTransport(context, { url, prefix: n.prefix });
    await transport.send(n.topic, [{ body: '{"é":"日本"}', subject: "grüße" }, { body: "{}" }]);
    await transport.send(n.topic, [{ body: "single", subject: "a" }]);
    const rows = await client.call("XRANGE", n.stream, "-", "+") as Row[];
    assert.deepEqual(rows.map(([, fields]) => fields), [
      ["ce", '{"é":"日本"}', "subject", "grüße"],
      ["ce", "{}", "subject", ""],
      ["ce", "single", "subject", "a"],
    ]);
  });

  onEach("many sends at once keep their order, batches and single messages alike", async ({ url }, context) => {
    const n = names();
    const client = await admin(context, url);
    const { transport } = await openTransport(context, { url, prefix: n.prefix });
    const sends = [];
    let at = 0;
    // The first ones go out while connection and topic are not ready yet.
    for (let batch = 0; batch < 60; batch++) {
      const texts = Array.from({ length: [1, 3, 300, 1][batch % 4]! }, () => ({ body: `m${at++}`, subject: "a" }));
      sends.push(transport.send(n.topic, texts));
      if (batch % 7 === 0) await Promise.resolve();
    }
    assert.ok((await Promise.all(sends)).flat().every((outcome) => outcome === undefined));
    const rows = await client.call("XRANGE", n.stream, "-", "+");
    assert.deepEqual(bodiesIn(rows), Array.from({ length: at }, (_, n) => `m${n}`));
  });
});

const onOwn = onServer("redis");

onLegs(["redis"], (onRedis) => {
  onRedis("divides subjects among partitions by their checksum", async ({ url }, context) => {
    const n = names();
    const client = await admin(context, url);
    const { transport } = await openTransport(context, { url, prefix: n.prefix, partitions: 5 });
    const messages = Array.from({ length: 100 }, (_, at) => ({ body: `${at}`, subject: `subject-${at}` }));
    await transport.send(n.topic, [...messages, { body: "none" }]);
    for (let partition = 0; partition < 5; partition++) {
      const expected = messages.filter(({ subject }) => partitionOf(subject, 5) === partition).map(({ body }) => body);
      if (partition === 0) expected.push("none");
      assert.deepEqual(bodiesIn(await client.call("XRANGE", `${n.stream}:${partition}`, "-", "+")), expected);
    }
  });

  // The client's parser keeps a pool for large replies, with an interval that ends when the pool has shrunk.
  onRedis("bodies of many megabytes go through, in order", { sanitize: false }, async ({ url }, context) => {
    const n = names();
    const { transport } = await openTransport(context, { url, prefix: n.prefix });
    const texts = Array.from({ length: 12 }, (_, at) => `${at}:${"x".repeat(900_000)}`);
    await publish(transport, n.topic, texts, "a");
    const raws = await new Reader(transport, n.topic, n.group).take(12);
    assert.deepEqual(raws.map((raw) => String(raw.body).split(":")[0]), texts.map((text) => text.split(":")[0]));
    assert.ok(raws.every((raw) => raw.body!.length > 900_000));
  });

  onRedis("a stream key that holds something else refuses the message for good", async ({ url }, context) => {
    const n = names();
    const client = await admin(context, url);
    await client.call("SET", n.stream, "taken");
    const { transport } = await openTransport(context, { url, prefix: n.prefix });
    assert.equal(codeOf((await transport.send(n.topic, [{ body: "m1" }]))[0]), "publish-refused");
    const outcomes = await transport.send(n.topic, [{ body: "m1", subject: "a" }, { body: "m2", subject: "a" }, {
      body: "m3",
    }]);
    assert.deepEqual(outcomes.map(codeOf), ["publish-refused", "publish-refused", "publish-refused"]);
    assert.equal((outcomes[1] as EdaError).details["unsent"], true);
    assert.equal((outcomes[2] as EdaError).details["unsent"], undefined);
    await assert.rejects(new Reader(transport, n.topic, n.group).fetch(), { code: "invalid-option" });
  });

  onOwn(
    "a subject ends at its first refusal while memory is short; nothing overtakes",
    { sanitize: false },
    async (start, context) => {
      const { url } = await start();
      const n = names();
      const client = await admin(context, url);
      const { transport } = await openTransport(context, { url, prefix: n.prefix });
      await publish(transport, n.topic, ["first"], "a");
      const used = Number(/used_memory:(\d+)/.exec(String(await client.call("INFO", "memory")))![1]);
      await client.call("CONFIG", "SET", "maxmemory", used + 3_000_000);
      const outcomes = await transport.send(
        n.topic,
        Array.from({ length: 2_000 }, (_, at) => ({ body: `${at}:${"x".repeat(4_000)}`, subject: `s${at % 10}` })),
      );
      await client.call("CONFIG", "SET", "maxmemory", 0);
      const refused = outcomes.filter((outcome) => outcome !== undefined);
      assert.ok(refused.length > 0 && refused.length < 2_000, `${refused.length} of 2,000 refused`);
      assert.ok(refused.every((outcome) => codeOf(outcome) === "broker-unavailable"));
      const there = new Set(
        bodiesIn(await client.call("XRANGE", n.stream, "-", "+")).map((body) => body.split(":")[0]),
      );
      for (let subject = 0; subject < 10; subject++) {
        let ended = false;
        for (let at = subject; at < 2_000; at += 10) {
          assert.equal(there.has(String(at)), outcomes[at] === undefined, "an outcome says what happened");
          if (outcomes[at] !== undefined) ended = true;
          else assert.ok(!ended, "a later message of the subject passed an earlier one");
        }
      }
    },
  );

  onRedis(
    "a connection lost before the answer leaves the outcome unknown, settled in time (RED-08)",
    async ({ url }, context) => {
      const n = names();
      const proxy = await startProxy({ port: Number(new URL(url).port) });
      context.cleanup(() => proxy.close());
      const client = await admin(context, url);
      const { transport, listener } = await openTransport(context, { url: proxy.url(url), prefix: n.prefix });
      await publish(transport, n.topic, ["m0"], "a");
      await proxy.blackHole("down");
      const sent = transport.send(n.topic, [{ body: "m1", subject: "a" }]);
      await until(async () => await client.call("XLEN", n.stream) === 2, { what: "the entry" });
      await proxy.cut();
      assert.equal(codeOf((await sent)[0]), "outcome-unknown");
      await proxy.heal();
      await transport.open(listener);
      await publish(transport, n.topic, ["m2"], "a");
      // Nothing was sent again behind the caller's back.
      assert.deepEqual(bodiesIn(await client.call("XRANGE", n.stream, "-", "+")), ["m0", "m1", "m2"]);
    },
  );

  onRedis("in a batch cut in two, what comes after the unknown part was never sent", async ({ url }, context) => {
    const n = names();
    const proxy = await startProxy({ port: Number(new URL(url).port) });
    context.cleanup(() => proxy.close());
    const { transport } = await openTransport(context, { url: proxy.url(url), prefix: n.prefix });
    await publish(transport, n.topic, ["m0"], "a");
    await proxy.cutAfter(20_000, "up");
    const outcomes = await transport.send(
      n.topic,
      Array.from({ length: 600 }, (_, at) => ({ body: `${at}${"x".repeat(100)}`, subject: "a" })),
    );
    assert.deepEqual([0, 255, 256, 599].map((at) => codeOf(outcomes[at])), [
      "outcome-unknown",
      "outcome-unknown",
      "broker-unavailable",
      "broker-unavailable",
    ]);
    assert.equal((outcomes[256] as EdaError).details["unsent"], true);
  });

  onRedis("with the server away nothing is queued: it was not sent", async ({ url }, context) => {
    const n = names();
    const proxy = await startProxy({ port: Number(new URL(url).port) });
    context.cleanup(() => proxy.close());
    const client = await admin(context, url);
    const { transport, listener } = await openTransport(context, { url: proxy.url(url), prefix: n.prefix });
    await publish(transport, n.topic, ["m0"], "a");
    await proxy.refuse();
    await proxy.cut();
    // The cut may be noticed only by the write.
    assert.match(String(await codesOf(transport.send(n.topic, [{ body: "m1", subject: "a" }]))), /unavailable|unknown/);
    assert.deepEqual(await codesOf(transport.send(n.topic, [{ body: "m2", subject: "a" }])), ["broker-unavailable"]);
    await proxy.accept();
    await transport.open(listener);
    await publish(transport, n.topic, ["m3"], "a");
    const there = bodiesIn(await client.call("XRANGE", n.stream, "-", "+"));
    assert.deepEqual(there.filter((body) => body !== "m1"), ["m0", "m3"]);
  });

  onRedis(
    "publish never trims by itself; retention spares what a group has not read or not settled (RED-16)",
    async ({ url }, context) => {
      const n = names();
      const client = await admin(context, url);
      const { transport, listener } = await openTransport(context, { url, prefix: n.prefix, retentionMs: 1_000 });
      const reader = new Reader(transport, n.topic, n.group);
      const old = Date.now() - 60_000;
      // Enough for several nodes of the stream: trimming removes whole ones.
      for (let at = 0; at < 1_000; at++) {
        await client.call("XADD", n.stream, `${old + at}-0`, "ce", `m${at}`, "subject", "");
      }
      await publish(transport, n.topic, ["young"]);
      await until(() => listener.count("signal", "retention-held") === 1, { what: "the signal: nobody has read it" });
      assert.equal(await client.call("XLEN", n.stream), 1_001);
      const raws = await reader.take(500, 5_000, 250);
      assert.deepEqual(bodiesOf(raws), bodies(0, 499));
      await reader.ack(raws.slice(0, 300));
      // m300 is pending and everything behind m499 unread: both stay, whatever their age.
      const first = async () => bodiesIn(await client.call("XRANGE", n.stream, "-", "+", "COUNT", 1))[0]!;
      await until(async () => {
        await publish(transport, n.topic, ["young"]);
        return await first() !== "m0";
      }, { everyMs: 250, what: "trimming" });
      assert.ok(Number((await first()).slice(1)) <= 300);
      const rest = await reader.take(501, 10_000, 250);
      assert.deepEqual(bodiesOf(rest).slice(0, 500), bodies(500, 999));
    },
  );

  onRedis("a length limit cuts only where it was asked for in so many words", async ({ url }, context) => {
    const n = names();
    const client = await admin(context, url);
    const limited = await openTransport(context, { url, prefix: n.prefix, unsafeMaxLen: 100 });
    await publish(limited.transport, n.topic, bodies(1, 1_000), "a");
    for (const body of bodies(1_001, 1_010)) {
      await publish(limited.transport, n.topic, [body], "a");
    }
    assert.ok(Number(await client.call("XLEN", n.stream)) < 300);
    const m = names();
    const free = await openTransport(context, { url, prefix: m.prefix });
    await publish(free.transport, m.topic, bodies(1, 1_000), "a");
    assert.equal(await client.call("XLEN", m.stream), 1_000);
  });
});
