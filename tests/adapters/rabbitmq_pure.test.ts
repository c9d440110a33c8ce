import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { RabbitMqBroker } from "../../adapters/rabbitmq/mod.ts";
import { channelFailure, harmless, inequivalent, openFailure } from "../../adapters/rabbitmq/errors.ts";
import { groupNames, topicNames } from "../../adapters/rabbitmq/names.ts";
import { resolveOptions } from "../../adapters/rabbitmq/resolve.ts";
import { bodyOf, CONTENT_TYPE, deliveriesOf, propertiesOf, short } from "../../adapters/rabbitmq/wire.ts";
import type { MessageSlice } from "../../adapters/rabbitmq/client.ts";
import { connect } from "../../adapters/connect.ts";
import { decodeEnvelope } from "../../core/codec.ts";
import type { EdaError } from "../../core/errors.ts";
import { test } from "../support/test.ts";

function message(content: string, properties: MessageSlice["properties"], redelivered = false): MessageSlice {
  return {
    fields: { deliveryTag: 1, redelivered, exchange: "", routingKey: "" },
    properties,
    content: Buffer.from(content),
  };
}

test("rabbitmq wire: properties come from the head of the text, whatever stands in the data", () => {
  const tricky =
    '{"specversion":"1.0","id":"a\\",\\"data\\":","source":"/s","type":"t","subject":"x","data":{"id":"no","data":1}}';
  const { messageId, type, headers } = propertiesOf({ body: tricky, subject: "x" });
  assert.deepEqual({ messageId, type, headers }, { messageId: 'a","data":', type: "t", headers: { ce_subject: "x" } });
  const bare = propertiesOf({ body: '{"specversion":"1.0","id":"1","source":"/s","type":"t"}' });
  assert.deepEqual([bare.messageId, bare.type, bare.headers], ["1", "t", { ce_subject: "" }]);
  const bytes = propertiesOf({ body: '{"specversion":"1.0","id":"2","source":"/s","type":"t","data_base64":"AA=="}' });
  assert.equal(bytes.messageId, "2");
});

test("rabbitmq wire: what exceeds 255 bytes is named by its digest, up to 255 bytes by itself", () => {
  assert.equal(short("x".repeat(255)), "x".repeat(255));
  assert.match(short("x".repeat(256)), /^sha256:[0-9a-f]{64}$/);
  assert.match(short("é".repeat(128)), /^sha256:/);
  assert.equal(short("é".repeat(127)), "é".repeat(127));
  assert.notEqual(short("é".repeat(128)), short("é".repeat(129)));
});

test("rabbitmq wire: the delivery count is the queue's, and only of what it delivered before", () => {
  const headers = { "x-delivery-count": 7 };
  assert.equal(deliveriesOf(message("", { headers }), true), 0);
  assert.equal(deliveriesOf(message("", { headers }, true), true), 7);
  assert.equal(deliveriesOf(message("", { headers }, true), false), 1);
  assert.equal(deliveriesOf(message("", { headers: { "x-delivery-count": "7" } }, true), true), 1);
  assert.equal(deliveriesOf(message("", {}, true), true), 1);
});

test("rabbitmq wire: binary mode is read as the event that it is, structured mode as the bytes that came", () => {
  const structured = message('{"a":1}', { contentType: CONTENT_TYPE, headers: { ce_subject: "" } });
  assert.equal(bodyOf(structured), structured.content);
  for (const separator of [":", "_"]) {
    const name = (attribute: string): string => `cloudEvents${separator}${attribute}`;
    const attributes = { [name("specversion")]: "1.0", [name("id")]: "1", [name("source")]: "/s", [name("type")]: "t" };
    const headers = { ...attributes, [name("subject")]: "o-1", [name("flag")]: true, other: "x" };
    const read = (content: string | Uint8Array, contentType?: string) =>
      decodeEnvelope(
        bodyOf({ ...message("", { contentType, headers }), content: Buffer.from(content as string) }),
        { maxBytes: 10_000 },
      );
    const json = read('{"total":9007199254740993}', "application/json");
    assert.deepEqual([json.id, json.subject, json.extensions["flag"], json.datacontenttype], [
      "1",
      "o-1",
      true,
      "application/json",
    ]);
    assert.equal(read("plain ü", "text/plain").data, "plain ü");
    assert.deepEqual(read(new Uint8Array([0, 255]), "application/octet-stream").data, new Uint8Array([0, 255]));
    assert.equal(read("").data, undefined);
    assert.throws(() => read("{broken", "application/json"), (error: EdaError) => error.code === "envelope-corrupt");
  }
});

test("rabbitmq names: of topics, partitions and groups, without a collision", () => {
  const one = resolveOptions({});
  assert.deepEqual(topicNames("orders", one), {
    exchange: "orders",
    partitions: "orders::partitions",
    firstGroup: "orders::group",
    first: { queues: ["orders"] },
  });
  assert.deepEqual(groupNames("orders", "billing", one).queues, ["orders::billing"]);
  const two = resolveOptions({ partitions: 2 });
  assert.deepEqual(groupNames("orders", "billing", two), {
    queues: ["orders::billing::0", "orders::billing::1"],
    hash: "orders::billing::hash",
  });
  const given = resolveOptions({ exchange: "events", bindings: ["order.*"] });
  assert.deepEqual(topicNames("orders", given), { exchange: "events", partitions: "orders::partitions" });
  const shared = resolveOptions({ compat: "reference", ordered: false });
  assert.deepEqual(topicNames("orders", shared), { exchange: "", first: { queues: ["orders"] } });
});

