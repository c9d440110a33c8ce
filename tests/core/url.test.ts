import assert from "node:assert/strict";
import { inspect } from "node:util";
import { InvalidOptionError } from "../../core/errors.ts";
import { BROKER_SCHEMES, parseBrokerUrl } from "../../core/url.ts";
import { test } from "../support/test.ts";

/** The parts as a plain object. */
function parts(text: string): Record<string, unknown> {
  const { scheme, hosts, username, password, path, query } = parseBrokerUrl(text);
  return { scheme, hosts, username, password, path, query: Object.fromEntries(query) };
}

const none = { hosts: [], username: undefined, password: undefined, path: undefined, query: {} };

test("parseBrokerUrl: reads every part, percent-decoded", () => {
  assert.deepEqual(parts("redis://us%40er:p%2Fw%3A%23@host:6379/0?tls=true&name=a%20b+c&flag"), {
    scheme: "redis",
    hosts: [{ host: "host", port: 6379 }],
    username: "us@er",
    password: "p/w:#",
    path: "0",
    query: { tls: "true", name: "a b+c", flag: "" },
  });
  assert.deepEqual(parts("redis://:pw@h"), { ...none, scheme: "redis", hosts: [{ host: "h" }], password: "pw" });
  assert.deepEqual(parts("nats://token@h"), { ...none, scheme: "nats", hosts: [{ host: "h" }], username: "token" });
  assert.deepEqual(parts("nats://u:@h"), {
    ...none,
    scheme: "nats",
    hosts: [{ host: "h" }],
    username: "u",
    password: "",
  });
  assert.equal(parts("nats://u:a:b@h")["password"], "a:b");
});

test("parseBrokerUrl: takes several hosts, IPv6 and repeated schemes", () => {
  const two = [{ host: "a", port: 9092 }, { host: "b", port: 9093 }];
  assert.deepEqual(parts("kafka://a:9092,b:9093")["hosts"], two);
  assert.deepEqual(parts("nats://a,b")["hosts"], [{ host: "a" }, { host: "b" }]);
  assert.deepEqual(parts("nats://u:p@a:9092,nats://u:p@b:9093"), {
    ...none,
    scheme: "nats",
    hosts: two,
    username: "u",
    password: "p",
  });
  assert.deepEqual(parts("kafka://u:p,w@a:9092,b:9093"), {
    ...none,
    scheme: "kafka",
    hosts: two,
    username: "u",
    password: "p,w",
  });
  assert.deepEqual(parts("redis://[::1]:6379,[fe80::1%25eth0]")["hosts"], [{ host: "::1", port: 6379 }, {
    host: "fe80::1%eth0",
  }]);
});

test("parseBrokerUrl: knows every scheme, in any case", () => {
  for (const scheme of BROKER_SCHEMES) assert.equal(parseBrokerUrl(`${scheme}://h`).scheme, scheme);
  assert.equal(parseBrokerUrl("REDIS://h").scheme, "redis");
});

test("parseBrokerUrl: no path, an empty one and an encoded slash are three things", () => {
  assert.equal(parts("amqp://h")["path"], undefined);
  assert.equal(parts("amqp://h/")["path"], "");
  assert.equal(parts("amqp://h/%2f")["path"], "/");
  assert.equal(parts("amqp://h/a/b")["path"], "a/b");
});

test("parseBrokerUrl: memory and sqlite have a path and no host", () => {
  assert.deepEqual(parts("memory:"), { ...none, scheme: "memory", path: "" });
  assert.deepEqual(parts("memory://hub"), { ...none, scheme: "memory", path: "hub" });
  assert.deepEqual(parts("sqlite:./my%20events.db?mode=rwc"), {
    ...none,
    scheme: "sqlite",
    path: "./my events.db",
    query: { mode: "rwc" },
  });
  assert.equal(parts("sqlite:./my events.db")["path"], "./my events.db");
  assert.equal(parts("sqlite:///var/me@home/x.db")["path"], "/var/me@home/x.db");
  assert.equal(parts("sqlite::memory:")["path"], ":memory:");
  assert.equal(parts("sqlite:C:\\data\\x.db")["path"], "C:\\data\\x.db");
});

