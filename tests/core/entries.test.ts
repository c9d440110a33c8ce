import assert from "node:assert/strict";
import { connect } from "../../adapters/connect.ts";
import { runOne, TestBroker } from "../../adapters/memory/testing.ts";
import { healthHandler } from "../../core/health_handler.ts";
import { InboundDispatcher, isEdaError, MemoryBroker } from "../../mod.ts";
import { test } from "../support/test.ts";

test("connect: memory by URL, connected; wrong URLs and schemes are refused without being quoted", async () => {
  const broker = await connect("memory:", { source: "/t" });
  assert.equal(broker.healthy, true);
  await broker.publish("a", { type: "t" });
  await broker.close();
  for (const url of ["", "no url", "kafka://user:secret@a:9092", "http://secret.example", "redis//x"]) {
    await assert.rejects(connect(url), (error) => {
      assert.ok(isEdaError(error) && error.code === "invalid-option", String(error));
      assert.ok(!error.message.includes("secret"));
      return true;
    });
  }
  await assert.rejects(
    connect("memory:", { sourze: "/t" } as never),
    (error) => isEdaError(error) && error.message.includes("sourze") && error.message.includes("source"),
  );
});

test("TestBroker: records, fails on demand and drains with handlers", async () => {
  const broker = new TestBroker({ source: "/t" });
  broker.on("orders", async (envelope) => {
    await broker.publish("mails", { type: "mail", subject: envelope.subject! });
  });
  await broker.deliver("orders", { type: "order", subject: "o-1" });
  await broker.deliver("orders", { type: "order", subject: "o-2" });
  assert.equal(await broker.drain(), 2);
  assert.deepEqual(broker.publishedOn("mails").map((e) => e.subject), ["o-1", "o-2"]);
  assert.deepEqual(broker.publishedOn("orders"), []);
  assert.equal(broker.acked.length, 2);
  broker.failNextPublish(new Error("one"), 2);
  await assert.rejects(broker.publish("mails", null as never), (error) => isEdaError(error));
  await assert.rejects(broker.publish("mails", { type: "m" }), /one/);
  await assert.rejects(broker.publish("mails", { type: "m" }), /one/);
  await broker.publish("mails", { type: "m" });
  for (const times of [0, -1, 1.5, true, "3"]) {
    assert.throws(() => broker.failNextPublish(new Error("x"), times as number), (error) => isEdaError(error));
  }
  await broker.close();
});

test("TestBroker: a handler that throws drops its message and ends the drain; the limit is exact", async () => {
  const broker = new TestBroker({ source: "/t" });
  broker.on("a", () => {
    throw new Error("no");
  });
  await broker.deliver("a", { type: "t" });
  await assert.rejects(broker.drain(), /no/);
  assert.equal(broker.nacked.length, 1);
  assert.equal(await broker.drain(), 0);
  broker.on("a", () => {});
  for (let n = 0; n < 3; n++) await broker.deliver("a", { type: "t" });
  assert.equal(await broker.drain(undefined, 3), 3);
  for (let n = 0; n < 3; n++) await broker.deliver("a", { type: "t" });
  await assert.rejects(broker.drain(undefined, 2), (error) => isEdaError(error) && error.message.includes("limit"));
  await broker.close();
});

test("runOne: one message through a dispatcher", async () => {
  const broker = new TestBroker({ source: "/t" });
  const seen: string[] = [];
  const app = new InboundDispatcher({
    broker,
    logger: false,
    routes: { order: (envelope) => void seen.push(envelope.id) },
  });
  const report = await runOne(app, broker, "orders", { type: "order", id: "1" });
  assert.equal(report.processed, 1);
  assert.deepEqual(seen, ["1"]);
  await broker.close();
});

test("healthHandler: 200 while healthy, 503 once closed, JSON without secrets", async () => {
  const broker = new MemoryBroker();
  const handler = healthHandler(broker);
  const get = () => handler(new Request("http://localhost/health"));
  assert.equal(get().status, 200);
  await broker.connect();
  const body = await get().json();
  assert.equal(body.status, "healthy");
  assert.equal(handler(new Request("http://localhost/health", { method: "POST" })).status, 405);
  assert.equal(await handler(new Request("http://localhost/health", { method: "HEAD" })).text(), "");
  await broker.close();
  assert.equal(get().status, 503);
});
