import assert from "node:assert/strict";
import type { EdaError } from "../../core/errors.ts";
import { RabbitMqBroker } from "../../adapters/rabbitmq/mod.ts";
import { fresh, onLegs, onServer, startProxy, until, within } from "../support/test.ts";
import { evaluate, event, names, openTransport, publishNumbers, rawClient } from "./rabbitmq_support.ts";
import { Reader } from "./transport_support.ts";

const codesOf = (outcomes: readonly (Error | undefined)[]): (string | undefined)[] =>
  outcomes.map((outcome) => (outcome as EdaError | undefined)?.code);

onLegs(["rabbitmq", "rabbitmq310"], (on) => {
  on(
    "unroutable messages are refused, the others confirmed, each matched to its call (AMQ-06)",
    async (leg, context) => {
      const { topic, group } = names();
      const exchange = fresh("x");
      const raw = await rawClient(context, leg.url);
      await raw.channel((channel) => channel.assertExchange(exchange, "topic", { durable: true }));
      context.cleanup(() => raw.channel((channel) => channel.deleteExchange(exchange)));
      const { transport } = await openTransport(context, { url: leg.url, exchange, bindings: ["ok"] });
      const reader = new Reader(transport, topic, group);
      await reader.fetch();
      const messages = Array.from({ length: 20 }, (_, n) => event(n, n % 2 === 0 ? "ok" : "nope", `e${n % 4}`));
      const outcomes = await transport.send(topic, messages);
      assert.deepEqual(codesOf(outcomes), messages.map((_, n) => n % 2 === 0 ? undefined : "publish-refused"));
      assert.equal((outcomes[1] as EdaError).details["reason"], "unroutable");
      assert.equal((await reader.take(10)).length, 10);
    },
  );

  on(
    "every publish that waits when the connection dies settles as unknown, none as confirmed (AMQ-05)",
    async (leg, context) => {
      const { topic } = names();
      const proxy = await startProxy({ port: Number(new URL(leg.url).port) });
      context.cleanup(() => proxy.close());
      const { transport } = await openTransport(context, { url: proxy.url(leg.url) });
      await publishNumbers(transport, topic, 0, 0);
      await proxy.blackHole("down");
      const before = (await proxy.counts()).up;
      const sent = transport.send(topic, Array.from({ length: 50 }, (_, n) => event(n, `s${n}`)));
      await until(async () => (await proxy.counts()).up > before + 50 * 100, {
        what: "the publishes to be on the wire",
      });
      await proxy.cut();
      const outcomes = await within(1_000, "all to settle", sent);
      assert.deepEqual(new Set(codesOf(outcomes)), new Set(["outcome-unknown"]));
    },
  );

  on("after a lost connection each publish has its own confirmation again (AMQ-15)", async (leg, context) => {
    const { topic, group } = names();
    const proxy = await startProxy({ port: Number(new URL(leg.url).port) });
    context.cleanup(() => proxy.close());
    const { transport, listener } = await openTransport(context, { url: proxy.url(leg.url) });
    await publishNumbers(transport, topic, 1, 5);
    for (let round = 0; round < 3; round++) {
      await proxy.cut();
      await until(async () => {
        await transport.open(listener).catch(() => {});
        const [outcome] = await transport.send(topic, [event(-1)]).catch((error) => [error]);
        return outcome === undefined;
      });
      await within(5_000, "ten confirmations", publishNumbers(transport, topic, 10 * round + 6, 10 * round + 15));
    }
    const seen = await new Reader(transport, topic, group).take(38);
    assert.equal(seen.length, 38);
  });

  on(
    "a full queue that rejects is a refusal; a publishAll stops the subject there, and others go on",
    async (leg, context) => {
      const { topic, group } = names();
      const options = { queueArguments: { "x-max-length": 3, "x-overflow": "reject-publish" } };
      const broker = new RabbitMqBroker({
        url: leg.url,
        group,
        source: "/t",
        isolation: "inline",
        logger: false,
        ...options,
      });
      context.cleanup(() => broker.close());
      const messages = Array.from({ length: 20 }, (_, n) => ({ type: "n", subject: "s", data: n }));
      const failure = await broker.publishAll(topic, messages).then(() => undefined, (error) => error);
      assert.equal(failure?.code, "publish-batch");
      const accepted = (failure.outcomes as { ok: boolean }[]).map(({ ok }) => ok);
      const first = accepted.indexOf(false);
      assert.ok(first >= 3, "what there is room for is taken");
      assert.ok(accepted.slice(first).every((ok) => !ok), "nothing of the subject is taken behind its first refusal");
      assert.equal(failure.outcomes[first].error.code, "publish-refused");
      assert.equal(failure.outcomes[first].error.details.reason, "nack");
      assert.equal(failure.outcomes[19].error.details.unsent, true);
    },
  );

  on("a queue that was deleted is made again for the publish that finds it gone", async (leg, context) => {
    const { topic, group } = names();
    const { transport } = await openTransport(context, { url: leg.url });
    await publishNumbers(transport, topic, 1, 1);
    const raw = await rawClient(context, leg.url);
    await raw.channel((channel) => channel.deleteQueue(topic));
    await publishNumbers(transport, topic, 2, 2);
    assert.equal((await new Reader(transport, topic, group).take(1)).length, 1);
  });

  on(
    "an exchange that does not exist refuses the publish by its name, and harms no other topic",
    async (leg, context) => {
      const { topic } = names();
      const { transport } = await openTransport(context, { url: leg.url, exchange: "no-such-exchange" });
      await assert.rejects(
        transport.send(topic, [event(1)]),
        (error: EdaError) => error.code === "publish-refused" && error.message.includes('"no-such-exchange"'),
      );
      const other = await openTransport(context, { url: leg.url });
      await publishNumbers(other.transport, topic, 1, 1);
    },
  );

  on("an exchange that is deleted under a publisher is made again", async (leg, context) => {
    const { topic } = names();
    const { transport } = await openTransport(context, { url: leg.url });
    await publishNumbers(transport, topic, 1, 1);
    const raw = await rawClient(context, leg.url);
    await raw.channel((channel) => channel.deleteExchange(topic));
    const [lost] = await transport.send(topic, [event(2)]);
    assert.equal((lost as EdaError | undefined)?.code, "outcome-unknown");
    await publishNumbers(transport, topic, 3, 3);
  });

  on("ids, types and subjects that AMQP has no room for are published all the same", async (leg, context) => {
    const { topic, group } = names();
    const { transport } = await openTransport(context, { url: leg.url });
    const long = "ü".repeat(500);
    const body = `{"specversion":"1.0","id":"${long}","source":"/t","type":"${long}","subject":"${long}","data":1}`;
    assert.deepEqual(await transport.send(topic, [{ body, subject: long }]), [undefined]);
    const [raw] = await new Reader(transport, topic, group).take(1);
    assert.equal(new TextDecoder().decode(raw!.body as Uint8Array), body);
  });
});

