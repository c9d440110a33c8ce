import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import {
  createEnvelope,
  freshEnvelope,
  fromInspected,
  isEnvelope,
  textOf,
  toEnvelope,
  withCause,
  withData,
} from "../../core/codec.ts";
import type { Envelope, EnvelopeInit } from "../../core/envelope.ts";
import { EnvelopeInvalidError, EnvelopeTooLargeError } from "../../core/errors.ts";
import { test } from "../support/test.ts";

const NOW = Date.UTC(2026, 0, 31, 9, 30, 0, 5);
let ids = 0;
const defaults = { source: "/shop", now: () => NOW, nextId: () => `id-${++ids}` };
const MAX = 1_048_576;

function make(init: Record<string, unknown> = {}, maxBytes = MAX): Envelope {
  return createEnvelope({ type: "shop.order.placed", ...init } as EnvelopeInit, defaults, maxBytes);
}

/** Asserts that building fails, naming `attribute` and not the value; answers the message. */
function refused(attribute: string, init: Record<string, unknown>, secret?: string): string {
  let message = "";
  assert.throws(() => make(init), (error) => {
    assert.ok(error instanceof EnvelopeInvalidError, String(error));
    assert.equal(error.details["attribute"], attribute);
    if (secret !== undefined) assert.ok(!error.message.includes(secret), error.message);
    message = error.message;
    return true;
  });
  return message;
}

function nested(levels: number, inside: unknown): unknown {
  let value = inside;
  for (let i = 0; i < levels; i++) value = [value];
  return value;
}

test("createEnvelope: fills in id, time, source and content type, and writes attributes first, data last", () => {
  const envelope = make({ id: "e-1", subject: "o-1", data: { total: 42 } });
  assert.equal(
    textOf(envelope),
    '{"specversion":"1.0","id":"e-1","source":"/shop","type":"shop.order.placed","subject":"o-1",' +
      '"time":"2026-01-31T09:30:00.005Z","datacontenttype":"application/json","data":{"total":42}}',
  );
  assert.equal(envelope.specversion, "1.0");
  assert.equal(envelope.time, "2026-01-31T09:30:00.005Z");
  assert.deepEqual(envelope.data, { total: 42 });
  assert.notEqual(make().id, make().id);
});

test("createEnvelope: what is absent is absent in the object and in the text", () => {
  const envelope = make({ subject: null, dataschema: undefined, correlationid: null });
  for (const name of ["subject", "dataschema", "correlationid", "causationid", "datacontenttype"]) {
    assert.ok(!(name in envelope), name);
    assert.ok(!textOf(envelope).includes(name), name);
  }
  assert.equal(envelope.data, undefined);
  assert.ok(!textOf(envelope).includes('"data'));
});

test("createEnvelope: no data and null data are two things", () => {
  const none = make({ data: undefined });
  const empty = make({ data: null });
  assert.equal(none.data, undefined);
  assert.equal(empty.data, null);
  assert.ok(textOf(empty).endsWith(',"data":null}'));
});

test("createEnvelope: every kind of bytes travels as base64 of exactly the viewed bytes (CE-02)", () => {
  const base = new Uint8Array(16).map((_, i) => i);
  const shared = new Uint8Array(new SharedArrayBuffer(4));
  shared.set([2, 3, 4, 5]);
  const want = [2, 3, 4, 5];
  const cases: Record<string, unknown> = {
    "Uint8Array": Uint8Array.from(want),
    "Buffer": Buffer.from(want),
    "sub-array": base.subarray(2, 6),
    "ArrayBuffer": Uint8Array.from(want).buffer,
    "SharedArrayBuffer": shared.buffer,
    "view of a SharedArrayBuffer": shared,
    "DataView": new DataView(base.buffer, 2, 4),
    "Uint16Array": new Uint16Array(base.buffer, 2, 2),
  };
  for (const [kind, data] of Object.entries(cases)) {
    const envelope = make({ data });
    assert.ok(textOf(envelope).endsWith(',"data_base64":"AgMEBQ=="}'), kind);
    assert.ok(!textOf(envelope).includes('"data":'), kind);
    assert.ok(!("datacontenttype" in envelope), kind);
    assert.ok(envelope.data instanceof Uint8Array, kind);
    assert.deepEqual([...envelope.data as Uint8Array], want, kind);
    assert.equal((envelope.data as Uint8Array).buffer.byteLength, 4, `${kind}: a buffer of its own`);
  }
  assert.equal((make({ data: new Uint8Array(0) }).data as Uint8Array).length, 0);
});

