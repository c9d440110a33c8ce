import assert from "node:assert/strict";
import type { HeadersSlice } from "../../adapters/nats/client.ts";
import type { NatsNative } from "../../adapters/nats/context.ts";
import { connectError, harmless, publishRefusal, refusal } from "../../adapters/nats/errors.ts";
import { ApiRefusal } from "../../adapters/nats/errors.ts";
import { NatsJetStreamBroker } from "../../adapters/nats/mod.ts";
import { nameOf, partitionOf, tokenOf, TopicNames } from "../../adapters/nats/names.ts";
import { Progress } from "../../adapters/nats/progress.ts";
import { resolveOptions } from "../../adapters/nats/resolve.ts";
import { nak } from "../../adapters/nats/settles.ts";
import { bodyOf, messageId, placeOf } from "../../adapters/nats/wire.ts";
import { isEdaError } from "../../core/errors.ts";
import { test } from "../support/test.ts";

/** Reads a name back, as an operator would. */
const decoded = (name: string): string => decodeURIComponent(name.replaceAll("%", "%25").replaceAll("=", "%"));

test("tokenOf: as the reference system writes it, whatever stands in the subject", () => {
  assert.equal(tokenOf("a.b *>c d"), "a_b___c_d");
  assert.equal(tokenOf("o-1"), "o-1");
  assert.equal(tokenOf(undefined), "_");
  assert.equal(tokenOf(""), "_");
  assert.equal(tokenOf("é😀"), "é😀");
});

test("tokenOf: a long subject is cut, and told apart from its like", () => {
  const long = "x".repeat(1_000);
  assert.ok(tokenOf(`${long}1`).length <= 128);
  assert.notEqual(tokenOf(`${long}1`), tokenOf(`${long}2`));
  assert.ok(tokenOf("😀".repeat(500)).isWellFormed());
});

test("nameOf: what servers take stays as it is, the rest can be read back", () => {
  for (const name of ["orders", "orders:eu", "a-b_c", "ünï", "100%"]) assert.equal(nameOf("topic", name), name);
  for (const name of ["a.b", "a b", "a*", ">", "a/b\\c", "a=2E", "$JS", "tab\t", " "]) {
    const escaped = nameOf("topic", name);
    assert.doesNotMatch(escaped, /[.*>\s/\\]|^\$/);
    assert.equal(decoded(escaped), name);
  }
  assert.throws(
    () => nameOf("group", "x".repeat(231)),
    (error) => isEdaError(error) && error.code === "invalid-option",
  );
});

test("TopicNames: a durable belongs to its own group and partition alone", () => {
  const names = new TopicNames("orders", 12);
  assert.equal(names.durable("billing", 1, 7), "billing-1-7");
  assert.equal(names.generation("billing-1-7", "billing", 1), 7);
  assert.equal(names.generation("billing-11-7", "billing", 1), undefined);
  assert.equal(names.generation("billing-1-7-8", "billing", 1), undefined);
  assert.equal(names.generation("billing", "billing", 1), undefined);
});

test("partitionOf: even, and the same for ever", () => {
  const counts = new Array<number>(8).fill(0);
  for (let n = 0; n < 8_000; n++) counts[partitionOf(`s${n}`, 8)]!++;
  assert.ok(counts.every((count) => count > 850 && count < 1_150), counts.join(" "));
  assert.deepEqual(["a", "b", "o-1", "", "é"].map((subject) => partitionOf(subject, 8)), [2, 6, 4, 2, 6]);
});

test("messageId: names the event, however its text is written, and each replay apart", () => {
  const plain = '{"specversion":"1.0","id":"1","source":"/a","type":"t"}';
  const other = '{"type":"t","source":"/a","id":"1","specversion":"1.0"}';
  const escaped = '{"specversion":"1.0","id":"1","source":"\\u002fa","type":"t"}';
  assert.equal(messageId(plain, undefined), messageId(other, undefined));
  assert.equal(messageId(plain, undefined), messageId(escaped, undefined));
  const ids = [
    messageId(plain, undefined),
    messageId(plain, 1),
    messageId(plain, 2),
    messageId(plain.replace("/a", "/b"), undefined),
    messageId(plain.replace('"1",', '"2",'), undefined),
  ];
  assert.equal(new Set(ids).size, 5);
});

