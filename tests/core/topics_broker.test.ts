import assert from "node:assert/strict";
import { z } from "zod";
import { defineTopics, isEdaError, MemoryBroker, MemoryHub, typed, type UndecodableRecord } from "../../mod.ts";
import { test, until } from "../support/test.ts";

const topics = defineTopics({
  orders: {
    "order.placed": z.object({ total: z.string().transform(Number), note: z.string().default("none") }),
    "order.seen": typed<{ by: string }>(),
    "order.slow": z.object({ n: z.number() }).refine(async (value) => {
      await new Promise((resolve) => setTimeout(resolve, value.n === 1 ? 20 : 0));
      return value.n !== 13;
    }),
  },
});

test("topics: publish checks by the schema's input and sends it unchanged; hand-out gives its output", async () => {
  const hub = new MemoryHub();
  const broker = new MemoryBroker({ topics, hub, source: "/t" });
  const sent = await broker.publish("orders", { type: "order.placed", data: { total: "42" } });
  assert.deepEqual(sent.data, { total: "42" });
  for await (const delivery of broker.subscribe("orders")) {
    if (delivery.envelope.type !== "order.placed") continue;
    const data: { total: number; note: string } = delivery.envelope.data;
    assert.deepEqual(data, { total: 42, note: "none" });
    await delivery.ack();
    break;
  }
  const plain = new MemoryBroker({ hub, source: "/t", group: "other" });
  const reading = plain.subscribe("orders", { idleMs: 500 })[Symbol.asyncIterator]();
  const next = reading.next();
  await until(() => plain.health().topics[0]?.state === "active");
  await broker.publish("orders", { type: "order.placed", data: { total: "7" } });
  assert.deepEqual((await next).value!.envelope.data, { total: "7" }, "the wire has the input");
  await plain.close();
  await broker.close();
});

test("topics: what the schema refuses is not published, and names where without the value", async () => {
  const broker = new MemoryBroker({ topics, source: "/t" });
  const bad = { type: "order.placed", data: { total: 4711 } } as never;
  await assert.rejects(broker.publish("orders", bad), (error) => {
    assert.ok(isEdaError(error) && error.code === "schema-invalid");
    assert.ok(error.message.includes("total") && !error.message.includes("4711"));
    return true;
  });
  await assert.rejects(
    broker.publish("orders", { type: "order.unknown", data: 1 } as never),
    (error) => isEdaError(error) && error.code === "invalid-option" && error.message.includes("order.unknown"),
  );
  assert.equal(broker.health().status, "idle");
  await broker.close();
});

test("topics: a message on the wire that the schema refuses is recorded and dropped; the next one flows", async () => {
  const hub = new MemoryHub();
  const records: UndecodableRecord[] = [];
  const foreign = new MemoryBroker({ hub, source: "/f" });
  await foreign.publish("orders", { type: "order.placed", data: { total: true } });
  await foreign.publish("orders", { type: "order.foreign", data: "kept as it is" });
  await foreign.publish("orders", { type: "order.slow", data: { n: 13 } });
  await foreign.publish("orders", { type: "order.seen", data: { by: "me" } });
  const broker = new MemoryBroker({
    topics,
    hub,
    logger: false,
    deadLetters: { recordUndecodable: (record) => void records.push(record) },
  });
  const seen: string[] = [];
  for await (const delivery of broker.subscribe("orders", { idleMs: 0 })) {
    seen.push(delivery.envelope.type);
    await delivery.ack();
  }
  assert.deepEqual(seen, ["order.foreign", "order.seen"]);
  assert.equal(records.length, 2);
  assert.ok(records.every((record) => record.error.code === "envelope-corrupt" && record.topic === "orders"));
  await until(() => hub.unsettled("orders") === 0);
  await Promise.all([broker.close(), foreign.close()]);
});

test("topics: asynchronous schemas keep publish order and hand-out order", async () => {
  const broker = new MemoryBroker({ topics, source: "/t" });
  await Promise.all([1, 2, 3].map((n) => broker.publish("orders", { type: "order.slow", subject: "s", data: { n } })));
  const seen: number[] = [];
  for await (const delivery of broker.subscribe("orders", { idleMs: 0 })) {
    if (delivery.envelope.type === "order.slow") seen.push(delivery.envelope.data.n);
    await delivery.ack();
  }
  assert.deepEqual(seen, [1, 2, 3]);
  await broker.close();
});

test("topics: what is no Standard Schema is refused by topic and type when the broker is made", () => {
  const given: readonly (readonly [unknown, RegExp])[] = [
    [7, /^topics must be an object/],
    [null, /^topics must be an object/],
    [{ orders: null }, /topic "orders" must be an object of event types/],
    [{ orders: { "order.placed": {} } }, /type "order.placed" of topic "orders" must be a Standard Schema/],
    [{ orders: { "order.placed": { "~standard": { vendor: "x" } } } }, /must be a Standard Schema/],
    [{ orders: { "order.placed": null } }, /must be a Standard Schema/],
  ];
  for (const [topics, message] of given) {
    assert.throws(
      () => new MemoryBroker({ source: "/t", topics: topics as never }),
      (error: Error) => isEdaError(error) && error.code === "invalid-option" && message.test(error.message),
    );
  }
  const callable = Object.assign(() => {}, typed<number>());
  new MemoryBroker({ source: "/t", topics: { orders: { n: callable } } });
});
