import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { inspect as show } from "node:util";
import * as kafkajs from "kafkajs";
import { assigners } from "../../adapters/kafka/assigner.ts";
import type { AssignerProtocol } from "../../adapters/kafka/client.ts";
import { failureOf, publishFailure, sendFailureOf } from "../../adapters/kafka/errors.ts";
import { KafkaBroker } from "../../adapters/kafka/mod.ts";
import { partitionOf } from "../../adapters/kafka/murmur2.ts";
import { OffsetTracker, type Tracked } from "../../adapters/kafka/offsets.ts";
import { type KafkaNative, OwnedPartition } from "../../adapters/kafka/owned_partition.ts";
import { resolveOptions } from "../../adapters/kafka/resolve.ts";
import { bodyOf, headersOf, keyOf, type RecordIn } from "../../adapters/kafka/wire.ts";
import { isEdaError } from "../../core/errors.ts";
import { randomFrom, test } from "../support/test.ts";

function track(offsets: readonly bigint[]): { tracker: OffsetTracker; entries: Tracked[] } {
  const tracker = new OffsetTracker();
  return { tracker, entries: offsets.map((offset) => tracker.track(offset)!) };
}

test("OffsetTracker commits one past the last settled record, beyond what a number holds (KAF-01)", () => {
  const { tracker, entries } = track([9007199254740993n]);
  assert.equal(tracker.commit, undefined);
  tracker.settle(entries[0]!);
  assert.equal(tracker.commit, 9007199254740994n);
});

test("OffsetTracker never commits past a gap, and holes between offsets are none (KAF-03, KAF-13)", () => {
  const { tracker, entries: [one, four, nine] } = track([1n, 4n, 9n]);
  tracker.settle(nine!);
  assert.equal(tracker.commit, undefined);
  tracker.settle(four!);
  assert.equal(tracker.commit, undefined);
  assert.equal(tracker.oldest, 1n);
  assert.equal(tracker.unsettled, 1);
  assert.equal(tracker.span, 3);
  tracker.settle(one!);
  assert.equal(tracker.commit, 10n);
  assert.equal(tracker.span, 0);
  assert.equal(tracker.oldest, undefined);
});

test("OffsetTracker stops before a record that is held back (KAF-03, KAF-04)", () => {
  const { tracker, entries: [one, , nine] } = track([1n, 4n, 9n]);
  tracker.settle(one!);
  tracker.settle(nine!);
  assert.equal(tracker.commit, 2n);
  assert.equal(tracker.oldest, 4n);
});

test("OffsetTracker tracks a record that came again once, and settles it once", () => {
  const { tracker, entries } = track([5n, 6n]);
  assert.equal(tracker.track(5n), undefined);
  assert.equal(tracker.track(6n), undefined);
  tracker.settle(entries[0]!);
  tracker.settle(entries[0]!);
  assert.equal(tracker.unsettled, 1);
  assert.equal(tracker.commit, 6n);
});

test("OffsetTracker agrees with a plain model over random orders", () => {
  const random = randomFrom(7);
  for (let round = 0; round < 200; round++) {
    const offsets: bigint[] = [];
    for (let at = 0n; offsets.length < 20;) offsets.push(at += BigInt(1 + Math.floor(random() * 3)));
    const { tracker, entries } = track(offsets);
    const settled = new Set<bigint>();
    for (const entry of [...entries].sort(() => random() - 0.5)) {
      tracker.settle(entry);
      settled.add(entry.offset);
      const first = offsets.findIndex((offset) => !settled.has(offset));
      const prefix = first === -1 ? offsets.length : first;
      assert.equal(tracker.commit, prefix === 0 ? undefined : offsets[prefix - 1]! + 1n);
      assert.equal(tracker.span, offsets.length - prefix);
      assert.equal(tracker.unsettled, offsets.length - settled.size);
    }
  }
});

const record = (offset: number | bigint, value: string | null = "{}", headers = {}): RecordIn => ({
  offset: String(offset),
  key: null,
  value: value === null ? null : Buffer.from(value),
  headers,
});