test("createEnvelope: data without a JSON form is refused instead of becoming {} (CE-02)", () => {
  const cases: Record<string, unknown> = {
    "Blob": new Blob(["x"]),
    "ReadableStream": new ReadableStream(),
    "async iterable": (async function* () {})(),
    "pipe": new (class {
      pipe(): void {}
    })(),
    "promise": Promise.resolve(1),
    "Map": new Map(),
    "Error": new Error("x"),
    "function": () => 1,
    "symbol": Symbol("x"),
    "toJSON of undefined": { toJSON: () => undefined },
  };
  for (const [kind, data] of Object.entries(cases)) assert.ok(refused("data", { data }).startsWith("data "), kind);
  assert.match(refused("data_base64", { data_base64: "AA==" }), /bytes go into data/);
});

test("createEnvelope: toJSON is honoured as JSON.stringify does", () => {
  const at = new Date(NOW);
  assert.equal(make({ data: at }).data, at.toJSON());
  assert.deepEqual(make({ data: { at, gone: undefined, list: [undefined] } }).data, { at: at.toJSON(), list: [null] });
  assert.deepEqual(make({ data: { toJSON: () => ({ a: 1 }) } }).data, { a: 1 });
  assert.equal(make({ data: new URL("https://example.org/") }).data, "https://example.org/");
  const tagged = { [Symbol.toStringTag]: "Order", total: 1 };
  assert.deepEqual(make({ data: tagged }).data, { total: 1 });
});

test("createEnvelope: a BigInt in data is refused with its path (CE-05)", () => {
  assert.match(refused("data", { data: 9007199254740993n }, "9007"), /^data is a BigInt/);
  assert.match(refused("data", { data: { lines: [{ total: 77n }] } }, "77"), /^data\.lines\[0\]\.total is a BigInt/);
  const cyclic: Record<string, unknown> = {};
  Object.assign(cyclic, { a: cyclic, b: cyclic, total: 1n });
  assert.match(refused("data", { data: cyclic }), /data/);
});

test("createEnvelope: data may nest 64 levels below its root, cycles and towers are refused", () => {
  assert.ok(make({ data: nested(63, {}) }));
  assert.ok(make({ data: nested(63, { a: 1 }) }));
  assert.ok(make({ data: nested(64, {}) }));
  refused("data", { data: nested(64, { a: 1 }) });
  refused("data", { data: nested(65, {}) });
  refused("data", { data: nested(200_000, 1) });
  assert.ok(make({ data: Array.from({ length: 1000 }, () => ({ a: "[{[{" })) }));
  const cyclic: Record<string, unknown> = {};
  cyclic["self"] = { cyclic };
  assert.match(refused("data", { data: cyclic }), /cyclic/);
});

test("createEnvelope: data is looked at before attributes, specversion before the required ones", () => {
  refused("data", { data: 1n, specversion: "0.3", id: "" });
  refused("specversion", { specversion: "0.3", id: "", extensions: { X: 1 } });
  refused("id", { id: "", subject: "", extensions: { X: 1 } });
  refused("subject", { subject: "", extensions: { X: 1 } });
});

test("createEnvelope: the snapshot of data is taken at once", () => {
  const data = { total: 1 };
  const envelope = make({ data });
  data.total = 2;
  assert.deepEqual(envelope.data, { total: 1 });
});

test("createEnvelope: required attributes are refused when missing, empty or no string", () => {
  for (const name of ["id", "source", "type"]) {
    for (const value of ["", null, 5, {}, true]) refused(name, { [name]: value });
  }
  refused("type", { type: undefined });
  assert.throws(
    () => createEnvelope({ type: "a" }, { ...defaults, source: undefined }, MAX),
    (error) => error instanceof EnvelopeInvalidError && error.details["attribute"] === "source",
  );
  for (const init of [null, undefined, "x", [], 5]) {
    assert.throws(() => createEnvelope(init as unknown as EnvelopeInit, defaults, MAX), EnvelopeInvalidError);
  }
});

test("createEnvelope: optional attributes are refused when empty or no string", () => {
  for (const name of ["subject", "time", "datacontenttype", "dataschema"]) {
    for (const value of ["", 5, {}, false]) refused(name, { [name]: value });
  }
  for (const name of ["correlationid", "causationid"]) {
    for (const value of [5, {}, false]) refused(name, { [name]: value });
  }
});

