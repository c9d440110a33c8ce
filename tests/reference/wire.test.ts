import assert from "node:assert/strict";
import type { UndecodableRecord } from "../../core/contract.ts";
import { admin } from "../adapters/redis_support.ts";
import { drain, names, ours, take, wireOf } from "./ours.ts";
import { onReference, Peer } from "./peer.ts";
import { asArguments, asTold, SAMPLES, TRACE } from "./samples.ts";

for (const server of ["redis", "redis8", "valkey"]) {
  const both = onReference(server);

  both("what the reference publishes is read here as it stands", async ({ url, python }, context) => {
    const { prefix, topic } = names();
    const peer = new Peer(context, python, { url, prefix });
    const sent = await peer.publish(topic, SAMPLES.map(asArguments));
    const read = await drain(ours(context, { url, prefix, group: "ours" }), topic, sent.length);
    assert.deepEqual(read.map(wireOf), sent);
    assert.deepEqual(read.map((delivery) => delivery.attempt), sent.map(() => 0));
    assert.deepEqual(read.map(({ envelope }) => envelope.data), sent.map((object) => object["data"]));
    assert.deepEqual(read.map(({ envelope }) => envelope.subject), SAMPLES.map(({ subject }) => subject));
    const trace = read.find(({ envelope }) => envelope.type === "shop.trace")!.envelope;
    assert.equal(trace.extensions["traceparent"], TRACE);
  });

  both("what is published here is read by the reference as it stands", async ({ url, python }, context) => {
    const { prefix, topic } = names();
    const broker = ours(context, { url, prefix });
    const one = await Promise.all(SAMPLES.map((init) => broker.publish(topic, init)));
    const many = await broker.publishAll(topic, SAMPLES);
    const sent = [...one, ...many];
    const peer = new Peer(context, python, { url, prefix, group: "theirs" });
    const read = await peer.drain(topic, sent.length);
    assert.deepEqual(read.map(({ envelope }) => envelope), sent.map(asTold));
    assert.deepEqual(await peer.refused(), []);
    const client = await admin(context, url);
    // Without the large ones, which stand last.
    const small = SAMPLES.slice(0, -2);
    const stream = `${prefix}:stream:${topic}`;
    const entries = await client.call("XRANGE", stream, "-", "+", "COUNT", small.length) as [string, string[]][];
    assert.deepEqual(
      entries.map(([, [ce, , subject, key, ...rest]]) => [ce, subject, key, rest.length]),
      small.map(({ subject }) => ["ce", "subject", subject ?? "", 0]),
    );
  });
}

const both = onReference("redis");

both("four partitions and four shards are the same streams, subject by subject", async ({ url, python }, context) => {
  const { prefix, topic } = names();
  const peer = new Peer(context, python, { url, prefix, group: "theirs", shards: 4 });
  const broker = ours(context, { url, prefix, group: "ours", partitions: 4 });
  const subjects = ["a", "b", "Größe", "尺寸", "🚀", " ", "two words", "o-1", "o-2", "o-3", undefined, "}{", "x:1"];
  const key = (subject: unknown): string => JSON.stringify(subject ?? null);
  const inits = Array.from(
    { length: 5 },
    (_, n) => subjects.map((subject) => ({ type: "n", data: { n }, ...(subject === undefined ? {} : { subject }) })),
  ).flat();
  // Both publish at the same time, and each reads all of it.
  await Promise.all([
    peer.publish(topic, inits.map((init) => ({ ...init, source: "/theirs" }))),
    (async () => {
      for (const init of inits) await broker.publish(topic, init);
    })(),
  ]);
  const [theirs, here] = await Promise.all([
    peer.drain(topic, 2 * inits.length),
    drain(broker, topic, 2 * inits.length),
  ]);
  for (
    const read of [
      theirs.map(({ envelope }) => envelope),
      here.map((one) => wireOf(one) as Record<string, unknown>),
    ]
  ) {
    for (const subject of subjects) {
      for (const source of ["/ours", "/theirs"]) {
        const of = read.filter((one) => key(one["subject"]) === key(subject) && one["source"] === source);
        assert.deepEqual(of.map((one) => (one["data"] as { n: number }).n), [0, 1, 2, 3, 4], `${source} ${subject}`);
      }
    }
  }
  const client = await admin(context, url);
  const home = new Map<string, Set<number>>();
  const used = new Set<number>();
  for (let n = 0; n < 4; n++) {
    const entries = await client.call("XRANGE", `${prefix}:stream:${topic}:${n}`, "-", "+") as [string, string[]][];
    for (const [, fields] of entries) {
      used.add(n);
      const { subject } = JSON.parse(fields[1]!) as { subject?: string };
      home.set(key(subject), (home.get(key(subject)) ?? new Set()).add(n));
    }
  }
  assert.deepEqual([...home.values()].map((streams) => streams.size), subjects.map(() => 1));
  assert.equal(used.size, 4);
  assert.equal(await client.call("EXISTS", `${prefix}:stream:${topic}`), 0);
});

