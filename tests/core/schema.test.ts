import assert from "node:assert/strict";
import { z } from "zod";
import { createEnvelope, textOf } from "../../core/codec.ts";
import type { Envelope } from "../../core/envelope.ts";
import { type EdaError, EnvelopeCorruptError, InvalidOptionError, SchemaInvalidError } from "../../core/errors.ts";
import {
  createSchemaGate,
  incomingSchema,
  outgoingSchema,
  validateIncoming,
  validateOutgoing,
} from "../../core/schema.ts";
import { type AnyTopics, defineTopics, type Schema, type SchemaResult, typed } from "../../core/topics.ts";
import { test } from "../support/test.ts";

/** A schema from a plain function. */
function schema(validate: (value: unknown) => SchemaResult<unknown> | Promise<SchemaResult<unknown>>): Schema {
  return { "~standard": { version: 1, vendor: "test", validate } };
}

const quoting = schema((value) => ({ issues: [{ message: `expected number, received ${JSON.stringify(value)}` }] }));
const total = z.object({ total: z.coerce.number(), note: z.string().default("none") });
const topics = defineTopics({
  orders: {
    "order.placed": total,
    "order.checked": schema((value) => Promise.resolve().then(() => total["~standard"].validate(value))),
    "order.cancelled": typed<{ why: string }>(),
    "order.quoted": quoting,
    "order.throws": schema(() => {
      throw new Error("hush");
    }),
    "order.rejects": schema(() => Promise.reject(new Error("hush"))),
  },
  mails: {},
});

function envelope(type: string, data: unknown): Envelope {
  return createEnvelope({ type, data }, { source: "/s", now: () => 0, nextId: () => "1" }, 100_000);
}

function failure<E extends EdaError>(kind: new (...args: never[]) => E, run: () => unknown): E {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof kind, String(error));
    return error;
  }
  assert.fail("it was accepted");
}

test("validateOutgoing: accepts what passes, at once for a sync schema, later for an async one", async () => {
  assert.equal(validateOutgoing(topics, "orders", "order.placed", { total: "5" }), undefined);
  const later = validateOutgoing(topics, "orders", "order.checked", { total: 5 });
  assert.ok(later instanceof Promise);
  assert.equal(await later, undefined);
  assert.equal(validateOutgoing(topics, "orders", "order.cancelled", "anything"), undefined);
});

test("validateOutgoing: leaves the input as it is", () => {
  const data = Object.freeze({ total: "5" });
  validateOutgoing(topics, "orders", "order.placed", data);
  assert.deepEqual(data, { total: "5" });
});

test("validateOutgoing: refuses with path and message, never the value", async () => {
  const error = failure(
    SchemaInvalidError,
    () => validateOutgoing(topics, "orders", "order.placed", { total: "hush", note: 5 }),
  );
  assert.match(error.message, /"order\.placed" on topic "orders".*data\.total: .*\(and 1 more\)/);
  assert.ok(!error.message.includes("hush"));
  assert.deepEqual(error.details, { attribute: "data", path: "data.total", topic: "orders", type: "order.placed" });
  await assert.rejects(async () => await validateOutgoing(topics, "orders", "order.checked", 5), SchemaInvalidError);
});

test("validateOutgoing: masks values that a schema's message quotes, and cuts the message", () => {
  const long = "secret".repeat(50);
  for (const data of ["hush", { a: ["hush", 12345] }, `say "hush"\n`, long, 12345]) {
    const { message } = failure(SchemaInvalidError, () => validateOutgoing(topics, "orders", "order.quoted", data));
    assert.ok(!/hush|12345|secretsecret/.test(message), message);
    assert.match(message, /expected number, received/);
  }
  const wordy = defineTopics({ a: { b: schema(() => ({ issues: [{ message: "x".repeat(5000) }] })) } });
  assert.ok(failure(SchemaInvalidError, () => validateOutgoing(wordy, "a", "b", 1)).message.length < 400);
  const cyclic: Record<string, unknown> = {};
  cyclic["self"] = [cyclic, cyclic];
  const cycles = defineTopics({
    a: { b: schema(() => ({ issues: [{ message: "no", path: [{ key: "self" }, 0] }] })) },
  });
  assert.match(
    failure(SchemaInvalidError, () => validateOutgoing(cycles, "a", "b", cyclic)).message,
    /data\.self\[0\]: no/,
  );
});

test("validateOutgoing: a schema that throws or rejects refuses, with the error as cause", async () => {
  const error = failure(SchemaInvalidError, () => validateOutgoing(topics, "orders", "order.throws", 1));
  assert.equal((error.cause as Error).message, "hush");
  assert.ok(!error.message.includes("hush"));
  await assert.rejects(async () => await validateOutgoing(topics, "orders", "order.rejects", 1), SchemaInvalidError);
});

test("a schema that answers no result refuses instead of leaving its reader waiting", async () => {
  for (const answer of [undefined, null, true, Promise.resolve(undefined)]) {
    const odd = defineTopics({ orders: { odd: schema(() => answer as never) } });
    await assert.rejects(async () => await validateOutgoing(odd, "orders", "odd", 1), SchemaInvalidError);
    await assert.rejects(async () => await validateIncoming(odd, "orders", envelope("odd", 1)), EnvelopeCorruptError);
  }
});

