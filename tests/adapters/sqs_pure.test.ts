import assert from "node:assert/strict";
import { sqsCapabilities } from "../../adapters/sqs/capabilities.ts";
import { asError, harmless, plainCode, publishError } from "../../adapters/sqs/errors.ts";
import { batchesOf, Handled, Held, type SqsNative } from "../../adapters/sqs/held.ts";
import { dedupOf, groupOf } from "../../adapters/sqs/ids.ts";
import { SqsBroker, type SqsBrokerOptions } from "../../adapters/sqs/mod.ts";
import { queueNameProblem, queueOf } from "../../adapters/sqs/names.ts";
import { resolveOptions } from "../../adapters/sqs/resolve.ts";
import { entryOf, escapeRefused, isIntact, sizeOf } from "../../adapters/sqs/wire.ts";
import { sha256Hex } from "../../core/digest.ts";
import { isEdaError } from "../../core/errors.ts";
import { test } from "../support/test.ts";

const body = (more: Record<string, unknown> = {}): string =>
  JSON.stringify({ specversion: "1.0", id: "1", source: "/a", type: "t", ...more });

test("queueOf appends .fifo where order is asked for, and never twice", () => {
  const find = (topic: string, ordered?: boolean) => queueOf(topic, { ordered, queues: {} });
  assert.deepEqual(find("orders"), { name: "orders.fifo", fifo: true, standard: "orders" });
  assert.deepEqual(find("orders", true), { name: "orders.fifo", fifo: true });
  assert.deepEqual(find("orders.fifo"), { name: "orders.fifo", fifo: true });
  assert.deepEqual(find("orders", false), { name: "orders", fifo: false });
  assert.deepEqual(find("orders.fifo", false), { name: "orders.fifo", fifo: true });
});

test("queueOf takes names and URLs from queues, and refuses a standard one where order is asked for", () => {
  const url = "https://sqs.eu-central-1.amazonaws.com/123456789012/billing-orders.fifo";
  const queues = { orders: "billing-orders.fifo", mails: url, logs: "logs" };
  assert.deepEqual(queueOf("orders", { ordered: undefined, queues }), { name: "billing-orders.fifo", fifo: true });
  assert.deepEqual(queueOf("mails", { ordered: true, queues }), { name: "billing-orders.fifo", fifo: true, url });
  assert.deepEqual(queueOf("logs", { ordered: false, queues }), { name: "logs", fifo: false });
  assert.throws(() => queueOf("logs", { ordered: undefined, queues }), /standard queue.*ordered: false/);
});

test("queueOf refuses topics that can be no queue's name, and does not quote them", () => {
  for (const topic of ["shop.orders", "a/b", "ü", "x".repeat(76)]) {
    assert.throws(
      () => queueOf(topic, { ordered: true, queues: {} }),
      (error) => isEdaError(error) && error.code === "invalid-option" && !error.message.includes(topic),
    );
  }
  assert.equal(queueNameProblem("x".repeat(75) + ".fifo"), undefined);
});

test("groupOf is the subject where SQS takes it, else its hash; an event without one has its own", () => {
  assert.equal(groupOf("o-1", "e"), "o-1");
  assert.equal(groupOf("a/b?c=#~!{}[]\\^_`|", "e"), "a/b?c=#~!{}[]\\^_`|");
  for (const subject of ["with space", "ü", "x".repeat(129), "😀"]) {
    assert.equal(groupOf(subject, "e"), sha256Hex(subject));
  }
  assert.equal(groupOf(undefined, "e"), "e");
});

test("dedupOf tells events by source and id, and replays by their number", () => {
  assert.equal(dedupOf("/a", "1", undefined), dedupOf("/a", "1", 0));
  const all = [
    dedupOf("/a", "1", undefined),
    dedupOf("/a", "1", 1),
    dedupOf("/a", "1", 2),
    dedupOf("/b", "1", undefined),
  ];
  all.push(dedupOf("/a", "2", undefined));
  assert.equal(new Set(all).size, 5);
  assert.ok(all.every((id) => id.length <= 128));
});

test("entryOf writes body, type, group and deduplication id", () => {
  const text = body({ subject: "s" });
  assert.deepEqual(entryOf({ body: text, subject: "s" }, true), {
    MessageBody: text,
    MessageAttributes: { ce_type: { DataType: "String", StringValue: "t" } },
    MessageGroupId: "s",
    MessageDeduplicationId: dedupOf("/a", "1", undefined),
  });
  const standard = entryOf({ body: text, subject: "s" }, false);
  assert.equal(standard.MessageGroupId ?? standard.MessageDeduplicationId, undefined);
  // Whatever stands in front, and with escapes.
  const odd = '{"id":"\\u0031","type":"a\\"b","source":"/a","specversion":"1.0"}';
  assert.equal(entryOf({ body: odd }, true).MessageDeduplicationId, dedupOf("/a", "1", undefined));
  assert.equal(entryOf({ body: body({ type: "t😀" }) }, true).MessageAttributes, undefined);
});

