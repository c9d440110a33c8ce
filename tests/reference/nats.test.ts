import assert from "node:assert/strict";
import { NatsJetStreamBroker, type NatsJetStreamBrokerOptions } from "../../adapters/nats/mod.ts";
import { hold, natsAdmin } from "../adapters/nats_support.ts";
import { fresh, type TestContext } from "../support/test.ts";
import { drain, take, wireOf } from "./ours.ts";
import { onReference, Peer } from "./peer.ts";
import { asArguments, asTold, SAMPLES } from "./samples.ts";

const both = onReference("nats");

function ours(context: TestContext, options: NatsJetStreamBrokerOptions): NatsJetStreamBroker {
  const broker = new NatsJetStreamBroker({ source: "/ours", logger: false, ...options });
  context.cleanup(() => broker.close({ drainMs: 1_000 }));
  return broker;
}

both("what the reference publishes is read here as it stands, whoever made the stream", async (
  { url, python },
  context,
) => {
  for (const first of ["theirs", "ours"]) {
    const topic = fresh("shared");
    if (first === "ours") await ours(context, { url }).publish(topic, { type: "shop.first", subject: "o-0" });
    const peer = new Peer(context, python, { servers: url });
    const sent = await peer.publish(topic, SAMPLES.map(asArguments));
    const read = await drain(ours(context, { url, group: "ours" }), topic, sent.length + (first === "ours" ? 1 : 0));
    assert.deepEqual(read.slice(-sent.length).map(wireOf), sent);
    assert.deepEqual(read.map((delivery) => delivery.attempt), read.map(() => 0));
    assert.deepEqual(read.slice(-sent.length).map(({ envelope }) => envelope.data), sent.map((one) => one["data"]));
  }
});

both("what is published here is read by the reference as it stands, on the same subjects", async (
  { url, python },
  context,
) => {
  const topic = fresh("shared");
  const broker = ours(context, { url });
  const one = await Promise.all(SAMPLES.map((init) => broker.publish(topic, init)));
  const many = await broker.publishAll(topic, SAMPLES);
  const peer = new Peer(context, python, { servers: url, durable: "theirs" });
  const read = await peer.drain(topic, 2 * SAMPLES.length);
  const byId = (a: { id?: unknown }, b: { id?: unknown }): number => String(a.id) < String(b.id) ? -1 : 1;
  assert.deepEqual(
    read.map(({ envelope }) => envelope).sort(byId),
    [...one, ...many].map(asTold).sort(byId),
  );
  assert.deepEqual(await peer.refused(), []);
  const theirs = await peer.publish(topic, SAMPLES.slice(0, 4).map(asArguments));
  const admin = await natsAdmin(context, url);
  const { state } = await admin.stream(topic);
  for (let n = 0; n < theirs.length; n++) {
    const subjects = await Promise.all(
      [n + 1, state.last_seq - theirs.length + 1 + n].map(async (seq) => (await admin.message(topic, seq)).subject),
    );
    assert.equal(subjects[0], subjects[1], `both publish sample ${n} on one subject`);
  }
});

both("one durable, shared with the reference: each message goes to one side, and nothing is lost", async (
  { url, python },
  context,
) => {
  const topic = fresh("shared");
  const group = "workers";
  const broker = ours(context, { url, ordered: false, group, prefetch: 5 });
  const peer = new Peer(context, python, { servers: url, durable: group, ack_wait_s: 30, batch: 5 });
  // Slow to start, so it begins.
  await broker.publish(topic, { type: "n", subject: "s0", data: 0 });
  const first = await peer.drain(topic, 1);
  const reading = Promise.all([
    drain(broker, topic, Infinity, { idleMs: 3_000 }),
    peer.drain(topic, 60, 3_000),
  ]);
  for (let n = 1; n < 60; n++) {
    await broker.publish(topic, { type: "n", subject: `s${n}`, data: n });
    await hold(10);
  }
  const [here, rest] = await reading;
  const there = [...first, ...rest];
  const seen = [
    ...here.map(({ envelope }) => envelope.data as number),
    ...there.map(({ envelope }) => envelope["data"] as number),
  ];
  assert.deepEqual(seen.sort((a, b) => a - b), Array.from({ length: 60 }, (_, n) => n));
  assert.ok(here.length > 0 && rest.length > 0, `${here.length} here, ${rest.length} there`);
  const admin = await natsAdmin(context, url);
  assert.equal((await admin.durable(topic, group)).num_ack_pending, 0);
});

both("what one side held and did not settle comes to the other, counted", async ({ url, python }, context) => {
  const topic = fresh("shared");
  const group = "workers";
  const options = { url, ordered: false, group, ackWaitMs: 1_000 } as const;
  const first = ours(context, options);
  await first.publish(topic, { type: "n", subject: "s", data: 1 });
  await take(first, topic, 1);
  await first.close();
  const peer = new Peer(context, python, { servers: url, durable: group });
  const [theirs] = await peer.take(topic, 1);
  assert.equal(theirs!.attempt, 1);
  await peer.kill();
  const [delivery] = await drain(ours(context, options), topic, 1);
  assert.equal(delivery!.envelope.data, 1);
  assert.equal(delivery!.attempt, 2);
});
