import assert from "node:assert/strict";
import { z } from "zod";
import type { BrokerAdapter } from "../../core/contract.ts";
import { type AnyTopics, defineTopics, type EnvelopeOf, type InitOf, isTypedOnly, typed } from "../../core/topics.ts";
import { test } from "../support/test.ts";

const topics = defineTopics({
  orders: {
    "shop.order.placed": z.object({ total: z.number(), at: z.string().transform((text) => new Date(text)) }),
    "shop.order.cancelled": typed<{ why: string }>(),
  },
  mails: { "shop.mail.requested": typed<{ to: string }>(), "shop.mail.flushed": typed<undefined>() },
});
type Declared = typeof topics;

/** Compiles only where A and B are the same type. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true : false;
function same<A, B>(_: Same<A, B>): void {}

/** Never called: its body is what the compiler must accept and refuse. */
async function face(broker: BrokerAdapter<Declared>, untyped: BrokerAdapter): Promise<void> {
  const placed = await broker.publish("orders", {
    type: "shop.order.placed",
    subject: "o-1",
    data: { total: 42, at: "2026" },
  });
  if (placed.type === "shop.order.placed") same<typeof placed.data, { total: number; at: Date }>(true);
  await broker.publish("orders", { type: "shop.order.cancelled", data: { why: "x" }, extensions: { tenant: "a" } });
  await broker.publishAll("mails", [{ type: "shop.mail.requested", data: { to: "a" } }]);
  // @ts-expect-error wrong payload
  await broker.publish("orders", { type: "shop.order.placed", data: { total: "x", at: "2026" } });
  // @ts-expect-error the schema's input is published, not its output
  await broker.publish("orders", { type: "shop.order.placed", data: { total: 1, at: new Date() } });
  // @ts-expect-error unknown topic
  await broker.publish("ordres", { type: "shop.order.placed", data: { total: 1, at: "2026" } });
  // @ts-expect-error type of another topic
  await broker.publish("mails", { type: "shop.order.placed", data: { total: 1, at: "2026" } });
  // @ts-expect-error unknown member
  await broker.publish("mails", { type: "shop.mail.requested", data: { to: "a" }, sujbect: "x" });
  await broker.publish("mails", { type: "shop.mail.flushed" });
  // @ts-expect-error data left out
  await broker.publish("mails", { type: "shop.mail.requested" });
  // @ts-expect-error wrong payload in a batch
  await broker.publishAll("mails", [{ type: "shop.mail.requested", data: { to: 1 } }]);
  for await (const delivery of broker.subscribe("orders")) {
    const envelope = delivery.envelope;
    await broker.publish("orders", envelope);
    if (envelope.type === "shop.order.placed") {
      same<typeof envelope.data, { total: number; at: Date }>(true);
      // @ts-expect-error of the other type
      envelope.data.why;
    } else same<typeof envelope.data, { why: string }>(true);
    // @ts-expect-error read only
    envelope.id = "x";
    await broker.ack(delivery);
    await broker.nack(delivery, { delayMs: 5 });
  }
  // @ts-expect-error unknown topic
  broker.subscribe("nope");
  const any = await untyped.publish("whatever", { type: "anything", data: { a: 1 } });
  same<typeof any.data, unknown>(true);
  for await (const { envelope } of untyped.subscribe("whatever")) same<typeof envelope.type, string>(true);
  const general: BrokerAdapter<Declared>["topics"] = topics;
  void general;
}

test("defineTopics: returns what it is given and carries its types", () => {
  same<
    EnvelopeOf<Declared>["type"],
    "shop.order.placed" | "shop.order.cancelled" | "shop.mail.requested" | "shop.mail.flushed"
  >(true);
  same<EnvelopeOf<Declared, "orders">["data"], { total: number; at: Date } | { why: string }>(true);
  same<InitOf<Declared, "orders">["data"], { total: number; at: string } | { why: string }>(true);
  same<EnvelopeOf<AnyTopics>["data"], unknown>(true);
  assert.equal(typeof face, "function");
  assert.deepEqual(Object.keys(topics), ["orders", "mails"]);
  const given = { a: { b: typed<number>() } };
  assert.equal(defineTopics(given), given);
});

test("typed: checks nothing, and says so", async () => {
  const schema = typed<{ to: string }>();
  assert.ok(isTypedOnly(schema));
  assert.ok(!isTypedOnly(topics.orders["shop.order.placed"]));
  assert.deepEqual(await schema["~standard"].validate(5), { value: 5 });
});