test("createEnvelope: attributes hold no control character, lone surrogate or noncharacter (CE-15)", () => {
  for (const bad of ["a\u0000b", "a\nb", "a\r\nb", "\u007f", "\u0085", "\ud800", "a\udc00", "\uffff", "\ufdd0"]) {
    for (const name of ["id", "source", "type", "subject", "correlationid"]) {
      refused(name, { [name]: `secret${bad}` }, "secret");
    }
    refused("tenant", { extensions: { tenant: `secret${bad}` } }, "secret");
  }
  const subject = 'a b%20é😀 "quoted" \\ back';
  assert.equal(make({ subject }).subject, subject);
  const decomposed = "e\u0301";
  assert.equal(make({ subject: decomposed }).subject, decomposed);
  assert.equal(JSON.parse(textOf(make({ subject }))).subject, subject);
});

test("createEnvelope: data keeps lone surrogates and NUL as escapes (CE-15)", () => {
  const data = { text: "\ud800 \u0000 \udc00" };
  const envelope = make({ data });
  assert.ok(textOf(envelope).includes("\\ud800"));
  assert.deepEqual(envelope.data, data);
});

test("createEnvelope: attributes have at most 1,024 characters, counted as characters", () => {
  assert.ok(make({ subject: "x".repeat(1024) }));
  assert.ok(make({ subject: "😀".repeat(1024) }));
  refused("subject", { subject: "x".repeat(1025) });
  refused("subject", { subject: "😀".repeat(1025) });
  refused("id", { id: "x".repeat(1025) });
  refused("tenant", { extensions: { tenant: "x".repeat(1025) } });
});

test("createEnvelope: time is a Date or an RFC 3339 text of a day that exists", () => {
  assert.equal(make({ time: new Date(NOW) }).time, "2026-01-31T09:30:00.005Z");
  const good = [
    "2026-01-31T09:30:00Z",
    "2026-01-31t09:30:00.123456789+05:30",
    "2024-02-29T23:59:60-00:00",
    "0000-02-29T00:00:00z",
  ];
  for (const time of good) assert.equal(make({ time }).time, time);
  const bad = [
    "2026-02-29T00:00:00Z",
    "2026-04-31T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-01-31 09:30:00Z",
    "2026-01-31T09:30:00",
    "2026-01-31T24:00:00Z",
    "2026-01-31",
    "yesterday",
    "2026-01-31T09:30:00Z\n",
  ];
  for (const time of bad) refused("time", { time });
  for (const at of [NaN, -1e15, 1e15]) refused("time", { time: new Date(at) });
});

test("createEnvelope: extension names are a-z and 0-9 of any length, and not reserved (CE-06)", () => {
  const long = "a".repeat(40);
  const envelope = make({ extensions: { [long]: "x", tostring: "y", constructor: "z", "0": "n" } });
  assert.deepEqual(envelope.extensions, { "0": "n", [long]: "x", tostring: "y", constructor: "z" });
  assert.ok(!Object.hasOwn(make().extensions, "constructor"));
  for (
    const name of ["FOO", "my-ext", "my_ext", "", "ä", "a b", "ext\n", "data", "data_base64", "id", "correlationid"]
  ) {
    refused(name, { extensions: { [name]: "x" } });
  }
  refused("__proto__", { extensions: JSON.parse('{"__proto__":"x"}') });
  for (const extensions of ["x", 5, [], new Map()]) refused("extensions", { extensions });
});

test("createEnvelope: extensions named like credentials are refused", () => {
  for (const name of ["authorization", "xcookie", "password1", "clientsecret", "authtoken", "xapikey"]) {
    refused(name, { extensions: { [name]: "hush" } }, "hush");
  }
});

test("createEnvelope: extension values are strings, booleans and 32-bit integers (CE-07)", () => {
  const day = new Date(NOW);
  const envelope = make({
    extensions: {
      a: 2147483647,
      b: -2147483648,
      c: true,
      d: "x",
      e: day,
      f: Uint8Array.of(1, 2),
      g: null,
      h: undefined,
    },
  });
  const want = { a: 2147483647, b: -2147483648, c: true, d: "x", e: day.toISOString(), f: "AQI=" };
  assert.deepEqual(envelope.extensions, want);
  assert.deepEqual(fromText(envelope).extensions, want);
  for (const value of [2147483648, -2147483649, 1.5, NaN, Infinity, {}, [], 1n, () => 1, new Date(NaN)]) {
    refused("tenant", { extensions: { tenant: value } });
  }
});

