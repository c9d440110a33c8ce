import assert from "node:assert/strict";
import type { Logger } from "../../core/logger.ts";
import { admin, pendingOf } from "../adapters/redis_support.ts";
import { until } from "../support/test.ts";
import { drain, holder, names, ours, take } from "./ours.ts";
import { onReference, Peer } from "./peer.ts";

const both = onReference("redis");
const GROUP = "shared";

const idsOf = (read: readonly { readonly envelope: { readonly id: string } }[]): string[] =>
  read.map(({ envelope }) => envelope.id);

const events = (count: number): { type: string; subject: string; data: number }[] =>
  Array.from({ length: count }, (_, n) => ({ type: "n", subject: `s${n % 9}`, data: n }));

for (const partitions of [1, 4]) {
  both(`unordered consumers of both kinds share a group of ${partitions}: every message once`, async (
    { url, python },
    context,
  ) => {
    const { prefix, topic } = names();
    const broker = ours(context, { url, prefix, group: GROUP, ordered: false, partitions, prefetch: 4 });
    const peers = ["one", "two"].map((consumer) =>
      new Peer(context, python, { url, prefix, group: GROUP, consumer, shards: partitions, batch: 4 })
    );
    const client = await admin(context, url);
    const streams = (partitions === 1 ? [""] : [":0", ":1", ":2", ":3"]).map((n) => `${prefix}:stream:${topic}${n}`);
    const sent: string[] = [];
    const publish = async (messages: ReturnType<typeof events>): Promise<void> => {
      sent.push(...(await broker.publishAll(topic, messages)).map(({ id }) => id));
    };
    // Everybody runs before the race begins.
    const first: { readonly attempt: number; readonly envelope: { readonly id: string } }[] = [];
    for (const read of [...peers.map((peer) => () => peer.drain(topic, 1)), () => drain(broker, topic, 1)]) {
      await publish(events(1));
      first.push(...await read());
    }
    const race = async (): Promise<never[]> => {
      const messages = events(300);
      for (let at = 0; at < 300; at += 10) await publish(messages.slice(at, at + 10));
      return [];
    };
    const [here, ...there] = await Promise.all([
      drain(broker, topic, Infinity, { idleMs: 3_000 }),
      ...peers.map((peer) => peer.drain(topic, 300, 3_000)),
      race(),
    ]);
    const parts = [here, ...there.slice(0, 2)];
    assert.deepEqual([first, ...parts].flatMap(idsOf).sort(), sent.sort());
    assert.ok(parts.every((part) => part.length > 0), `somebody got nothing: ${parts.map((part) => part.length)}`);
    assert.ok([first, ...parts].flat().every(({ attempt }) => attempt === 0));
    for (const stream of streams) assert.equal(await pendingOf(client, stream, GROUP), 0);
  });
}

both("what a killed consumer of the reference held comes to ours in the same group, counted", async (
  { url, python },
  context,
) => {
  const { prefix, topic } = names();
  const broker = ours(context, { url, prefix, group: GROUP, ordered: false, minIdleMs: 500 });
  const sent = await broker.publishAll(topic, events(8));
  const dying = new Peer(context, python, { url, prefix, group: GROUP });
  const held = await dying.take(topic, 8);
  await dying.ack(held.slice(0, 3));
  await dying.kill();
  const read = await drain(broker, topic, 5);
  assert.deepEqual(idsOf(read), sent.slice(3).map(({ id }) => id));
  assert.ok(read.every(({ attempt }) => attempt === 1));
});

both("what a killed consumer of ours held comes to the reference in the same group, counted", async (
  { url, python },
  context,
) => {
  const { prefix, topic } = names();
  const options = { url, prefix, group: GROUP, ordered: false, minIdleMs: 500 };
  const dying = holder(context, topic, options);
  const sent = await ours(context, { url, prefix }).publishAll(topic, events(8));
  await until(() => dying.stdout.split("\n").length > 8, { what: "eight deliveries" });
  dying.kill();
  await dying.done;
  const peer = new Peer(context, python, { url, prefix, group: GROUP, min_idle_ms: 500 });
  const read = await peer.drain(topic, 8);
  assert.deepEqual(idsOf(read), sent.map(({ id }) => id));
  assert.ok(read.every(({ attempt }) => attempt >= 1));
});

