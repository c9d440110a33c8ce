import assert from "node:assert/strict";
import { type Admin, admin } from "../adapters/redis_support.ts";
import { until } from "../support/test.ts";
import { drain, holder, names, ours, take } from "./ours.ts";
import { onReference, Peer, type PeerDelivery } from "./peer.ts";

const both = onReference("redis");

/** Numbered events over some subjects, as arguments of either side's publish. */
function numbered(count: number, subjects: number): { type: string; subject: string; data: { n: number } }[] {
  return Array.from({ length: count }, (_, n) => ({ type: "n", subject: `s${n % subjects}`, data: { n } }));
}

const numberOf = (delivery: { readonly envelope: unknown }): number =>
  (delivery.envelope as { data: { n: number } }).data.n;

/** Asserts that numbers of one subject ascend, and answers all, sorted. */
function ordered(numbers: readonly number[], subjects: number): number[] {
  for (let subject = 0; subject < subjects; subject++) {
    const of = numbers.filter((n) => n % subjects === subject);
    assert.deepEqual(of, [...of].sort((a, b) => a - b), `subject s${subject}`);
  }
  return [...numbers].sort((a, b) => a - b);
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

async function pending(client: Admin, stream: string, group: string): Promise<number> {
  return (await client.call("XPENDING", stream, group) as [number])[0];
}

both("groups of both kinds read one topic at the same time, each all of it and in order", async (
  { url, python },
  context,
) => {
  const { prefix, topic } = names();
  const theirs = ["theirs-1", "theirs-2"].map((group) => new Peer(context, python, { url, prefix, group }));
  const mine = ["ours-1", "ours-2"].map((group) => ours(context, { url, prefix, group }));
  const publisher = ours(context, { url, prefix });
  const publish = async (): Promise<void> => {
    const messages = numbered(120, 7);
    for (let at = 0; at < messages.length; at += 20) await publisher.publishAll(topic, messages.slice(at, at + 20));
  };
  const [, ...read] = await Promise.all([
    publish(),
    ...theirs.map((peer) => peer.drain(topic, 120).then((read) => read.map(numberOf))),
    ...mine.map((broker) => drain(broker, topic, 120).then((read) => read.map(numberOf))),
  ]);
  for (const numbers of read) assert.deepEqual(ordered(numbers, 7), upTo(120));
  const client = await admin(context, url);
  for (const group of ["theirs-1", "theirs-2", "ours-1", "ours-2"]) {
    await until(async () => await pending(client, `${prefix}:stream:${topic}`, group) === 0, { what: group });
  }
});

both("retries on one side are not seen on the other", async ({ url, python }, context) => {
  const { prefix, topic } = names();
  const peer = new Peer(context, python, { url, prefix, group: "theirs" });
  const broker = ours(context, { url, prefix, group: "ours" });
  await broker.publishAll(topic, numbered(3, 1));
  const log: [number, number][] = [];
  for await (const delivery of broker.subscribe(topic)) {
    log.push([numberOf(delivery), delivery.attempt]);
    if (numberOf(delivery) === 0 && delivery.attempt < 3) await delivery.retry({ delayMs: 20 });
    else await delivery.ack({ confirm: true });
    if (numberOf(delivery) === 2) break;
  }
  assert.deepEqual(log, [[0, 0], [0, 1], [0, 2], [0, 3], [1, 0], [2, 0]]);
  const first = await peer.take(topic, 3);
  assert.deepEqual(first.map((one) => [numberOf(one), one.attempt]), [[0, 0], [1, 0], [2, 0]]);
  await peer.nack(first, true);
  const again = await peer.drain(topic, 3);
  assert.deepEqual(again.map((one) => [numberOf(one), one.attempt]), [[0, 1], [1, 1], [2, 1]]);
  assert.deepEqual(await drain(broker, topic), []);
});

both("a consumer of ours is killed and another takes over, and the reference's group does not notice", async (
  { url, python },
  context,
) => {
  const { prefix, topic } = names();
  const options = { url, prefix, group: "ours", ownerLeaseMs: 1_000 };
  const peer = new Peer(context, python, { url, prefix, group: "theirs" });
  const dying = holder(context, topic, options);
  const publisher = ours(context, { url, prefix });
  await publisher.publishAll(topic, numbered(10, 3));
  const beside = peer.drain(topic, 20);
  beside.catch(() => {});
  await until(() => dying.stdout.split("\n").length > 10, { what: "ten deliveries" });
  const broker = ours(context, options);
  const taking = take(broker, topic, 20);
  taking.catch(() => {});
  dying.kill();
  await dying.done;
  await publisher.publishAll(topic, numbered(20, 3).slice(10));
  const taken = await taking;
  assert.deepEqual(ordered(taken.map(numberOf), 3), upTo(20));
  assert.deepEqual(taken.map((one) => [numberOf(one), one.attempt > 0]), upTo(20).map((n) => [n, n < 10]));
  const read = await beside;
  assert.deepEqual(read.map(numberOf), upTo(20));
  assert.ok(read.every(({ attempt }) => attempt === 0));
});

both("a consumer of the reference is killed, its group gets its messages again, and ours does not notice", async (
  { url, python },
  context,
) => {
  const { prefix, topic } = names();
  const broker = ours(context, { url, prefix, group: "ours" });
  await broker.publishAll(topic, numbered(6, 2));
  const there = { url, prefix, group: "theirs", min_idle_ms: 400 };
  const dying = new Peer(context, python, { ...there, consumer: "one" });
  const held = await dying.take(topic, 6);
  await dying.ack(held.slice(0, 2));
  await dying.kill();
  const other = new Peer(context, python, { ...there, consumer: "two" });
  const again: PeerDelivery[] = await other.drain(topic, 4);
  assert.deepEqual(again.map((one) => [numberOf(one), one.attempt]), [[2, 1], [3, 1], [4, 1], [5, 1]]);
  const read = await drain(broker, topic, 6);
  assert.deepEqual(read.map((one) => [numberOf(one), one.attempt]), upTo(6).map((n) => [n, 0]));
});
