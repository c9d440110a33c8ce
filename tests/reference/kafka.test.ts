import assert from "node:assert/strict";
import { KafkaBroker, type KafkaBrokerOptions } from "../../adapters/kafka/mod.ts";
import { openHand } from "../adapters/kafka_support.ts";
import { fresh, type TestContext, until } from "../support/test.ts";
import { drain, wireOf } from "./ours.ts";
import { onReference, Peer } from "./peer.ts";

const both = onReference("kafka");
const OPTIONS = { sanitize: false, timeoutMs: 60_000 } as const;

const SAMPLES = [
  { type: "shop.plain", subject: "o-1", data: { total: 42, lines: [{ sku: "a", count: 2 }], open: true, note: null } },
  { type: "shop.unicode", subject: "Größe 尺寸 🚀 e\u0301", data: { "ключ": '\u2028 🚀 \\ " /' } },
  { type: "shop.subject.none", data: { a: 1 } },
  { type: "shop.extensions", subject: "o-1", extensions: { yes: true, zero: 0, text: "t" } },
  { type: "shop.data.none", subject: "o-1" },
  { type: "shop.chain", subject: "o-2", correlationid: "c-1", causationid: "e-1", data: {} },
  { type: "shop.large", subject: "o-3", data: { text: "x".repeat(500_000) } },
];

function ours(context: TestContext, url: string, options: KafkaBrokerOptions = {}): KafkaBroker {
  const broker = new KafkaBroker({ brokers: url.split(","), source: "/ours", logger: false, ...options });
  context.cleanup(() => broker.close({ drainMs: 1_000 }));
  return broker;
}

/** A topic of several partitions. */
async function topicOf(context: TestContext, url: string): Promise<string> {
  const hand = await openHand(url);
  context.cleanup(() => hand.close());
  const topic = fresh("orders");
  await hand.make(topic, 3);
  return topic;
}

const byId = <T extends { readonly id?: unknown }>(list: readonly T[]): T[] =>
  [...list].sort((a, b) => String(a.id) < String(b.id) ? -1 : 1);

both("what the reference publishes is read here as it stands", OPTIONS, async ({ url, python }, context) => {
  const topic = await topicOf(context, url);
  const peer = new Peer(context, python, { bootstrap_servers: url });
  const sent = await peer.publish(topic, SAMPLES.map((sample) => ({ ...sample, source: "/theirs" })));
  const read = await drain(ours(context, url, { group: fresh("ours") }), topic, sent.length);
  assert.deepEqual(byId(read.map((delivery) => wireOf(delivery) as { id: string })), byId(sent));
});

both(
  "what is published here is read by the reference as it stands, each subject in its order",
  OPTIONS,
  async ({ url, python }, context) => {
    const topic = await topicOf(context, url);
    const broker = ours(context, url);
    const many = Array.from({ length: 60 }, (_, n) => ({ type: "n", subject: `s${n % 7}`, data: n }));
    const sent = await broker.publishAll(topic, [...SAMPLES, ...many]);
    const wire = sent.map((envelope) => JSON.parse(JSON.stringify(envelope)) as Record<string, unknown>);
    const peer = new Peer(context, python, { bootstrap_servers: url, group_id: fresh("theirs") });
    const read = await peer.drain(topic, sent.length);
    // Its model takes data without a content type for JSON.
    const seen = wire.map((object) => ({ id: "", datacontenttype: "application/json", ...object }));
    assert.deepEqual(byId(read.map(({ envelope }) => envelope)), byId(seen));
    for (let subject = 0; subject < 7; subject++) {
      const lane = read.filter(({ envelope }) => envelope["type"] === "n" && envelope["subject"] === `s${subject}`);
      const numbers = lane.map(({ envelope }) => envelope["data"] as number);
      assert.deepEqual(numbers, [...numbers].sort((a, b) => a - b));
    }
    assert.deepEqual(await peer.refused(), []);
  },
);

both("one subject is in one partition, whoever publishes it", OPTIONS, async ({ url, python }, context) => {
  const topic = await topicOf(context, url);
  const broker = ours(context, url, { group: fresh("ours") });
  const peer = new Peer(context, python, { bootstrap_servers: url });
  for (let n = 0; n < 20; n++) {
    const subject = `Größe-${n % 5}`;
    if (n % 2 === 0) await broker.publish(topic, { type: "n", subject, data: n });
    else await peer.publish(topic, [{ type: "n", subject, data: n, source: "/theirs" }]);
  }
  const read = await drain(broker, topic, 20);
  for (let subject = 0; subject < 5; subject++) {
    const lane = read.flatMap(({ envelope }) =>
      envelope.subject === `Größe-${subject}` ? [envelope.data as number] : []
    );
    assert.deepEqual(lane, [subject, subject + 5, subject + 10, subject + 15]);
  }
});

both(
  "members of both kinds in one group: each partition is at one of them, and nothing is lost",
  OPTIONS,
  async ({ url, python }, context) => {
    const topic = await topicOf(context, url);
    const group = fresh("shared");
    const broker = ours(context, url, { group });
    const seen = new Set<number>();
    const stop = new AbortController();
    const reading = (async () => {
      for await (const delivery of broker.subscribe(topic, { signal: stop.signal })) {
        seen.add(delivery.envelope.data as number);
        await delivery.ack();
      }
    })();
    await broker.publish(topic, { type: "n", subject: "first", data: -1 });
    await until(() => seen.has(-1), { timeoutMs: 15_000 });
    const peer = new Peer(context, python, { bootstrap_servers: url, group_id: group });
    const draining = peer.drain(topic, 1_000, 12_000);
    const hand = await openHand(url);
    context.cleanup(() => hand.close());
    await until(async () => await hand.members(group) === 2, {
      timeoutMs: 15_000,
      everyMs: 100,
      what: "both in the group",
    });
    await broker.publishAll(topic, Array.from({ length: 300 }, (_, n) => ({ type: "n", subject: `s${n}`, data: n })));
    const theirs = (await draining).map(({ envelope }) => envelope["data"] as number);
    await until(() => new Set([...seen, ...theirs]).size === 301, { timeoutMs: 15_000, what: "all at one of them" });
    assert.ok(theirs.length > 0 && seen.size > 1, "both had a part");
    stop.abort();
    await reading;
  },
);