test("createEnvelope: false, 0 and the empty text survive as extensions (CE-08)", () => {
  const envelope = make({ extensions: { flag: false, count: -0, note: "" } });
  assert.deepEqual(envelope.extensions, { flag: false, count: 0, note: "" });
  assert.deepEqual(fromText(envelope).extensions, { flag: false, count: 0, note: "" });
  const members = JSON.parse(textOf(envelope));
  assert.equal(members.flag, false);
  assert.equal(members.count, 0);
});

test("createEnvelope: traceparent and xsmattempt have a form", () => {
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  assert.equal(make({ extensions: { traceparent } }).extensions["traceparent"], traceparent);
  const bad = [
    traceparent.toUpperCase(),
    `ff${traceparent.slice(2)}`,
    "00-00000000000000000000000000000000-b7ad6b7169203331-01",
    "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
    `${traceparent}-x`,
    true,
  ];
  for (const value of bad) refused("traceparent", { extensions: { traceparent: value } });
  assert.equal(make({ extensions: { xsmattempt: 3 } }).extensions["xsmattempt"], 3);
  for (const value of [-1, true, "3"]) refused("xsmattempt", { extensions: { xsmattempt: value } });
});

test("createEnvelope: unknown members are refused by name, with a hint", () => {
  assert.match(
    refused("dataContentType", { dataContentType: "secret" }, "secret"),
    /"dataContentType".*did you mean datacontenttype\?/,
  );
  assert.match(refused("correlationId", { correlationId: "x" }), /did you mean correlationid\?/);
  assert.match(refused("sujbect", { sujbect: "x" }), /did you mean subject\?/);
  assert.match(refused("tenant", { tenant: "x" }), /go into extensions/);
  refused("My Tenant", { "My Tenant": "x" });
  refused("__proto__", JSON.parse('{"type":"a","__proto__":"x"}'));
});

test("createEnvelope: data that is no string needs a content type of JSON (CE-11)", () => {
  for (
    const datacontenttype of [
      "application/json",
      "APPLICATION/JSON; charset=utf-8",
      "application/x+json;charset=utf-8",
      "text/json",
    ]
  ) {
    assert.deepEqual(make({ datacontenttype, data: { a: 1 } }).data, { a: 1 });
    assert.equal(make({ datacontenttype, data: '{"a":1}' }).data, '{"a":1}');
  }
  for (const datacontenttype of ["text/plain", "application/xml", "application/jsonx", "json"]) {
    assert.equal(make({ datacontenttype, data: "<a/>" }).data, "<a/>");
    assert.ok(make({ datacontenttype, data: Uint8Array.of(1) }).data instanceof Uint8Array);
    refused("data", { datacontenttype, data: { a: 1 } });
    refused("data", { datacontenttype, data: null });
  }
});

test("createEnvelope: maxBytes counts UTF-8 bytes and is inclusive", () => {
  const bytes = new TextEncoder().encode(textOf(make({ id: "e", data: "é😀" }))).length;
  assert.ok(make({ id: "e", data: "é😀" }, bytes));
  assert.throws(() => make({ id: "e", data: "é😀" }, bytes - 1), EnvelopeTooLargeError);
  assert.throws(() => make({ data: "x".repeat(MAX) }), /1,048,576 bytes/);
});

function fromText(envelope: Envelope): Envelope {
  const text = textOf(envelope);
  const at = text.indexOf(',"data":');
  return fromInspected(text, at === -1 ? -1 : at + 8, false);
}

test("an envelope cannot be changed", () => {
  const envelope = make({ subject: "o-1", data: { a: 1 }, extensions: { tenant: "x" } });
  for (const name of ["id", "subject", "data", "extensions", "added"]) {
    assert.throws(() => Object.assign(envelope, { [name]: "y" }), TypeError, name);
    assert.throws(() => Object.defineProperty(envelope, name, { value: "y" }), TypeError, name);
  }
  assert.throws(() => Object.assign(envelope.extensions, { tenant: "y" }), TypeError);
  assert.equal(envelope.subject, "o-1");
});

test("an envelope whose data a handler changed still has its text, and a fresh one its data (CE-18)", () => {
  const envelope = make({ data: { a: 1 } });
  (envelope.data as Record<string, unknown>)["x"] = 1;
  assert.ok(textOf(envelope).endsWith('"data":{"a":1}}'));
  assert.deepEqual(JSON.parse(JSON.stringify(envelope)).data, { a: 1 });
  assert.deepEqual(fromText(envelope).data, { a: 1 });
});