test("placeOf: reads what all servers write, and nothing else", () => {
  assert.deepEqual(placeOf("$JS.ACK.orders.billing.3.17.40.1700000000.2"), { seq: 17, delivered: 3 });
  assert.deepEqual(placeOf("$JS.ACK.hub.HASH.orders.billing.3.17.40.1700000000.2"), { seq: 17, delivered: 3 });
  assert.deepEqual(placeOf("$JS.ACK._.HASH.orders.billing.1.9.9.1700000000.0.token"), { seq: 9, delivered: 1 });
  for (const reply of [undefined, "", "_INBOX.x", "$JS.ACK.orders", "$JS.ACK.a.b.c.d.e.f.g"]) {
    assert.equal(placeOf(reply), undefined);
  }
});

test("nak: the delay is in the server's unit", () => {
  assert.equal(nak(0), "-NAK");
  assert.equal(nak(1_500), '-NAK {"delay":1500000000}');
});

/** Headers as the client hands them out. */
function headers(values: Readonly<Record<string, string>>): HeadersSlice {
  return {
    code: 0,
    description: "",
    get: (name) => values[name] ?? "",
    set: () => {},
    *[Symbol.iterator]() {
      for (const [name, value] of Object.entries(values)) yield [name, [value]] as [string, string[]];
    },
  };
}

test("bodyOf: a structured event is passed on as it is, a binary one is put together", () => {
  const utf8 = new TextEncoder();
  const data = utf8.encode('{"a":1}');
  const message = (head: Record<string, string>, bytes = data) => ({
    subject: "t.a",
    data: bytes,
    headers: headers(head),
  });
  assert.equal(bodyOf({ subject: "t.a", data }), data);
  assert.equal(bodyOf(message({ "content-type": "application/cloudevents+json" })), data);
  const attributes = { "ce-specversion": "1.0", "CE-id": "1", "ce-source": "/a", "ce-type": "t" };
  const head = { specversion: "1.0", id: "1", source: "/a", type: "t" };
  const json = { ...attributes, "content-type": "application/json" };
  assert.deepEqual(JSON.parse(bodyOf(message(json)) as string), {
    ...head,
    datacontenttype: "application/json",
    data: { a: 1 },
  });
  const text = { ...attributes, "content-type": "text/plain" };
  assert.deepEqual(JSON.parse(bodyOf(message(text, utf8.encode('say "x"'))) as string).data, 'say "x"');
  const bytes = { ...attributes, "content-type": "image/png" };
  assert.equal(JSON.parse(bodyOf(message(bytes, new Uint8Array([255, 0]))) as string).data_base64, "/wA=");
  assert.deepEqual(JSON.parse(bodyOf(message(attributes, new Uint8Array(0))) as string), head);
});

const native = (seq: number): NatsNative => ({ partition: 0, epoch: 1, seq, reply: `r${seq}`, settled: false });

test("Progress: the floor follows what is settled in order, runs behind it are kept for the next owner", () => {
  const progress = new Progress();
  progress.begin({ floor: 10, done: [] });
  const natives = [11, 12, 13, 15, 16, 20].map(native);
  for (const one of natives) assert.equal(progress.arrived(one, false), "new");
  assert.deepEqual(progress.snapshot(), { floor: 10, done: [] });
  progress.settle([natives[1]!, natives[2]!, natives[3]!, natives[5]!]);
  assert.deepEqual(progress.snapshot(), { floor: 10, done: [[12, 15], [20, 20]] });
  assert.equal(progress.held, 2);
  progress.settle([natives[0]!]);
  assert.deepEqual(progress.snapshot(), { floor: 15, done: [[20, 20]] });
  progress.settle([natives[4]!]);
  assert.deepEqual(progress.snapshot(), { floor: 20, done: [] });
});