test("OwnedPartition leaves out what came again, and hands out no more than its share and what may be uncommitted", async () => {
  const part = new OwnedPartition(3, 8);
  part.position = 10n;
  part.push([record(8), record(9), record(10), record(11), record(12)], 13n, 20n);
  part.push([record(11), record(12), record(13)], 14n, 20n);
  assert.equal(part.buffered, 4);
  assert.equal(part.room(2, 100), 2);
  assert.equal(part.room(100, 3), 3);
  const raws = part.take(2, 1_000);
  assert.deepEqual(raws.map(({ partition, epoch, deliveries }) => [partition, epoch, deliveries]), [[3, 8, 0], [
    3,
    8,
    0,
  ]]);
  assert.equal(part.room(2, 100), 0);
  assert.equal(part.restartAt, 10n);
  assert.equal(part.lag, 10);
  const [first, second] = raws.map(({ native }) => (native as KafkaNative).entry);
  // Behind an unsettled one it is noted here; there is nothing to commit.
  assert.equal(await part.settle([second!]), "settled");
  assert.equal(part.toCommit, undefined);
  const settling = part.settle([first!]);
  assert.equal(part.toCommit, 12n);
  part.committed(12n);
  assert.equal(await settling, "settled");
  assert.equal(part.toCommit, undefined);
  assert.equal(part.restartAt, 12n);
});

test("OwnedPartition answers stale for what was not committed when it was lost, and fails for an outage (KAF-12)", async () => {
  const part = new OwnedPartition(0, 1);
  part.push([record(0), record(1)], 2n, 2n);
  const [one, two] = part.take(2, 1_000).map(({ native }) => (native as KafkaNative).entry);
  const first = part.settle([one!]);
  part.commitFailed(new Error("away"));
  await assert.rejects(first, /away/);
  // Settled again after the outage: the same record, the same commit.
  const again = part.settle([one!]);
  const second = part.settle([two!]);
  part.committed(1n);
  assert.equal(await again, "settled");
  part.lose();
  assert.equal(await second, "stale");
});

test("partitionOf agrees with the client's own partitioner", () => {
  const partitioner = kafkajs.Partitioners.DefaultPartitioner();
  const random = randomFrom(3);
  const partitionMetadata = Array.from({ length: 7 }, (_, partitionId) => ({ partitionId, leader: 1 }));
  for (let round = 0; round < 500; round++) {
    const key = Array.from({ length: Math.floor(random() * 20) }, () => "aé漢😀z0-"[Math.floor(random() * 8)] ?? "x")
      .join("");
    const expected = partitioner({ topic: "t", partitionMetadata, message: { key, value: "" } } as never);
    assert.equal(partitionOf(keyOf(key)!, 7), expected, key);
  }
});

const TEXT = '{"specversion":"1.0","id":"i-1","source":"/a","type":"t.x","subject":"s","data":1}';

test("wire: headers are taken from the text, with and without escapes", () => {
  const contentType = "application/cloudevents+json; charset=UTF-8";
  assert.deepEqual(headersOf(TEXT), { "content-type": contentType, ce_id: "i-1", ce_type: "t.x" });
  const escaped = '{"specversion":"1.0","id":"i\\"1","source":"/a","type":"t"}';
  assert.deepEqual(headersOf(escaped), { "content-type": contentType, ce_id: 'i"1', ce_type: "t" });
  assert.equal(keyOf(undefined), null);
  assert.deepEqual([...keyOf("é")!], [0xc3, 0xa9]);
});

test("wire: the header ce_specversion decides what is binary (CE-17)", () => {
  const structured = record(1, TEXT, { "content-type": Buffer.from("application/cloudevents+json"), ce_id: "other" });
  assert.equal(bodyOf(structured, 1_000), structured.value);
  const bare = record(1, "{}", { ce_id: "x", ce_type: "y" });
  assert.equal(bodyOf(bare, 1_000), bare.value);
  const headers = {
    ce_specversion: Buffer.from("1.0"),
    ce_id: Buffer.from("b-1"),
    ce_source: Buffer.from("/b"),
    ce_type: Buffer.from("t"),
    ce_tenant: [Buffer.from("acmé")],
    "content-type": Buffer.from("application/json"),
  };
  assert.deepEqual(JSON.parse(bodyOf(record(1, '{"n":1.0}', headers), 1_000) as string), {
    specversion: "1.0",
    id: "b-1",
    source: "/b",
    type: "t",
    tenant: "acmé",
    datacontenttype: "application/json",
    data: { n: 1 },
  });
  const text = bodyOf(record(1, "hi", { ...headers, "content-type": "text/plain" }), 1_000) as string;
  assert.equal(JSON.parse(text).data_base64, Buffer.from("hi").toString("base64"));
  const none = JSON.parse(bodyOf(record(1, null, headers), 1_000) as string);
  assert.equal("data" in none, false);
});

test("wire: a tombstone has no body; an oversized record is passed on unread", () => {
  assert.equal(bodyOf(record(1, null), 1_000), null);
  assert.deepEqual(bodyOf(record(1, ""), 1_000), Buffer.alloc(0));
  const large = record(1, "x".repeat(50), { ce_specversion: "1.0" });
  assert.equal(bodyOf(large, 10), large.value);
});