test("an envelope can be spread, compared and written as CloudEvents JSON", () => {
  const envelope = make({ subject: "o-1", data: { a: 1 }, extensions: { tenant: "x" } });
  const copy = { ...envelope };
  assert.deepEqual(copy.data, { a: 1 });
  assert.equal(copy.id, envelope.id);
  assert.deepEqual(fromText(envelope), envelope);
  assert.notDeepEqual(make({ id: envelope.id, subject: "o-1", data: { a: 2 }, extensions: { tenant: "x" } }), envelope);
  assert.deepEqual(JSON.parse(JSON.stringify(envelope)), JSON.parse(textOf(envelope)));
  assert.equal(JSON.parse(JSON.stringify(make({ data: Uint8Array.of(1) }))).data_base64, "AQ==");
});

test("toEnvelope: takes an envelope as it is, and a spread or parsed copy of one as an init", () => {
  const envelope = make({ subject: "o-1", data: { a: 1 }, extensions: { tenant: "x" } });
  assert.equal(toEnvelope(envelope, defaults, MAX), envelope);
  assert.throws(() => toEnvelope(envelope, defaults, 50), EnvelopeTooLargeError);
  const copy = toEnvelope({ ...envelope, subject: "o-2" }, defaults, MAX);
  assert.equal(copy.id, envelope.id);
  assert.equal(copy.subject, "o-2");
  assert.deepEqual(copy.extensions, { tenant: "x" });
  const parsed = JSON.parse(JSON.stringify({ ...envelope })) as Envelope;
  assert.deepEqual(toEnvelope(parsed, defaults, MAX), envelope);
  const plain = make({ data: { a: 1 } });
  assert.deepEqual(toEnvelope(JSON.parse(JSON.stringify(plain)), defaults, MAX), plain);
});

test("isEnvelope: knows its own, textOf refuses others", () => {
  const envelope = make();
  assert.ok(isEnvelope(envelope));
  for (const other of [{ ...envelope }, null, undefined, "x", 5, Object.create(envelope)]) {
    assert.ok(!isEnvelope(other));
  }
  assert.throws(() => textOf({ ...envelope }), EnvelopeInvalidError);
});

test("withData: shows other data and keeps the text", () => {
  const envelope = make({ subject: "o-1", data: { total: "42" } });
  const shown = withData(envelope, { total: 42 });
  assert.deepEqual(shown.data, { total: 42 });
  assert.equal(textOf(shown), textOf(envelope));
  assert.equal(shown.subject, "o-1");
  assert.equal(withData(envelope, undefined).data, undefined);
});

test("freshEnvelope: has the same text and attributes, and data that nobody touched (CE-18)", () => {
  for (const data of [{ total: 1 }, undefined, null, Uint8Array.of(1)]) {
    const envelope = make({ subject: "o-1", data, extensions: { tenant: "x" } });
    const before = freshEnvelope(envelope);
    if (data !== undefined && data !== null) Object.assign(envelope.data as object, { 0: 9, total: 2 });
    const fresh = freshEnvelope(envelope);
    assert.deepEqual(fresh.data, data);
    assert.deepEqual(fresh, before);
    assert.equal(textOf(fresh), textOf(envelope));
  }
});

test("withCause: stamps cause, correlation and trace unless given", () => {
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const first = make({ extensions: { traceparent, tenant: "x" } });
  const second = make(withCause({ type: "b" }, first) as unknown as Record<string, unknown>);
  assert.equal(second.causationid, first.id);
  assert.equal(second.correlationid, first.id);
  assert.deepEqual(second.extensions, { traceparent });
  const third = withCause({ type: "c", extensions: { tenant: "y" } }, second);
  assert.equal(third.causationid, second.id);
  assert.equal(third.correlationid, first.id);
  assert.deepEqual(third.extensions, { tenant: "y", traceparent });
  const own = withCause({ type: "d", causationid: "c", correlationid: "k", extensions: { traceparent: null } }, second);
  assert.deepEqual(own, { type: "d", causationid: "c", correlationid: "k", extensions: { traceparent: null } });
  assert.equal(withCause(second, first), second);
  const forged = fromInspected(
    '{"specversion":"1.0","id":"1","source":"s","type":"t","traceparent":"nonsense"}',
    -1,
    false,
  );
  assert.ok(!("extensions" in withCause({ type: "e" }, forged)));
});
