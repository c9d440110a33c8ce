import assert from "node:assert/strict";
import { RabbitMqBroker } from "../../adapters/rabbitmq/mod.ts";
import { queueArguments } from "../../adapters/rabbitmq/queue.ts";
import { resolveOptions } from "../../adapters/rabbitmq/resolve.ts";
import type { EdaError } from "../../core/errors.ts";
import { fresh, onLeg, onLegs, onServer, until, within } from "../support/test.ts";
import { dataOf, evaluate, event, names, openTransport, publishNumbers, rawClient } from "./rabbitmq_support.ts";
import { Reader } from "./transport_support.ts";

onLegs(["rabbitmq", "rabbitmq310"], (on) => {
  on(
    "a hundred double settles leave the channel open, and acknowledge nothing that still runs (AMQ-02)",
    async (leg, context) => {
      const { topic, group } = names();
      const { transport, listener } = await openTransport(context, { url: leg.url });
      const reader = new Reader(transport, topic, group);
      await publishNumbers(transport, topic, 0, 199);
      const raws = await reader.take(200);
      // Everything but 100 … 109, out of order, twice.
      const done = raws.filter((_, n) => n < 100 || n >= 110).reverse();
      for (let at = 0; at < done.length; at += 19) {
        const batch = done.slice(at, at + 19);
        assert.deepEqual(await reader.ack(batch), batch.map(() => "settled"));
        assert.deepEqual(await reader.ack(batch), batch.map(() => "stale"));
      }
      assert.equal(listener.count("signal"), 0);
      await transport.close();
      const next = await openTransport(context, { url: leg.url });
      const left = await new Reader(next.transport, topic, group).take(10);
      assert.deepEqual(dataOf(left), [100, 101, 102, 103, 104, 105, 106, 107, 108, 109]);
    },
  );

  on(
    "a queue that is deleted under its consumer is made again and consumed, and that is told (AMQ-03)",
    async (leg, context) => {
      const { topic, group } = names();
      const { transport, listener } = await openTransport(context, { url: leg.url });
      const reader = new Reader(transport, topic, group);
      await publishNumbers(transport, topic, 0, 0);
      await reader.take(1);
      const raw = await rawClient(context, leg.url);
      await raw.channel((channel) => channel.deleteQueue(topic));
      await listener.heard("signal", "consumer-lost");
      await listener.heard("revoked");
      await assert.rejects(reader.fetch(2_000), (error: EdaError) => error.code === "broker-unavailable");
      const next = within(3_000, "the event after that", reader.take(1));
      await publishNumbers(transport, topic, 1, 1);
      assert.deepEqual(dataOf(await next), [1]);
    },
  );

  on(
    "where nothing may be made, a deleted queue fails its subscription and health, and heals with it (AMQ-03)",
    async (leg, context) => {
      const { topic, group } = names();
      const maker = await openTransport(context, { url: leg.url });
      await publishNumbers(maker.transport, topic, 0, 0);
      const broker = new RabbitMqBroker({
        url: leg.url,
        group,
        source: "/t",
        create: false,
        isolation: "inline",
        logger: false,
      });
      context.cleanup(() => broker.close());
      const seen: unknown[] = [];
      const reading = (async () => {
        for await (const delivery of broker.subscribe(topic)) {
          seen.push(delivery.envelope.data);
          await delivery.ack();
        }
      })();
      await until(() => seen.length === 1);
      const raw = await rawClient(context, leg.url);
      await raw.channel((channel) => channel.deleteQueue(topic));
      await until(() => !broker.healthy && broker.health().topics[0]?.state === "failing", {
        what: "health to say so",
      });
      await publishNumbers(maker.transport, topic, 1, 1);
      await until(() => seen.length === 2, { what: "the event after that" });
      await until(() => broker.healthy);
      await broker.close();
      await reading;
    },
  );

  on("an ack that belongs to a channel that is gone is stale and reaches nobody", async (leg, context) => {
    const { topic, group } = names();
    const { transport } = await openTransport(context, { url: leg.url });
    const reader = new Reader(transport, topic, group);
    await publishNumbers(transport, topic, 0, 4);
    const first = await reader.take(5);
    assert.deepEqual(await reader.release(first.slice(0, 1)), ["settled"]);
    assert.deepEqual(await reader.ack(first), first.map(() => "stale"));
    const again = await reader.take(5);
    assert.deepEqual(dataOf(again), [0, 1, 2, 3, 4], "everything is back in its order");
    assert.ok(again.every((raw) => raw.deliveries >= 1));
    assert.deepEqual(await reader.ack(again), again.map(() => "settled"));
  });

  on("a header that a publisher wrote is no delivery count (AMQ-09)", async (leg, context) => {
    const { topic, group } = names();
    const raw = await rawClient(context, leg.url);
    const { body } = event(1);
    await raw.put(topic, new TextEncoder().encode(body), queueArguments(resolveOptions({})), {
      headers: { "x-delivery-count": 1_000_000, "x-death": [{ count: 99, reason: "rejected", queue: topic }] },
    });
    const { transport } = await openTransport(context, { url: leg.url });
    const reader = new Reader(transport, topic, group);
    const [first] = await reader.take(1);
    assert.equal(first!.deliveries, 0);
    await reader.release([first!]);
    const [second] = await reader.take(1);
    assert.ok(second!.deliveries >= 1 && second!.deliveries < 10, "the queue's own count");
  });

  on("what is dropped goes to the dead-letter exchange, what is acked does not", async (leg, context) => {
    const { topic, group } = names();
    const exchange = fresh("dlx");
    const raw = await rawClient(context, leg.url);
    await raw.channel(async (channel) => {
      await channel.assertExchange(exchange, "fanout", { durable: true });
      await channel.assertQueue(exchange, { durable: true });
      await channel.bindQueue(exchange, exchange, "");
    });
    const { transport } = await openTransport(context, { url: leg.url, deadLetterExchange: exchange });
    const reader = new Reader(transport, topic, group);
    await publishNumbers(transport, topic, 0, 3);
    const raws = await reader.take(4);
    assert.deepEqual(await transport.drop(topic, group, raws.slice(1, 3).map(({ native }) => native)), [
      "settled",
      "settled",
    ]);
    await reader.ack([raws[0]!, raws[3]!]);
    const count = () => raw.channel((channel) => channel.checkQueue(exchange)).then(({ messageCount }) => messageCount);
    await until(async () => await count() === 2, { what: "two dead letters" });
  });

  on(
    "a delivery limit of the queue sees every round in which its messages were given back (AMQ-08)",
    async (leg, context) => {
      const { topic, group } = names();
      const exchange = fresh("dlx");
      const raw = await rawClient(context, leg.url);
      await raw.channel(async (channel) => {
        await channel.assertExchange(exchange, "fanout", { durable: true });
        await channel.assertQueue(exchange, { durable: true });
        await channel.bindQueue(exchange, exchange, "");
      });
      const options = { url: leg.url, deadLetterExchange: exchange, queueArguments: { "x-delivery-limit": 2 } };
      const maker = await openTransport(context, options);
      await publishNumbers(maker.transport, topic, 0, 4);
      for (let round = 0; round < 3; round++) {
        const { transport } = await openTransport(context, options);
        await new Reader(transport, topic, group).take(5);
        await transport.close();
      }
      const count = () =>
        raw.channel((channel) => channel.checkQueue(exchange)).then(({ messageCount }) => messageCount);
      await until(async () => await count() === 5, { what: "five dead letters" });
    },
  );

  on(
    "a queue that competes is refused where order is wanted, by the argument's name (AMQ-11)",
    async (leg, context) => {
      const { topic, group } = names();
      const raw = await rawClient(context, leg.url);
      await raw.channel((channel) => channel.assertQueue(topic, { durable: true }));
      const { transport } = await openTransport(context, { url: leg.url });
      const reader = new Reader(transport, topic, group);
      await assert.rejects(
        reader.fetch(),
        (error: EdaError) =>
          error.code === "invalid-option" && error.message.includes("x-single-active-consumer") &&
          error.message.includes(topic) && error.message.includes("ordered: false"),
      );
      const other = names();
      await publishNumbers(transport, other.topic, 1, 1);
      assert.equal((await new Reader(transport, other.topic, other.group).take(1)).length, 1, "others go on");
    },
  );

  on(
    "a queue with another argument than one asked for is refused by its name, without a loop (AMQ-11)",
    async (leg, context) => {
      const { topic, group } = names();
      const raw = await rawClient(context, leg.url);
      const { "x-queue-type": type, ...rest } = queueArguments(resolveOptions({}));
      await raw.channel((channel) =>
        channel.assertQueue(topic, { durable: true, arguments: { "x-queue-type": type, ...rest } })
      );
      const broker = new RabbitMqBroker({
        url: leg.url,
        group,
        isolation: "inline",
        logger: false,
        deadLetterExchange: "amq.fanout",
      });
      context.cleanup(() => broker.close());
      const stream = broker.subscribe(topic)[Symbol.asyncIterator]();
      await assert.rejects(
        stream.next(),
        (error: EdaError) => error.code === "invalid-option" && error.message.includes("x-dead-letter-exchange"),
      );
      assert.equal(broker.healthy, true, "it is the caller's error");
    },
  );

  on("a queue without arguments is consumed as it is with ordered: false, and that is told", async (leg, context) => {
    const { topic, group } = names();
    const raw = await rawClient(context, leg.url);
    await raw.put(topic, new TextEncoder().encode(event(7).body));
    const { transport, listener } = await openTransport(context, { url: leg.url, ordered: false });
    const reader = new Reader(transport, topic, group);
    const raws = await reader.take(1);
    assert.deepEqual(dataOf(raws), [7]);
    assert.ok(listener.count("signal", "queue-arguments") >= 1);
    assert.deepEqual(await reader.ack(raws), ["settled"]);
    assert.deepEqual(await transport.send(topic, [event(8)]), [undefined]);
    assert.deepEqual(dataOf(await reader.take(1)), [8]);
  });
});