test("resolveOptions reads brokers from a URL or a list, and refuses both, credentials and what is not ours to give", () => {
  assert.deepEqual(resolveOptions({ url: "kafka://a,b:9093,[::1]:7" }).brokers, ["a:9092", "b:9093", "[::1]:7"]);
  assert.deepEqual(resolveOptions({ brokers: ["a:1"] }).brokers, ["a:1"]);
  const bad = [
    [{ url: "kafka://a", brokers: ["b:1"] }, /brokers/],
    [{ url: "kafka://me:secret@a" }, /client\.sasl/],
    [{ url: "redis://a" }, /kafka:/],
    [{ url: "kafka://a?tls=true" }, /url/],
    [{ brokers: [] }, /brokers/],
    [{ brokers: ["a"] }, /brokers/],
    [{ partitions: 0 }, /partitions/],
    [{ createTopics: 1 as never }, /createTopics/],
    [{ topicConfig: { a: 1 as never } }, /topicConfig/],
    [{ compression: "rar" as never }, /compression/],
    [{ client: { retry: {} } }, /client\.retry/],
    [{ client: 7 as never }, /client/],
    [{ sessionTimeoutMs: 10 }, /sessionTimeoutMs/],
  ] as const;
  for (const [options, what] of bad) {
    assert.throws(() => resolveOptions(options), (error) => {
      assert.ok(isEdaError(error) && error.code === "invalid-option", String(error));
      assert.match(error.message, what);
      assert.ok(!error.message.includes("secret"));
      return true;
    });
  }
});

test("KafkaBroker refuses unknown options by name and shows nothing of where it connects", async () => {
  assert.throws(() => new KafkaBroker({ groupId: "x" } as never), /unknown option "groupId".*client/s);
  const broker = new KafkaBroker({ brokers: ["secret-host:9092"], logger: false });
  for (const text of [String(broker), JSON.stringify(broker), show(broker), show(broker.health())]) {
    assert.ok(!text.includes("secret-host"), text);
  }
  await broker.close();
});

test("errors of the client lose every address and text on their way", () => {
  const inner = Object.assign(new Error("Connection error: connect ECONNREFUSED 10.1.2.3:9092"), {
    name: "KafkaJSConnectionError",
    broker: "10.1.2.3:9092",
    code: "ECONNREFUSED",
    retriable: true,
  });
  const outer = Object.assign(new Error(inner.message), { name: "KafkaJSNumberOfRetriesExceeded", cause: inner });
  for (const error of [failureOf("connecting", outer), publishFailure(sendFailureOf(outer), outer)]) {
    const text = show(error, { depth: 9 });
    assert.ok(!text.includes("10.1.2.3"), text);
    assert.equal(error.code, "broker-unavailable");
    assert.equal((error.cause as { code?: string }).code, "ECONNREFUSED");
  }
});

test("sendFailureOf tells what was not written from what nobody knows", () => {
  const protocol = (type: string): unknown => ({ name: "KafkaJSProtocolError", type });
  const cases: readonly (readonly [unknown, string])[] = [
    [protocol("MESSAGE_TOO_LARGE"), "refused"],
    [protocol("NOT_LEADER_FOR_PARTITION"), "moved"],
    [protocol("OUT_OF_ORDER_SEQUENCE_NUMBER"), "sequence"],
    [protocol("REQUEST_TIMED_OUT"), "unknown"],
    [{ name: "KafkaJSConnectionError", message: "Connection timeout" }, "unsent"],
    [{ name: "KafkaJSConnectionError", message: "Connection error: read ECONNRESET", code: "ECONNRESET" }, "unknown"],
    [{ name: "KafkaJSRequestTimeoutError", message: "Request Produce timed out" }, "unknown"],
    [{ name: "KafkaJSNumberOfRetriesExceeded", cause: protocol("LEADER_NOT_AVAILABLE") }, "moved"],
    [undefined, "unknown"],
  ];
  for (const [error, expected] of cases) assert.equal(sendFailureOf(error), expected, show(error));
});

const protocol = (kafkajs as unknown as { readonly AssignerProtocol: AssignerProtocol }).AssignerProtocol;

type Division = ReadonlyMap<string, Record<string, number[]>>;

