import assert from "node:assert/strict";
import { RabbitMqBroker } from "../../adapters/rabbitmq/mod.ts";
import { InboundDispatcher } from "../../core/dispatch/dispatcher.ts";
import type { EdaError } from "../../core/errors.ts";
import { MemoryStore } from "../../core/store/memory_store.ts";
import { onLeg, onLegs, until, within } from "../support/test.ts";
import { names, rawClient } from "./rabbitmq_support.ts";

onLegs(["rabbitmq", "rabbitmq310"], (on) => {
  for (const queueType of ["quorum", "classic"] as const) {
    on(
      `a failing event waits between attempts and ends as one dead letter; others flow (${queueType}, AMQ-07)`,
      async (leg, context) => {
        const { topic, group } = names();
        const broker = new RabbitMqBroker({
          url: leg.url,
          group,
          source: "/t",
          queueType,
          isolation: "inline",
          logger: false,
        });
        context.cleanup(() => broker.close());
        const store = new MemoryStore();
        const bad: number[] = [];
        const good: number[] = [];
        const app = new InboundDispatcher({
          broker,
          store,
          maxAttempts: 4,
          retry: { baseMs: 200, factor: 1, capMs: 200 },
          logger: false,
          routes: {
            bad: () => {
              bad.push(performance.now());
              throw new Error("always");
            },
            good: () => void good.push(performance.now()),
          },
        });
        const stop = new AbortController();
        const running = app.run([topic], { signal: stop.signal });
        await broker.publishAll(topic, [{ type: "bad", subject: "a", data: 1 }, {
          type: "good",
          subject: "b",
          data: 2,
        }]);
        const letters = async (): Promise<number> => (await store.deadLetters.list({})).length;
        await until(async () => await letters() === 1, { what: "the dead letter" });
        assert.equal(bad.length, 4, "it does not spin");
        assert.equal(good.length, 1);
        assert.ok(good[0]! < bad[3]!, "the healthy one did not wait for it");
        stop.abort();
        await running;
        assert.equal(await letters(), 1);
      },
    );
  }
});

onLeg("rabbitmq")(
  "a queue that comes back with other arguments fails its subscription by name; others go on (AMQ-11)",
  async (leg, context) => {
    const one = names();
    const other = names();
    const broker = new RabbitMqBroker({
      url: leg.url,
      group: one.group,
      source: "/t",
      isolation: "inline",
      logger: false,
    });
    context.cleanup(() => broker.close());
    await broker.publish(one.topic, { type: "n", data: 1 });
    await broker.publish(other.topic, { type: "n", data: 1 });
    const failing = broker.subscribe(one.topic)[Symbol.asyncIterator]();
    const going = broker.subscribe(other.topic)[Symbol.asyncIterator]();
    await (await failing.next()).value!.ack({ confirm: true });
    await (await going.next()).value!.ack({ confirm: true });
    const failed = failing.next();
    let over = false;
    failed.catch(() => over = true);
    const raw = await rawClient(context, leg.url);
    // Either of us may make it first; what ours made is deleted again until it is the other's.
    await until(async () => {
      if (over) return true;
      await raw.channel(async (channel) => {
        await channel.deleteQueue(one.topic);
        await channel.assertQueue(one.topic, { durable: true });
      }).catch(() => {});
      return over;
    }, { timeoutMs: 15_000, everyMs: 100, what: "the subscription to fail" });
    await assert.rejects(
      failed,
      (error: EdaError) => error.code === "invalid-option" && error.message.includes("x-single-active-consumer"),
    );
    await broker.publish(other.topic, { type: "n", data: 2 });
    const next = await within(5_000, "the other subscription", going.next());
    assert.equal(next.value!.envelope.data, 2);
    await next.value!.ack();
  },
);