test("validateOutgoing: refuses what is not declared, naming both and what is known", () => {
  const topic = failure(InvalidOptionError, () => validateOutgoing(topics, "ordres", "order.placed", 1));
  assert.match(
    topic.message,
    /topic "ordres" is not declared; declared are "orders", "mails"; did you mean "orders"\?/,
  );
  const type = failure(InvalidOptionError, () => validateOutgoing(topics, "orders", "order.place", 1));
  assert.match(
    type.message,
    /type "order\.place" is not declared in topic "orders"; it has "order\.placed".*did you mean/,
  );
  assert.match(failure(InvalidOptionError, () => validateOutgoing(topics, "mails", "x", 1)).message, /it has none/);
  for (const name of ["constructor", "__proto__", "toString"]) {
    failure(InvalidOptionError, () => validateOutgoing(topics, name, "order.placed", 1));
    failure(InvalidOptionError, () => validateOutgoing(topics, "orders", name, 1));
  }
});

test("validateOutgoing: without topics everything passes", () => {
  const none: AnyTopics = {};
  for (const given of [undefined, none]) assert.equal(validateOutgoing(given, "any", "thing", 1), undefined);
});

test("validateIncoming: hands out the schema's output and keeps the text", async () => {
  for (const type of ["order.placed", "order.checked"]) {
    const sent = envelope(type, { total: "5" });
    const received = await validateIncoming(topics, "orders", sent);
    assert.deepEqual(received.data, { total: 5, note: "none" });
    assert.equal(textOf(received), textOf(sent));
  }
  assert.ok(!(validateIncoming(topics, "orders", envelope("order.placed", { total: 1 })) instanceof Promise));
});

test("validateIncoming: what has no schema passes as it is, its data unread", () => {
  for (
    const [topic, type] of [["orders", "order.cancelled"], ["orders", "order.other"], ["other", "x"], [
      "mails",
      "x",
    ]] as const
  ) {
    const sent = envelope(type, { total: "x" });
    assert.equal(validateIncoming(topics, topic, sent), sent);
  }
  const unread = new Proxy(envelope("x", 1), {
    get(target, name): unknown {
      assert.notEqual(name, "data");
      return Reflect.get(target, name);
    },
  });
  assert.equal(validateIncoming(undefined, "orders", unread), unread);
});

test("validateIncoming: what does not pass is corrupt, with reason schema and without the value", async () => {
  const error = failure(
    EnvelopeCorruptError,
    () => validateIncoming(topics, "orders", envelope("order.placed", { total: "hush" })),
  );
  assert.equal(error.reason, "schema");
  assert.deepEqual(error.details, {
    attribute: "data",
    path: "data.total",
    topic: "orders",
    type: "order.placed",
    reason: "schema",
  });
  assert.ok(!error.message.includes("hush"));
  await assert.rejects(
    async () => await validateIncoming(topics, "orders", envelope("order.checked", 1)),
    EnvelopeCorruptError,
  );
  await assert.rejects(
    async () => await validateIncoming(topics, "orders", envelope("order.rejects", 1)),
    EnvelopeCorruptError,
  );
  failure(EnvelopeCorruptError, () => validateIncoming(topics, "orders", envelope("order.throws", 1)));
});

test("outgoingSchema, incomingSchema: answer the schema to run, or that there is none", () => {
  assert.equal(outgoingSchema(topics, "orders", "order.placed"), topics.orders["order.placed"]);
  assert.equal(outgoingSchema(topics, "orders", "order.cancelled"), undefined);
  assert.equal(incomingSchema(topics, "orders", "order.placed"), topics.orders["order.placed"]);
  assert.equal(incomingSchema(topics, "orders", "constructor"), undefined);
  assert.equal(incomingSchema(topics, "constructor", "name"), undefined);
  assert.equal(incomingSchema(undefined, "orders", "order.placed"), undefined);
});

test("createSchemaGate: lets out and in what passes, undefined where there is nothing to wait for", async () => {
  const gate = createSchemaGate(topics);
  assert.equal(gate.outgoing("orders", envelope("order.placed", { total: 5 })), undefined);
  assert.equal(gate.outgoing("orders", envelope("order.cancelled", 5)), undefined);
  assert.equal(await gate.outgoing("orders", envelope("order.checked", { total: 5 })), undefined);
  failure(SchemaInvalidError, () => gate.outgoing("orders", envelope("order.placed", 5)));
  failure(InvalidOptionError, () => gate.outgoing("orders", envelope("order.other", 5)));
  await assert.rejects(async () => await gate.outgoing("orders", envelope("order.checked", 5)), SchemaInvalidError);

  assert.equal(gate.incoming("orders", envelope("order.other", 5)), undefined);
  assert.equal(gate.incoming("other", envelope("order.placed", 5)), undefined);
  assert.deepEqual((await gate.incoming("orders", envelope("order.placed", { total: 5 })))?.data, {
    total: 5,
    note: "none",
  });
  const refused = gate.incoming("orders", envelope("order.placed", 5));
  assert.ok(refused instanceof Promise, "it never throws by itself");
  await assert.rejects(refused, EnvelopeCorruptError);
  const none = createSchemaGate({});
  assert.equal(none.outgoing("any", envelope("x", 1)), undefined);
  assert.equal(none.incoming("any", envelope("x", 1)), undefined);
});