test("rabbitmq options: what is unknown, wrong or contradicts itself is refused by name, without its value", () => {
  const refused = (options: object, name: string): void => {
    assert.throws(
      () => new RabbitMqBroker(options as never),
      (error: EdaError) =>
        error.code === "invalid-option" && error.message.includes(name) && !error.message.includes("s3cret"),
      JSON.stringify(options),
    );
  };
  refused({ prefetchCount: 1 }, "prefetchCount");
  refused({ url: "http://s3cret" }, "url");
  refused({ url: "amqp://u:s3cret@h/?heartbeat=5" }, "heartbeat");
  refused({ ordered: "s3cret" }, "ordered");
  refused({ partitions: 0 }, "partitions");
  refused({ partitions: 129 }, "partitions");
  refused({ compat: "s3cret" }, "compat");
  refused({ compat: "reference" }, "ordered");
  refused({ compat: "reference", ordered: false, partitions: 2 }, "partitions");
  refused({ bindings: ["a"] }, "exchange");
  refused({ exchange: "x".repeat(256) }, "exchange");
  refused({ exchange: "x", bindings: [] }, "bindings");
  refused({ deadLetterExchange: "" }, "deadLetterExchange");
  refused({ queueType: "stream" }, "queueType");
  refused({ queueArguments: { "x-queue-type": "classic" } }, "queueArguments.x-queue-type");
  refused({ queueArguments: { "x-max-length": { s3cret: 1 } } }, "queueArguments.x-max-length");
  refused({ heartbeatMs: 999 }, "heartbeatMs");
  refused({ consumerTimeoutMs: 0 }, "consumerTimeoutMs");
  refused({ client: { recovery: true } }, "client.recovery");
  refused({ client: { lookup: 1 } }, "client.lookup");
});

test("rabbitmq options: a virtual host, user and password are taken from the URL, decoded once", () => {
  const [server] = resolveOptions({ url: "amqps://a%40b:p%2Fw@host/my%2Fhost" }).servers;
  assert.deepEqual(server, {
    protocol: "amqps",
    hostname: "host",
    port: 5671,
    username: "a@b",
    password: "p/w",
    vhost: encodeURIComponent("my/host"),
    heartbeat: 20,
  });
  const several = resolveOptions({ url: "amqp://one,two:5673" }).servers;
  assert.deepEqual(several.map(({ hostname, port, username }) => [hostname, port, username]), [
    ["one", 5672, "guest"],
    ["two", 5673, "guest"],
  ]);
});

test("rabbitmq errors: what the client says goes on without names of users, hosts and values", () => {
  const login = new Error(
    'Handshake terminated by server: 403 (ACCESS-REFUSED) with message "ACCESS_REFUSED - Login was refused for user s3cret"',
  );
  const told = openFailure(login);
  assert.equal(told.code, "authentication-failed");
  assert.equal((told.cause as Error).message, "403 ACCESS-REFUSED");
  const closed = Object.assign(
    new Error("Channel closed by server: 404 (NOT-FOUND) with message \"NOT_FOUND - no queue 's3cret' in vhost\""),
    { code: 404 },
  );
  assert.ok(!channelFailure("consuming", closed).message.includes("s3cret"));
  assert.equal(harmless(closed).message, "404 NOT-FOUND");
  assert.equal(
    harmless(
      Object.assign(new Error("connect ECONNREFUSED 10.0.0.9:5672"), { code: "ECONNREFUSED", syscall: "connect" }),
    ).message,
    "connect ECONNREFUSED",
  );
  assert.equal(harmless(new Error("something s3cret")).message, "unknown error");
});

test("rabbitmq errors: what a declaration found different is read with its type", () => {
  const error = (text: string): Error =>
    Object.assign(
      new Error(
        `Operation failed: QueueDeclare; 406 (PRECONDITION-FAILED) with message "PRECONDITION_FAILED - ${text}"`,
      ),
      { code: 406 },
    );
  assert.deepEqual(
    inequivalent(
      error(
        "inequivalent arg 'x-max-length' for queue 'q' in vhost '/': received none but current is the value '10' of type 'signedint'",
      ),
    ),
    { argument: "x-max-length", current: "10", type: "signedint" },
  );
  assert.deepEqual(
    inequivalent(
      error(
        "inequivalent arg 'x-queue-type' for queue 'q' in vhost '/': received the value 'quorum' of type 'longstr' but current is none",
      ),
    ),
    { argument: "x-queue-type", current: undefined, type: undefined },
  );
  assert.deepEqual(
    inequivalent(
      error("inequivalent arg 'durable' for queue 'q' in vhost '/': received 'true' but current is 'false'"),
    ),
    { argument: "durable", current: "false", type: undefined },
  );
  assert.equal(inequivalent(error("unknown delivery tag 1")), undefined);
});

test("connect: amqp and amqps choose RabbitMQ", async () => {
  for (const scheme of ["amqp", "amqps"]) {
    await assert.rejects(
      connect(`${scheme}://127.0.0.1:1`, { isolation: "inline", logger: false, connectTimeoutMs: 500 }),
      (error: EdaError) => error.code === "broker-unavailable" && error.message.includes("RabbitMQ"),
    );
  }
});