onServer("rabbitmq")(
  "a message above the server's own limit is refused, and the next one goes through",
  async (start, context) => {
    const server = await start({ files: { "extra.conf": "max_message_size = 4096\n" } });
    const { topic } = names();
    const { transport } = await openTransport(context, { url: server.url });
    await publishNumbers(transport, topic, 1, 1);
    assert.deepEqual(codesOf(await transport.send(topic, [event("x".repeat(10_000))])), ["publish-refused"]);
    await publishNumbers(transport, topic, 2, 2);
  },
);

onServer("rabbitmq")(
  "while memory is short publishes are refused unsent or end by their deadline, consumers go on, and it is told",
  { timeoutMs: 60_000 },
  async (start, context) => {
    const server = await start();
    const { topic, group } = names();
    const { transport, listener } = await openTransport(context, { url: server.url, publishTimeoutMs: 2_000 });
    const reader = new Reader(transport, topic, group);
    await publishNumbers(transport, topic, 1, 5);
    const held = await reader.take(5);
    await evaluate(server, "rabbit_alarm:set_alarm({{resource_limit, memory, node()}, []}).");
    // The server says so when a message comes, which has left by then.
    const first = transport.send(topic, [event(6)]);
    await listener.heard("signal", "publishing-blocked");
    const [refused] = await transport.send(topic, [event(7)]);
    assert.equal((refused as EdaError).code, "broker-unavailable");
    assert.equal((refused as EdaError).details["reason"], "blocked");
    assert.deepEqual(codesOf(await within(4_000, "the deadline", first)), ["outcome-unknown"]);
    assert.deepEqual(await reader.ack(held), held.map(() => "settled"), "the consumers' connection is not touched");
    await evaluate(server, "rabbit_alarm:clear_alarm({resource_limit, memory, node()}).");
    await until(async () => (await transport.send(topic, [event(8)]))[0] === undefined, { timeoutMs: 20_000 });
  },
);
