import assert from "node:assert/strict";
import { RabbitMqBroker, type RabbitMqBrokerOptions } from "../../adapters/rabbitmq/mod.ts";
import { rawClient } from "../adapters/rabbitmq_support.ts";
import { fresh, type TestContext } from "../support/test.ts";
import { drain, take, wireOf } from "./ours.ts";
import { onReference, Peer } from "./peer.ts";
import { asArguments, asTold, SAMPLES } from "./samples.ts";

/** What is needed to share a queue with the reference: it declares one without arguments, and its consumers compete. */
const SHARED = { compat: "reference", ordered: false } as const;

function ours(context: TestContext, options: RabbitMqBrokerOptions): RabbitMqBroker {
  const broker = new RabbitMqBroker({ source: "/ours", logger: false, ...options });
  context.cleanup(() => broker.close({ drainMs: 1_000 }));
  return broker;
}

for (const server of ["rabbitmq", "rabbitmq310"]) {
  const both = onReference(server);

  both(
    "what the reference publishes is read here as it stands, whoever made the queue",
    async ({ url, python }, context) => {
      for (const first of ["theirs", "ours"]) {
        const topic = fresh("shared");
        if (first === "ours") {
          await ours(context, { url, ...SHARED }).publish(topic, { type: "shop.first", subject: "o-0" });
        }
        const peer = new Peer(context, python, { url });
        const sent = await peer.publish(topic, SAMPLES.map(asArguments));
        const read = await drain(ours(context, { url, ...SHARED }), topic, sent.length + (first === "ours" ? 1 : 0));
        assert.deepEqual(read.slice(-sent.length).map(wireOf), sent);
        assert.deepEqual(
          read.map((delivery) => delivery.attempt),
          read.map(() => 0),
        );
        assert.deepEqual(read.slice(-sent.length).map(({ envelope }) => envelope.data), sent.map((one) => one["data"]));
      }
    },
  );

  both("what is published here is read by the reference as it stands", async ({ url, python }, context) => {
    const topic = fresh("shared");
    const broker = ours(context, { url, ...SHARED });
    const one = await Promise.all(SAMPLES.map((init) => broker.publish(topic, init)));
    const many = await broker.publishAll(topic, SAMPLES);
    const peer = new Peer(context, python, { url });
    const read = await peer.drain(topic, 2 * SAMPLES.length);
    const byId = (a: { id?: unknown }, b: { id?: unknown }): number => String(a.id) < String(b.id) ? -1 : 1;
    assert.deepEqual(read.map(({ envelope }) => envelope).sort(byId), [...one, ...many].map(asTold).sort(byId));
    assert.deepEqual(await peer.refused(), []);
  });

  both("properties and headers are the same on both sides", async ({ url, python }, context) => {
    const topic = fresh("shared");
    const peer = new Peer(context, python, { url });
    await peer.publish(topic, SAMPLES.slice(0, 4).map(asArguments));
    const sent = await ours(context, { url, ...SHARED }).publishAll(topic, SAMPLES.slice(0, 4));
    const raw = await rawClient(context, url);
    const seen = await raw.channel(async (channel) => {
      const all: Record<string, unknown>[] = [];
      for (let n = 0; n < 8; n++) {
        const message = await channel.get(topic, { noAck: true });
        assert.ok(message !== false);
        const { contentType, deliveryMode, type, headers, messageId } = message.properties;
        all.push({ contentType, deliveryMode, type, headers, messageId });
      }
      return all;
    });
    const bare = ({ messageId: _, ...rest }: Record<string, unknown>): unknown => rest;
    assert.deepEqual(seen.slice(4).map(bare), seen.slice(0, 4).map(bare));
    assert.deepEqual(seen.slice(4).map((one) => one["messageId"]), sent.map(({ id }) => id));
  });

  both(
    "one queue, shared with the reference: each message goes to one side, and nothing is lost",
    async ({ url, python }, context) => {
      const topic = fresh("shared");
      const broker = ours(context, { url, ...SHARED, prefetch: 5 });
      const peer = new Peer(context, python, { url, prefetch: 5, batch: 5 });
      // Slow to start, so it begins.
      await broker.publish(topic, { type: "n", subject: "s0", data: 0 });
      const first = await peer.drain(topic, 1);
      const reading = Promise.all([drain(broker, topic, Infinity, { idleMs: 3_000 }), peer.drain(topic, 60, 3_000)]);
      await broker.publishAll(
        topic,
        Array.from({ length: 59 }, (_, n) => ({ type: "n", subject: `s${n + 1}`, data: n + 1 })),
      );
      const [here, rest] = await reading;
      const seen = [
        ...here.map(({ envelope }) => envelope.data as number),
        ...[...first, ...rest].map(({ envelope }) => envelope["data"] as number),
      ];
      assert.deepEqual(seen.sort((a, b) => a - b), Array.from({ length: 60 }, (_, n) => n));
    },
  );

  both("what one side held and did not settle comes to the other, marked", async ({ url, python }, context) => {
    const topic = fresh("shared");
    const first = ours(context, { url, ...SHARED });
    await first.publish(topic, { type: "n", subject: "s", data: 1 });
    await take(first, topic, 1);
    await first.close();
    const peer = new Peer(context, python, { url });
    const [theirs] = await peer.take(topic, 1);
    assert.equal(theirs!.attempt, 1);
    await peer.kill();
    const [delivery] = await drain(ours(context, { url, ...SHARED }), topic, 1);
    assert.equal(delivery!.envelope.data, 1);
    assert.equal(delivery!.attempt, 1);
  });
}
