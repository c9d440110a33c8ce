import assert from "node:assert/strict";
import { isSensitiveName, redact, redactText } from "../../core/redact.ts";
import { test } from "../support/test.ts";

test("isSensitiveName: matches whole words in every spelling", () => {
  const sensitive = [
    ...[
      "password",
      "Password",
      "userPassword",
      "user_password",
      "USER-PASSWORD",
      "userpassword",
      "password2",
      "passwords",
    ],
    ...[
      "apiKey",
      "api_key",
      "API_KEY",
      "apikey",
      "xapikey",
      "X-Api-Key",
      "apiKeys",
      "authorization",
      "auth",
      "authToken",
      "authtoken",
    ],
    ...[
      "clientsecret",
      "client_secret",
      "privateKey",
      "PRIVATE_KEY",
      "sessionId",
      "session",
      "cookie",
      "setcookies",
      "pin",
      "userPin",
    ],
    ...[
      "PIN_CODE",
      "card",
      "cardNumber",
      "cvv2",
      "pan",
      "iban",
      "accountNumber",
      "account_no",
      "ssn",
      "dateOfBirth",
      "email",
    ],
    ...[
      "phoneNumber",
      "passport",
      "seedPhrase",
      "otp",
      "signature",
      "bearerToken",
      "JWT",
      "credentials",
      "connectionString",
    ],
  ];
  const plain = [
    ...[
      "shipping",
      "company",
      "author",
      "expand",
      "authority",
      "spinner",
      "pinned",
      "opinion",
      "discard",
      "dashboard",
      "seedling",
    ],
    ...[
      "secretary",
      "tokenizer",
      "cardinality",
      "panel",
      "key",
      "id",
      "account",
      "phonetic",
      "total",
      "number",
      "swiftly",
      "",
    ],
    ...["assessment", "keyboard", "primaryKey", "routed", "obsession", "topic", "subject"],
  ];
  for (const name of sensitive) assert.ok(isSensitiveName(name), name);
  for (const name of plain) assert.ok(!isSensitiveName(name), name);
});

test("redact: masks under sensitive names at any depth and keeps the rest", () => {
  const given = {
    shipping: { company: "ACME", author: "x", pin: 1234 },
    lines: [{ sku: "a", card: { number: "4111" } }],
    total: 42,
    none: null,
    password: null,
    ok: false,
  };
  assert.deepEqual(redact(given), {
    shipping: { company: "ACME", author: "x", pin: "***" },
    lines: [{ sku: "a", card: "***" }],
    total: 42,
    none: null,
    password: null,
    ok: false,
  });
  assert.equal(given.shipping.pin, 1234, "the original stays");
  assert.deepEqual(redact(["a", 1, undefined]), ["a", 1, undefined]);
  assert.equal(redact("password=x"), "password=***");
});

test("redact: never throws, whatever it is given", () => {
  const cyclic: Record<string, unknown> = { a: 1 };
  cyclic["self"] = cyclic;
  cyclic["again"] = [cyclic];
  assert.deepEqual(redact(cyclic), { a: 1, self: "***", again: ["***"] });
  const throwing = {
    get bad(): never {
      throw new Error("x");
    },
  };
  assert.equal(redact(throwing), "***");
  assert.equal(redact(new Proxy({}, { ownKeys: () => ["a", "a"] })), "***");
  let shared: unknown = "end";
  for (let i = 0; i < 60; i++) shared = [shared, shared];
  assert.ok(Array.isArray(redact(shared)));
  let deep: unknown = 1;
  for (let i = 0; i < 50_000; i++) deep = [deep];
  assert.ok(JSON.stringify(redact(deep)).includes('"***"'));
  assert.deepEqual(redact({ a: { b: { c: 1 } } }, 1), { a: { b: "***" } });
  const odd = { f: () => 1, n: 5n, s: Symbol("x"), b: Uint8Array.of(1, 2), d: new Date(0), e: new Date(NaN) };
  assert.deepEqual(redact(odd), {
    f: undefined,
    n: "5",
    s: undefined,
    b: "2 bytes",
    d: "1970-01-01T00:00:00.000Z",
    e: null,
  });
});