test("parseBrokerUrl: sqs and postgres may go without a host", () => {
  assert.deepEqual(parts("sqs:"), { ...none, scheme: "sqs" });
  assert.deepEqual(parts("postgres:///app?host=/run/pg"), {
    ...none,
    scheme: "postgres",
    path: "app",
    query: { host: "/run/pg" },
  });
});

test("parseBrokerUrl: says what is wrong and never quotes the text", () => {
  const cases: readonly (readonly [unknown, RegExp])[] = [
    ["", /not empty/],
    [undefined, /not empty/],
    [5, /not empty/],
    ["hush", /must begin with one of memory:/],
    ["http://hush", /must begin with one of/],
    ["redis:hush", /must have \/\/ behind redis:/],
    ["redis://", /host is missing/],
    ["redis://u:hush@", /host is missing/],
    ["sqlite:", /path of the database is missing/],
    ["redis://hush\n", /control characters/],
    ["redis://hu sh", /spaces/],
    ["redis://u:hu#sh@h", /#.*percent-encode/],
    ["redis://u:hu/sh@h", /@ behind the hosts.*percent-encode/],
    ["redis://u:hu@sh@h", /more than one @.*percent-encode/],
    ["redis://u:hush%@h", /password has a %/],
    ["redis://u:%ff@hush", /password has a %/],
    ["redis://hush:port", /port must be a number from 1 to 65,535/],
    ["redis://hush:", /port must be/],
    ["redis://hush:0", /port must be/],
    ["redis://hush:65536", /port must be/],
    ["redis://hush:1e3", /port must be/],
    ["redis://::1", /host is empty or malformed/],
    ["redis://[hush", /host is empty or malformed/],
    ["kafka://hush,,b", /host is empty or malformed/],
    ["kafka://hush,", /host is empty or malformed/],
    ["nats://u:p@a,u:hush@b", /same user and password/],
    ["redis://h?a=hush&a=2", /option a stands in the query twice/],
    ["redis://h?=hush", /no valid name/],
    ["redis://h?a=%hush", /query has a %/],
  ];
  for (const [text, want] of cases) {
    assert.throws(() => parseBrokerUrl(text as string), (error) => {
      assert.ok(error instanceof InvalidOptionError, String(error));
      assert.match(error.message, want);
      assert.ok(error.message.startsWith("url: ") && !/hush|hu |sh@/.test(error.message), error.message);
      assert.equal(error.cause, undefined);
      return true;
    }, String(text));
  }
  assert.throws(() => parseBrokerUrl("x", "brokerUrl"), /^InvalidOptionError: brokerUrl: /);
});

test("BrokerUrl: no printed form shows host, user or password", () => {
  const url = parseBrokerUrl("redis://user:hush@example.internal:6379/0?key=hush");
  const forms = [
    String(url),
    JSON.stringify({ url }),
    inspect(url),
    inspect({ url }, { showHidden: true, depth: 9 }),
    JSON.stringify({ ...url }),
    Object.prototype.toString.call(url),
  ];
  for (const form of forms) assert.ok(!/hush|user|example|6379/.test(form), form);
  assert.equal(String(url), "BrokerUrl(redis)");
  const global = globalThis as {
    Deno?: { inspect(value: unknown): string };
    Bun?: { inspect(value: unknown): string };
  };
  for (const runtime of [global.Deno, global.Bun]) {
    if (runtime !== undefined) assert.ok(!/hush|user|example|6379/.test(runtime.inspect({ url })));
  }
  assert.throws(() => Object.assign(url.hosts[0] ?? {}, { host: "x" }), TypeError);
});