both("a topic that the reference uses already is read from its first message and published to", async (
  { url, python },
  context,
) => {
  const { prefix, topic } = names();
  const peer = new Peer(context, python, { url, prefix, group: "theirs", shards: 4 });
  const earlier = await peer.publish(
    topic,
    Array.from({ length: 40 }, (_, n) => ({ type: "n", subject: `s${n % 8}`, data: { n } })),
  );
  assert.equal((await peer.drain(topic, 40)).length, 40);
  const broker = ours(context, { url, prefix, group: "ours", partitions: 4 });
  const read = await drain(broker, topic, 40);
  assert.deepEqual(read.map(({ envelope }) => envelope.id).sort(), earlier.map(({ id }) => id).sort());
  await broker.publish(topic, { type: "n", subject: "s1", data: { n: 40 } });
  assert.deepEqual((await peer.drain(topic, 1)).map(({ envelope }) => envelope["data"]), [{ n: 40 }]);
  assert.deepEqual((await drain(broker, topic, 1)).map(({ envelope }) => envelope.data), [{ n: 40 }]);
  // From now on another number of partitions is refused.
  const other = ours(context, { url, prefix, group: "ours", partitions: 3 });
  await assert.rejects(other.publish(topic, { type: "n", subject: "s1" }), { code: "partition-mismatch" });
});

both("the attempt that stands on the wire is not believed, on either side", async ({ url, python }, context) => {
  const { prefix, topic } = names();
  const peer = new Peer(context, python, { url, prefix, group: "theirs" });
  const broker = ours(context, { url, prefix, group: "ours" });
  const [sent] = await peer.publish(topic, [{ type: "n", subject: "a", data: {}, attempt: 1_000_000_000 }]);
  assert.equal(sent!["xsmattempt"], 1_000_000_000);
  const [first] = await drain(broker, topic, 1);
  assert.equal(first!.attempt, 0);
  assert.deepEqual(first!.envelope.extensions, {});
  // Passed on from here, it carries none.
  await broker.publish(topic, first!.envelope);
  const [forged, passed] = await peer.take(topic, 2);
  assert.deepEqual([forged!.attempt, passed!.attempt], [0, 0]);
  assert.equal("xsmattempt" in passed!.envelope, false);
  // Passed on from there after a retry, it carries theirs, and counts for nothing here.
  await peer.nack([passed!], true);
  const [again] = await peer.take(topic, 1);
  assert.equal(again!.attempt, 1);
  await peer.forward(topic, again!);
  const rest = await take(broker, topic, 2);
  assert.deepEqual(rest.map(({ attempt }) => attempt), [0, 0]);
  assert.deepEqual(rest.map(({ envelope }) => envelope.extensions), [{}, {}]);
  await rest[0]!.retry();
  const [retried] = await take(broker, topic, 1);
  assert.deepEqual([retried!.attempt, retried!.envelope.extensions], [1, {}]);
});

both("what the reference cannot read is dropped by its group alone, and what is beside it is read", async (
  { url, python },
  context,
) => {
  const { prefix, topic } = names();
  const broker = ours(context, { url, prefix, group: "ours" });
  const sent = await broker.publishAll(topic, [
    { type: "before", subject: "a", data: 1 },
    { type: "bytes", subject: "a", data: new Uint8Array([1, 2, 3]) },
    { type: "long.name", subject: "a", extensions: { twentyonecharactersss: "x" } },
    { type: "longest.name", subject: "a", extensions: { twentycharactersssss: "x" } },
    { type: "after", subject: "a", data: 2 },
  ]);
  const peer = new Peer(context, python, { url, prefix, group: "theirs" });
  const theirs = await peer.drain(topic, 3);
  assert.deepEqual(theirs.map(({ envelope }) => envelope["type"]), ["before", "longest.name", "after"]);
  const reasons = await peer.refused();
  assert.equal(reasons.length, 2);
  assert.match(reasons[0]!, /extension name 'data_base64'/);
  assert.match(reasons[1]!, /extension name 'twentyonecharactersss'/);
  const here = await drain(broker, topic, sent.length);
  assert.deepEqual(here.map(({ envelope }) => envelope.id), sent.map(({ id }) => id));
  assert.deepEqual(here[1]!.envelope.data, new Uint8Array([1, 2, 3]));
  const client = await admin(context, url);
  for (const group of ["theirs", "ours"]) {
    const [pending] = await client.call("XPENDING", `${prefix}:stream:${topic}`, group) as [number];
    assert.equal(pending, 0);
  }
});

both("what the reference writes against CloudEvents is recorded here, dropped, and blocks nothing", async (
  { url, python },
  context,
) => {
  const { prefix, topic } = names();
  const peer = new Peer(context, python, { url, prefix, group: "theirs" });
  await peer.publish(topic, [
    { type: "before", subject: "a" },
    // Neither its dispatcher nor this library has an instance for it.
    { type: "empty.subject", subject: "" },
    { type: "odd.time", subject: "a", time: "yesterday" },
    { type: "wide.integer", subject: "a", extensions: { big: 2 ** 31 } },
    { type: "control", subject: "a\u0007" },
    { type: "after", subject: "a" },
  ]);
  const records: UndecodableRecord[] = [];
  const broker = ours(context, {
    url,
    prefix,
    group: "ours",
    deadLetters: { recordUndecodable: (record) => void records.push(record) },
  });
  const read = await drain(broker, topic, 2);
  assert.deepEqual(read.map(({ envelope }) => envelope.type), ["before", "after"]);
  assert.deepEqual(records.map(({ error }) => error.details["attribute"]), ["subject", "time", "big", "subject"]);
  assert.equal((await peer.drain(topic, 6)).length, 6);
});