onServer("rabbitmq")(
  "a message held for longer than consumer_timeout: the channel is replaced, the late ack is stale, the next is handled (AMQ-10)",
  { timeoutMs: 60_000 },
  async (start, context) => {
    const server = await start();
    for (const [name, value] of [["consumer_timeout", 2_000], ["channel_tick_interval", 500]]) {
      await evaluate(server, `application:set_env(rabbit, ${name}, ${value}).`);
    }
    const { topic, group } = names();
    const { transport, listener } = await openTransport(context, { url: server.url });
    const reader = new Reader(transport, topic, group);
    await publishNumbers(transport, topic, 1, 2);
    const held = await reader.take(2);
    await within(30_000, "the server's limit", listener.heard("signal", "consumer-lost"));
    assert.deepEqual(await reader.ack(held), ["stale", "stale"]);
    const again = await reader.takeThrough(2, listener);
    assert.deepEqual(dataOf(again), [1, 2]);
    assert.deepEqual(await reader.ack(again), ["settled", "settled"]);
  },
);

onLeg("rabbitmq")(
  "half of the server's limit gives the partition back before the server does",
  async (leg, context) => {
    const { topic, group } = names();
    const { transport, listener } = await openTransport(context, { url: leg.url, consumerTimeoutMs: 1_000 });
    const reader = new Reader(transport, topic, group);
    await publishNumbers(transport, topic, 1, 2);
    const held = await reader.take(2);
    await listener.heard("signal", "held-too-long");
    await listener.heard("revoked");
    assert.deepEqual(await reader.ack(held), ["stale", "stale"]);
    assert.deepEqual(dataOf(await reader.take(2)), [1, 2]);
  },
);