both("what ours still works on is not taken by the reference however long it takes", async (
  { url, python },
  context,
) => {
  const { prefix, topic } = names();
  const broker = ours(context, { url, prefix, group: GROUP, ordered: false, minIdleMs: 600 });
  await broker.publishAll(topic, events(4));
  const held = await take(broker, topic, 4);
  const peer = new Peer(context, python, { url, prefix, group: GROUP, min_idle_ms: 600 });
  assert.deepEqual(await peer.take(topic, 1, 2_500), []);
  for (const delivery of held) assert.equal(await delivery.ack({ confirm: true }), "settled");
  assert.deepEqual(await peer.take(topic, 1, 1_000), []);
});

both("what ours gives back on closing the reference gets as soon as it looks", async ({ url, python }, context) => {
  const { prefix, topic } = names();
  const broker = ours(context, { url, prefix, group: GROUP, ordered: false });
  const sent = await broker.publishAll(topic, events(5));
  await take(broker, topic, 5);
  const peer = new Peer(context, python, { url, prefix, group: GROUP });
  assert.deepEqual(await peer.take(topic, 1, 300), []);
  await broker.close();
  assert.deepEqual(idsOf(await peer.drain(topic, 5, 3_000)), sent.map(({ id }) => id));
});

/** A logger that keeps the messages of its warnings. */
function listening(): { readonly warnings: string[]; readonly logger: Logger } {
  const warnings: string[] = [];
  const ignore = (): void => {};
  return {
    warnings,
    logger: { debug: ignore, info: ignore, warn: (text) => void warnings.push(String(text)), error: ignore },
  };
}

both("an ordered consumer that finds the reference in its group says so, promises no order and loses nothing", async (
  { url, python },
  context,
) => {
  const { prefix, topic } = names();
  await ours(context, { url, prefix }).publishAll(topic, events(6));
  const peer = new Peer(context, python, { url, prefix, group: GROUP, batch: 2 });
  await peer.take(topic, 2);
  const { warnings, logger } = listening();
  const broker = ours(context, { url, prefix, group: GROUP, minIdleMs: 1_500, ownerLeaseMs: 1_000, logger });
  assert.equal(broker.capabilities.ordering, "subject");
  const first = await take(broker, topic, 4);
  assert.deepEqual(first.map(({ envelope, attempt }) => [envelope.data, attempt]), [[2, 0], [3, 0], [4, 0], [5, 0]]);
  assert.deepEqual(warnings, ["foreign-consumer"]);
  assert.equal(broker.health().counters["foreign-consumer"], 1);
  assert.equal(broker.capabilities.ordering, "none");
  for (const delivery of first) await delivery.ack({ confirm: true });
  await peer.kill();
  const rest = await drain(broker, topic, 2);
  assert.deepEqual(rest.map(({ envelope, attempt }) => [envelope.data, attempt]), [[0, 1], [1, 1]]);
  assert.equal(broker.capabilities.ordering, "none");
});

both("an ordered consumer notices when the reference joins its group later", async ({ url, python }, context) => {
  const { prefix, topic } = names();
  const { warnings, logger } = listening();
  // All its credit is used, so what comes next is the reference's.
  const options = { url, prefix, group: GROUP, ownerLeaseMs: 900, minIdleMs: 1_500, logger };
  const broker = ours(context, { ...options, prefetch: 3 });
  await broker.publishAll(topic, events(3));
  const held = await take(broker, topic, 3);
  const peer = new Peer(context, python, { url, prefix, group: GROUP });
  assert.deepEqual(await peer.take(topic, 1, 300), []);
  await broker.publish(topic, { type: "n", subject: "s0", data: 3 });
  assert.equal((await peer.take(topic, 1)).length, 1);
  await until(() => broker.capabilities.ordering === "none", { what: "the foreign consumer" });
  assert.deepEqual(warnings, ["foreign-consumer"]);
  for (const delivery of held) assert.equal(await delivery.ack({ confirm: true }), "settled");
  // What it leaves behind when it dies is not forgotten.
  await peer.kill();
  const [left] = await drain(broker, topic, 1);
  assert.deepEqual([left!.envelope.data, left!.attempt], [3, 1]);
});