test("escapeRefused keeps what the JSON says, and leaves nothing that SQS refuses (SQS-09)", () => {
  const data = ["&lt;&apos;", "%E8", "\u0085", "😀", "\u0000", "\ud800", "\ufffe\uffff", "\u2028"];
  const text = `{"data":${JSON.stringify(data).replace("\\ud800", "\\ud800")}}`;
  const escaped = escapeRefused(text);
  assert.deepEqual(JSON.parse(escaped), { data });
  // deno-lint-ignore no-control-regex
  assert.match(escaped, /^[\x09\x0A\x0D\x20-\uD7FF\uE000-\uFFFD]*$/);
  assert.equal(escapeRefused(body()), body());
});

test("sizeOf counts bytes, attributes with names and types included", () => {
  const entry = entryOf({ body: body({ data: "ü" }) }, false);
  assert.equal(
    sizeOf(entry),
    new TextEncoder().encode(entry.MessageBody).length + "ce_type".length + "String".length + 1,
  );
});

test("isIntact compares MD5, and believes where there is none", () => {
  assert.equal(isIntact("a", "0cc175b9c0f1b6a831c399e269772661"), true);
  assert.equal(isIntact("b", "0cc175b9c0f1b6a831c399e269772661"), false);
  assert.equal(isIntact("b", undefined), true);
});

const native = (id: string, group?: string): SqsNative => ({
  receipt: id,
  messageId: id,
  group,
  since: 0,
  state: "held",
});

test("batchesOf keeps a message group together, ten a batch", () => {
  const natives = Array.from({ length: 24 }, (_, n) => native(`${n}`, `g${n % 4}`));
  const batches = batchesOf(natives);
  assert.deepEqual(batches.map((batch) => batch.length), [6, 6, 6, 6]);
  for (const batch of batches) assert.equal(new Set(batch.map(({ group }) => group)).size, 1);
  const single = batchesOf(Array.from({ length: 25 }, (_, n) => native(`${n}`)));
  assert.deepEqual(single.map((batch) => batch.length), [10, 10, 5]);
});

test("Held answers the others of a group, and forgets what is settled", () => {
  const held = new Held();
  const [a, b, c] = [native("a", "g"), native("b", "g"), native("c", "h")];
  for (const one of [a, b, c]) held.add(one);
  assert.deepEqual(held.others(a), [b]);
  held.remove(b);
  assert.deepEqual(held.others(a), []);
  held.add(native("x"));
  assert.deepEqual(held.others(native("y")), []);
});

test("Handled keeps the youngest ten thousand", () => {
  const handled = new Handled();
  for (let n = 0; n < 10_001; n++) handled.add(native(`${n}`));
  assert.deepEqual([handled.has(native("0")), handled.has(native("1")), handled.has(native("10000"))], [
    false,
    true,
    true,
  ]);
});

test("SqsBroker refuses options by name and never quotes a value", () => {
  const secret = "AKIASECRET";
  const wrong: readonly (readonly [SqsBrokerOptions, string])[] = [
    [{ endpoint: `ftp://${secret}` }, "endpoint"],
    [{ endpoint: `http://${secret}:x@host` }, "endpoint"],
    [{ region: `${secret} x` }, "region"],
    [{ ordered: secret as never }, "ordered"],
    [{ create: 1 as never }, "create"],
    [{ visibilityTimeoutMs: 1_500 }, "visibilityTimeoutMs"],
    [{ visibilityTimeoutMs: 43_201_000 }, "visibilityTimeoutMs"],
    [{ waitMs: 500 }, "waitMs"],
    [{ waitMs: 21_000 }, "waitMs"],
    [{ queues: { a: `${secret}/x` } }, "queues"],
    [{ queues: [] as never }, "queues"],
    [{ client: { maxAttempts: 3 } }, "client.maxAttempts"],
    [{ client: { endpoint: secret } }, "client.endpoint"],
    [{ client: secret as never }, "client"],
    [{ client: { credentials: () => {} } }, "client.credentials"],
    [{ url: `sqs://${secret}:pw@host` }, "url"],
    [{ url: `sqs://host?key=${secret}` }, "url"],
    [{ url: `redis://${secret}` }, "url"],
    [{ url: "sqs://host", endpoint: "http://host" }, "endpoint"],
    [{ url: "sqs:?region=a", region: "b" }, "region"],
    [{ visibilityTimeout: 30 } as never, "visibilityTimeout"],
  ];
  for (const [options, name] of wrong) {
    assert.throws(
      () => new SqsBroker(options),
      (error) =>
        isEdaError(error) && error.code === "invalid-option" && error.message.includes(name) &&
        !error.message.includes(secret) && !JSON.stringify(error.details).includes(secret),
      name,
    );
  }
});