/** Divides as the leader would; members are named with the topics that they read, and keep what they had `before`. */
async function divide(
  members: Record<string, readonly string[]>,
  partitions: Record<string, number>,
  before: Division = new Map(),
): Promise<Division> {
  const make = (memberId: string, instance: string, topics: readonly string[]) =>
    assigners({
      protocol,
      instance,
      owned: () => before.get(memberId)?.[topics[0] ?? ""] ?? [],
      partitionsOf: (topic) => Promise.resolve(partitions[topic] ?? 0),
      joining: () => {},
    })[0]!();
  // Each topic of an instance is a member of its own.
  const list = Object.entries(members).flatMap(([instance, topics]) =>
    topics.map((topic) => {
      const memberId = `${instance}-${topic}`;
      return { memberId, memberMetadata: make(memberId, instance, [topic]).protocol({ topics: [topic] }).metadata };
    })
  );
  const decode = (protocol.MemberAssignment as unknown as {
    decode(bytes: Uint8Array): { assignment: Record<string, number[]> };
  }).decode;
  const found = await make("leader", "leader", []).assign({ members: list });
  return new Map(found.map(({ memberId, memberAssignment }) => [memberId, decode(memberAssignment).assignment]));
}

function countIn(division: Division, instance: string): number {
  const mine = [...division].filter(([memberId]) => memberId.startsWith(`${instance}-`));
  return mine.reduce((sum, [, share]) => sum + Object.values(share).flat().length, 0);
}

test("assigners give each partition to one of the members that read its topic, evenly", async () => {
  const shares = await divide({ a: ["x", "y"], b: ["x"], c: ["x", "y"], d: ["z"] }, { x: 12, y: 3, z: 1 });
  for (const [topic, count] of [["x", 12], ["y", 3], ["z", 1]] as const) {
    const owned = [...shares.values()].flatMap((share) => share[topic] ?? []);
    assert.deepEqual(owned.sort((p, q) => p - q), Array.from({ length: count }, (_, at) => at));
  }
  assert.deepEqual(["a-x", "b-x", "c-x"].map((name) => shares.get(name)!["x"]!.length), [4, 4, 4]);
  assert.equal(shares.get("b-x")!["y"], undefined);
  assert.equal(shares.get("d-z")!["x"], undefined);
});

test("assigners move what they must: a member that joins takes its even share, and none of one partition", async () => {
  const before = await divide({ a: ["x"], b: ["x"], c: ["x"] }, { x: 60 });
  const after = await divide({ a: ["x"], b: ["x"], c: ["x"], d: ["x"] }, { x: 60 }, before);
  assert.deepEqual(["a", "b", "c", "d"].map((name) => countIn(after, name)), [15, 15, 15, 15]);
  for (const name of ["a-x", "b-x", "c-x"]) {
    const had = new Set(before.get(name)!["x"]);
    assert.ok(after.get(name)!["x"]!.every((partition) => had.has(partition)), `${name} got nothing new`);
  }
  for (const first of ["a", "b", "c", "d", "e", "f"]) {
    const alone = await divide({ [first]: ["x"] }, { x: 1 });
    const joined = await divide({ [first]: ["x"], a0: ["x"], z0: ["x"] }, { x: 1 }, alone);
    assert.equal(countIn(joined, first), 1, `${first} keeps the one`);
  }
  const odd = await divide({ a: ["x"], b: ["x"] }, { x: 5 });
  assert.deepEqual(await divide({ a: ["x"], b: ["x"] }, { x: 5 }, odd), odd, "nothing changes without a reason");
});

test("assigners give what two members claim to one, and what nobody has to who has fewest", async () => {
  const claims: Division = new Map([["a-x", { x: [0, 1, 2] }], ["b-x", { x: [2, 3, 7] }]]);
  const shares = await divide({ a: ["x"], b: ["x"], c: ["x"] }, { x: 6 }, claims);
  const owned = [...shares.values()].flatMap((share) => share["x"] ?? []);
  assert.deepEqual(owned.sort((p, q) => p - q), [0, 1, 2, 3, 4, 5]);
  assert.deepEqual(["a", "b", "c"].map((name) => countIn(shares, name)), [2, 2, 2]);
  const topics = Array.from({ length: 40 }, (_, at) => `t${at}`);
  const single = await divide({ a: topics, b: topics }, Object.fromEntries(topics.map((topic) => [topic, 1])));
  assert.deepEqual([countIn(single, "a"), countIn(single, "b")], [20, 20], "topics of one partition spread");
});

test("assigners are known to other clients by names of theirs, and tell each time they ask to be let in", () => {
  let asked = 0;
  const partitionsOf = () => Promise.resolve(1);
  const both = assigners({ protocol, instance: "i", owned: () => [], partitionsOf, joining: () => void asked++ }).map((
    make,
  ) => make());
  assert.deepEqual(both.map(({ name }) => name), ["xsm", "roundrobin", "range", "RoundRobinAssigner"]);
  for (const assigner of both) assigner.protocol({ topics: ["t"] });
  assert.equal(asked, 1);
});