test("redact: __proto__ stays a name like any other", () => {
  const copy = redact(JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}')) as object;
  assert.equal(Object.getPrototypeOf(copy), Object.prototype);
  assert.ok(Object.hasOwn(copy, "__proto__"));
  assert.equal(({} as Record<string, unknown>)["polluted"], undefined);
});

test("redactText: masks credentials in URLs and keeps the host", () => {
  const cases: readonly (readonly [string, string])[] = [
    ["connect ECONNREFUSED redis://user:hush@host:6379/0", "connect ECONNREFUSED redis://***@host:6379/0"],
    ["amqps://u:p%40hush@h/v failed", "amqps://***@h/v failed"],
    ["postgres://u:hu/sh?x@h:5432/db", "postgres://***@h:5432/db"],
    ["kafka://:hush@a:9092,b:9092", "kafka://***@a:9092,b:9092"],
    ['see "https://bob:hush@example.org/a@b" now', 'see "https://***@example.org/a@b" now'],
    ["https://example.org/@user stays", "https://example.org/@user stays"],
    ["redis://host:6379 stays", "redis://host:6379 stays"],
  ];
  for (const [given, want] of cases) assert.equal(redactText(given), want);
});

test("redactText: masks tokens and the values of sensitive pairs", () => {
  const cases: readonly (readonly [string, string])[] = [
    ["Authorization: Bearer abc123def456", "Authorization: ***"],
    ["Authorization: Basic dXNlcjpwdw==", "Authorization: ***"],
    ["got bearer abc123def456 here", "got bearer *** here"],
    ["bearer authentication failed", "bearer authentication failed"],
    ["jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln end", "jwt *** end"],
    ["password=hush&x=1", "password=***&x=1"],
    ["PGPASSWORD=hush psql", "PGPASSWORD=*** psql"],
    ['{"apiKey": "hu\\"sh", "total": "4"}', '{"apiKey": "***", "total": "4"}'],
    ["{'client_secret':'hush'}", "{'client_secret':'***'}"],
    ['error: "login failed password=hush"', 'error: "login failed password=***"'],
    ["a=b=password=hush", "a=b=password=***"],
    ["total: 5, company=ACME", "total: 5, company=ACME"],
    ['invalid password "hush" for user "bob"', 'invalid password "***" for user "bob"'],
    ["the token 'hu sh' has expired", "the token '***' has expired"],
    ['password authentication failed for user "bob"', 'password authentication failed for user "bob"'],
    ["Unexpected token 'h', \"hi\" is not valid JSON", "Unexpected token 'h', \"hi\" is not valid JSON"],
    ["nothing to see", "nothing to see"],
  ];
  for (const [given, want] of cases) assert.equal(redactText(given), want);
});

test("redactText: takes hostile texts in linear time", { timeoutMs: 10_000 }, () => {
  const size = 300_000;
  for (
    const text of [
      "a=".repeat(size),
      `${"a".repeat(size)}=`,
      "a://".repeat(size),
      `password="${"\\a".repeat(size)}`,
      "eyJ".repeat(size),
    ]
  ) {
    assert.equal(typeof redactText(text), "string");
  }
});

test("redactText masks values in JSON that stands in a text of JSON, however often it was escaped", () => {
  assert.equal(redactText("password=\\\\hunter2 kept"), "password=*** kept");
  let text = JSON.stringify({ a: 1, password: 'hun"ter2', b: "kept" });
  for (let n = 0; n < 4; n++) {
    const masked = redactText(`failed: ${text}`);
    assert.ok(!/hun|ter2/.test(masked), masked);
    assert.ok(masked.includes("kept"), masked);
    text = JSON.stringify({ body: text });
  }
});

test("redactText masks all cookies of a header, not only the first", () => {
  assert.equal(redactText("GET / failed\nCookie: a=b; sid=s3cr3t\nHost: h"), "GET / failed\nCookie: ***\nHost: h");
  assert.equal(redactText("set-cookie: a=b; Path=/; sid=s3cr3t"), "set-cookie: ***");
});