test("resolveOptions reads URLs, and cuts the wait to half of the visibility timeout", () => {
  const read = (url: string) => {
    const { endpoint, region } = resolveOptions({ url });
    return [endpoint, region];
  };
  assert.deepEqual(read("sqs:"), [undefined, undefined]);
  assert.deepEqual(read("sqs:?region=eu-central-1"), [undefined, "eu-central-1"]);
  assert.deepEqual(read("sqs://127.0.0.1:4566?region=us-east-1&tls=false"), ["http://127.0.0.1:4566", "us-east-1"]);
  assert.deepEqual(read("sqs://[::1]:4566"), ["https://[::1]:4566", undefined]);
  assert.equal(resolveOptions({}).waitMs, 15_000);
  assert.equal(resolveOptions({ visibilityTimeoutMs: 60_000 }).waitMs, 20_000);
  assert.equal(resolveOptions({ visibilityTimeoutMs: 3_000 }).waitMs, 1_000);
});

test("sqsCapabilities say what a queue can do", () => {
  const fifo = sqsCapabilities({ ordered: undefined, maxBytes: 10 });
  assert.deepEqual([fifo.ordering, fifo.groups, fifo.dedupWindowMs, fifo.maxBytes], ["subject", false, 300_000, 10]);
  const standard = sqsCapabilities({ ordered: false, maxBytes: 100_000_000 });
  assert.deepEqual([standard.ordering, standard.dedupWindowMs, standard.maxBytes], ["none", 0, 1_048_576]);
});

/** As the SDK makes them. */
const answered = (name: string, status: number): Error =>
  Object.assign(new Error("secret text with https://host/queue"), {
    name,
    $fault: status < 500 ? "client" : "server",
    $metadata: { httpStatusCode: status },
  });

test("asError tells apart what was refused, what was not sent and what is unknown", () => {
  const codes = (error: unknown): string[] => [asError("ReceiveMessage", error).code, publishError(error).code];
  const socket = (code: string): Error => Object.assign(new Error(`connect ${code} host`), { code });
  const cases: readonly (readonly [unknown, string, string])[] = [
    [answered("AccessDeniedException", 403), "authentication-failed", "authentication-failed"],
    [answered("InvalidClientTokenId", 403), "authentication-failed", "authentication-failed"],
    [
      Object.assign(new Error("x"), { name: "CredentialsProviderError" }),
      "authentication-failed",
      "authentication-failed",
    ],
    [answered("ExpiredToken", 403), "broker-unavailable", "broker-unavailable"],
    [answered("RequestThrottled", 400), "broker-unavailable", "broker-unavailable"],
    [answered("Whatever", 503), "broker-unavailable", "broker-unavailable"],
    [answered("InternalFailure", 500), "outcome-unknown", "outcome-unknown"],
    [answered("InvalidParameterValue", 400), "broker-unavailable", "publish-refused"],
    [socket("ECONNREFUSED"), "broker-unavailable", "broker-unavailable"],
    [Object.assign(new AggregateError([socket("ECONNREFUSED")]), {}), "broker-unavailable", "broker-unavailable"],
    [socket("ECONNRESET"), "outcome-unknown", "outcome-unknown"],
    [
      Object.assign(new Error("Requires sys access"), { name: "NotCapable" }),
      "broker-unavailable",
      "broker-unavailable",
    ],
    [new Error("Region is missing"), "invalid-option", "invalid-option"],
    [undefined, "outcome-unknown", "outcome-unknown"],
  ];
  for (const [error, read, publish] of cases) assert.deepEqual(codes(error), [read, publish], String(error));
});

test("harmless keeps name, code and status, and no text of the SDK", () => {
  const error = harmless(answered("com.amazonaws.sqs#OverLimit", 403));
  assert.equal(`${error.name}: ${error.message}`, "OverLimit: OverLimit, HTTP status 403");
  assert.equal(plainCode("AWS.SimpleQueueService.NonExistentQueue"), "QueueDoesNotExist");
});