test("Progress: what the owner before had settled is not handed out, and is handed on where it did not come again", () => {
  const progress = new Progress();
  progress.begin({ floor: 5, done: [[7, 8], [10, 12], [30, 40]] });
  const arrivals = [6, 7, 8, 9, 10].map((seq) => progress.arrived(native(seq), false));
  assert.deepEqual(arrivals, ["new", "settled", "settled", "new", "settled"]);
  assert.equal(progress.held, 2);
  assert.deepEqual(progress.snapshot(), { floor: 5, done: [[7, 8], [10, 10], [10, 12], [30, 40]] });
});

test("Progress: what another durable delivers again is known, and settled where it goes now", () => {
  const progress = new Progress();
  progress.begin({ floor: 0, done: [] });
  const natives = [1, 2, 3].map(native);
  for (const one of natives) progress.arrived(one, false);
  progress.settle([natives[1]!]);
  progress.again();
  const again = [1, 2, 3].map((seq) => ({ ...native(seq), reply: `new${seq}` }));
  assert.deepEqual(again.map((one) => progress.arrived(one, false)), ["held", "settled", "held"]);
  assert.deepEqual(natives.map(({ reply }) => reply), ["new1", "new2", "new3"]);
  assert.equal(progress.arrived(native(4), false), "new");
  assert.equal(progress.held, 3);
});

test("NatsJetStreamBroker: options are refused by name, and no value is shown", () => {
  const refused = (options: object, name: string, text: RegExp = /must/): void => {
    assert.throws(
      () => new NatsJetStreamBroker(options),
      (error) =>
        isEdaError(error) && error.code === "invalid-option" && error.message.includes(name) &&
        text.test(error.message) &&
        !/secret|9999999/.test(error.message),
    );
  };
  refused({ url: "http://secret" }, "url");
  refused({ url: "redis://secret" }, "url");
  refused({ url: "nats://u:secret@a/path" }, "url");
  refused({ url: "nats://a?tls=secret" }, "url");
  refused({ ackWaitMs: 9999999999 }, "ackWaitMs", /from 100 to 86,400,000/);
  refused({ partitions: 0 }, "partitions");
  refused({ ordered: "secret" }, "ordered");
  refused({ create: 1 }, "create");
  refused({ storage: "secret" }, "storage");
  refused({ replicas: 6 }, "replicas");
  refused({ bucket: "sec.ret" }, "bucket");
  refused({ domain: "a.secret" }, "domain");
  refused({ client: { reconnect: true } }, "client.reconnect", /set by the transport/);
  refused({ client: "secret" }, "client");
  refused({ ackWait: 1 }, "ackWait", /unknown option.*ackWaitMs/);
  refused({ client: { authenticator: () => {} } }, "client.authenticator", /clientModule/);
});

test("resolveOptions: a URL with several hosts, user and password", () => {
  const { servers, user, password, tls } = resolveOptions({ url: "tls://u%40:p%3A@a,b:4333,[::1]:4444" });
  assert.deepEqual([servers, user, password, tls], [["a:4222", "b:4333", "[::1]:4444"], "u@", "p:", true]);
  assert.deepEqual(resolveOptions({}).servers, ["127.0.0.1:4222"]);
});

test("errors of the client and the server go on without what they quote", () => {
  const quoting = Object.assign(new Error('Permissions Violation for Publish to "orders.secret"'), {
    name: "PermissionViolationError",
  });
  const cause = Object.assign(new Error("connect ECONNREFUSED 10.0.0.9:4222"), { code: "ECONNREFUSED" });
  for (
    const error of [
      harmless(quoting),
      connectError(Object.assign(new Error("getaddrinfo ENOTFOUND secret.host"), { code: "ENOTFOUND" })),
      connectError(new Error("connection refused", { cause })),
      refusal("a call", new ApiRefusal(400, 10_052, "filter subject 'orders.secret' is not a valid one")),
      publishRefusal(new ApiRefusal(503, 10_077, 'cannot write "secret"')),
    ]
  ) {
    const shown = `${error.message} ${String(error.cause)} ${JSON.stringify(error)}`;
    assert.doesNotMatch(shown, /secret|10\.0\.0\.9/);
  }
  assert.equal(connectError(quoting).code, "broker-unavailable");
  assert.equal(
    connectError(Object.assign(new Error("x"), { name: "AuthorizationError" })).code,
    "authentication-failed",
  );
});
