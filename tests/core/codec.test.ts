import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createEnvelope, decodeEnvelope, fromInspected, inspect, textOf } from "../../core/codec.ts";
import type { Envelope, EnvelopeInit } from "../../core/envelope.ts";
import { type CorruptReason, EnvelopeCorruptError, EnvelopeTooLargeError } from "../../core/errors.ts";
import { test } from "../support/test.ts";

const LIMITS = { maxBytes: 1_048_576 };
const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

/** A minimal event with `rest` behind its required attributes. */
function event(rest = ""): string {
  return `{"specversion":"1.0","id":"e-1","source":"/shop","type":"shop.order.placed"${rest && `,${rest}`}}`;
}

function decode(body: string | Uint8Array): Envelope {
  return decodeEnvelope(body, LIMITS);
}

/** Asserts that a body is refused for `reason`, naming `attribute`, quoting nothing of `secret`; as text and as bytes. */
function corrupt(body: string, reason: CorruptReason, attribute?: string, secret?: string): void {
  for (const form of [body, encode(body)]) {
    assert.throws(() => inspect(form, { maxBytes: 1e8 }), (error) => {
      assert.ok(error instanceof EnvelopeCorruptError, String(error));
      assert.equal(error.reason, reason, error.message);
      assert.equal(error.details["attribute"], attribute);
      assert.equal(error.cause, undefined);
      if (secret !== undefined) {
        assert.ok(!JSON.stringify([error.message, error.details]).includes(secret), error.message);
      }
      return true;
    });
  }
}

test("inspect: a canonical text stays as it is, with the place of its data", () => {
  const text = event(
    '"subject":"o-1","time":"2026-01-31T09:30:00Z","tenant":"x","count":0,"flag":false,"data":{"a":[1]}',
  );
  for (const body of [text, encode(text), Buffer.from(text)]) {
    const inspected = inspect(body, LIMITS);
    assert.equal(inspected.text, text);
    assert.equal(inspected.text.slice(inspected.dataAt, -1), '{"a":[1]}');
    assert.equal(inspected.binary, false);
  }
  const none = inspect(event(), LIMITS);
  assert.deepEqual(none, { text: event(), dataAt: -1, binary: false });
  const bytes = inspect(event('"data_base64":"AQ=="'), LIMITS);
  assert.equal(bytes.binary, true);
  assert.equal(bytes.text.slice(bytes.dataAt, -1), '"AQ=="');
});

test("inspect: any other layout becomes canonical, its data byte for byte", () => {
  const literal = '{ "b" : [ 1.0, 1e2 ,-0 ], "s": "\\u00e9\\/ é" }';
  const body =
    `  {\n "data" : ${literal} ,\r\n\t"type":"t", "id" : "\\u0065-1",\t"subject":null, "flag": true,"source":"s\\/x"` +
    `, "count": -7, "specversion":"1.0" , "tenant":"\\"q\\"" }\n`;
  const inspected = inspect(body, LIMITS);
  assert.equal(
    inspected.text,
    `{"specversion":"1.0","id":"e-1","source":"s/x","type":"t","flag":true,"count":-7,"tenant":"\\"q\\"","data":${literal}}`,
  );
  assert.equal(inspected.text.slice(inspected.dataAt, -1), literal);
  assert.deepEqual(inspect(inspected.text, LIMITS), inspected);
  const scalars = ["1.5", "true", "null", '"x"', "-0", "[]", "{}", '"\\\\"', '"a\\\\\\""'];
  for (const scalar of scalars) {
    for (const middle of [`{"data":${scalar},${event().slice(1)}`, `{"data":${scalar} ,${event().slice(1)}`]) {
      assert.equal(inspect(middle, LIMITS).text, event(`"data":${scalar}`));
    }
  }
});

test("decodeEnvelope: reads what createEnvelope wrote, in every form", () => {
  const defaults = { source: "/shop", now: () => 1_767_225_600_000, nextId: () => "e-1" };
  const inits: EnvelopeInit[] = [
    { type: "t" },
    { type: "t", data: null },
    { type: "t", data: "text é😀\u2028" },
    { type: "t", data: { a: [1, { b: "\\" }] }, subject: "a b%20é😀", correlationid: "c", causationid: "k" },
    { type: "t", data: Uint8Array.of(1, 2, 3), datacontenttype: "image/png", dataschema: "urn:x" },
    { type: "t", subject: '"\\', extensions: { a: "\\", b: false, c: 0, constructor: "x", tostring: "y" } },
    { type: "t", datacontenttype: "text/plain", data: "x", extensions: { z: -1 } },
  ];
  for (const init of inits) {
    const sent = createEnvelope(init, defaults, LIMITS.maxBytes);
    for (const body of [textOf(sent), encode(textOf(sent))]) {
      const received = decode(body);
      assert.equal(textOf(received), textOf(sent));
      assert.deepEqual(received, sent);
    }
  }
});

test("decodeEnvelope: data and data_base64 exclude each other (CE-03)", () => {
  corrupt(event('"data":1,"data_base64":"AQ=="'), "data-and-data-base64", "data_base64");
  corrupt(event('"data_base64":"AQ==","data":1'), "data-and-data-base64", "data_base64");
  corrupt(event('"data":null,"data_base64":"AQ=="'), "data-and-data-base64", "data_base64");
  const unset = decode(event('"data":1,"data_base64":null'));
  assert.equal(unset.data, 1);
  assert.equal(textOf(unset), event('"data":1'));
  assert.equal(decode(event('"data_base64":null')).data, undefined);
});

test("decodeEnvelope: base64 may be written with escapes, and is strict on every runtime (CE-04)", () => {
  const escaped = decode(event('"data_base64":"\\u002B\\u002B\\u002B\\u002B"'));
  assert.deepEqual([...escaped.data as Uint8Array], [0xfb, 0xef, 0xbe]);
  assert.deepEqual(escaped.data, decode(event('"data_base64":"++++"')).data);
  assert.deepEqual([...decode(event('"data_base64":"\\/\\/\\/\\/"')).data as Uint8Array], [255, 255, 255]);
  assert.deepEqual([...decode(event('"data_base64":""')).data as Uint8Array], []);
  for (
    const bad of ["a", "ab=c", "@@@@", "-_-_", "AA\\nAA", "AAAA\\n", "A===", "====", "AA==AA==", " AAA", "AAA", "é==="]
  ) {
    corrupt(event(`"data_base64":"${bad}"`), "invalid-base64", "data_base64");
  }
  for (const bad of ["5", "{}", "true", '["AA=="]']) {
    corrupt(event(`"data_base64":${bad}`), "invalid-base64", "data_base64");
  }
});

test("decodeEnvelope: the text keeps every digit of data (CE-05)", () => {
  for (
    const literal of ["9007199254740993", "1524831183200260097", "1.0", "1e2", "-0", "1E400", '{"n":[1.0,-0,1E400]}']
  ) {
    for (const body of [event(`"data":${literal}`), `{"data":${literal},${event().slice(1)}`]) {
      assert.equal(textOf(decode(body)), event(`"data":${literal}`));
    }
  }
  assert.equal(decode(event('"data":9007199254740993')).data, 9007199254740992);
});

test("decodeEnvelope: attribute names are a-z and 0-9, others are named (CE-06)", () => {
  for (const name of ["FOO", "my-ext", "my_ext", "ä", "", "a b"]) {
    corrupt(event(`${JSON.stringify(name)}:"x"`), "invalid-attribute", name);
    corrupt(event(`${JSON.stringify(name)}:null`), "invalid-attribute", name);
  }
  const long = "a".repeat(40);
  assert.equal(decode(event(`"${long}":"x"`)).extensions[long], "x");
});

test("decodeEnvelope: extension values are strings, booleans and 32-bit integers (CE-07)", () => {
  const bad = ["1.5", "2147483648", "-2147483649", "1.0", "1e2", "1E400", "{}", "[]", '{"a":1}', '["x"]'];
  for (const value of bad) {
    corrupt(event(`"tenant":${value}`), "invalid-attribute", "tenant");
    corrupt(event(`"tenant":${value},"data":1`), "invalid-attribute", "tenant");
  }
  corrupt(event('"extensions":{}'), "invalid-attribute", "extensions");
  const received = decode(event('"a":2147483647,"b":-2147483648,"c":true,"d":"x"'));
  assert.deepEqual(received.extensions, { a: 2147483647, b: -2147483648, c: true, d: "x" });
});

test("decodeEnvelope: falsy extensions survive (CE-08)", () => {
  const body = event('"flag":false,"count":0,"note":""');
  assert.deepEqual(decode(body).extensions, { flag: false, count: 0, note: "" });
  assert.equal(textOf(decode(body)), body);
});

test("decodeEnvelope: a null attribute is an absent one, null data is data (CE-10)", () => {
  const received = decode(event('"subject":null,"time":null,"unset":null,"data":null'));
  for (const name of ["subject", "time"]) assert.ok(!(name in received));
  assert.deepEqual(received.extensions, {});
  assert.equal(received.data, null);
  assert.equal(textOf(received), event('"data":null'));
  assert.equal(decode(event()).data, undefined);
  for (const name of ["id", "source", "type", "specversion"]) {
    corrupt(event().replace(new RegExp(`"${name}":"[^"]*"`), `"${name}":null`), "missing-attribute", name);
  }
});

test("decodeEnvelope: string data is not parsed again, other content types need strings (CE-11)", () => {
  for (
    const type of [undefined, "application/json", "application/x+json;charset=utf-8", "Application/JSON", "text/plain"]
  ) {
    const attribute = type === undefined ? "" : `"datacontenttype":"${type}",`;
    assert.equal(decode(event(`${attribute}"data":"{\\"a\\":1}"`)).data, '{"a":1}');
  }
  for (const type of ["text/plain", "application/xml"]) {
    for (const value of ["{}", "1", "null", "[]"]) {
      corrupt(event(`"datacontenttype":"${type}","data":${value}`), "invalid-attribute", "data");
    }
  }
  const bytes = decode(event('"data_base64":"AQ=="'));
  assert.ok(bytes.data instanceof Uint8Array);
  assert.ok(!("datacontenttype" in bytes));
});

test("decodeEnvelope: required attributes are never invented (CE-12)", () => {
  for (const name of ["id", "source", "type"]) {
    const member = new RegExp(`"${name}":"[^"]*"`);
    corrupt(event().replace(member, `"gone":"x"`), "missing-attribute", name);
    corrupt(event().replace(member, `"${name}":""`), "invalid-attribute", name);
    corrupt(event().replace(member, `"${name}":5`), "invalid-attribute", name);
  }
  corrupt(event().replace('"specversion":"1.0",', ""), "missing-attribute", "specversion");
  for (const version of ['"0.3"', '"2.0"', "1.0", '""', "true"]) {
    corrupt(event().replace('"1.0"', version), "unsupported-specversion", "specversion");
  }
  assert.ok(!("time" in decode(event())));
});

test("decodeEnvelope: optional attributes are checked", () => {
  for (const name of ["subject", "time", "datacontenttype", "dataschema"]) {
    for (const value of ['""', "5", "{}", "false"]) corrupt(event(`"${name}":${value}`), "invalid-attribute", name);
  }
  for (const name of ["correlationid", "causationid"]) corrupt(event(`"${name}":5`), "invalid-attribute", name);
  corrupt(event('"time":"yesterday"'), "invalid-attribute", "time");
  corrupt(event(`"subject":"${"x".repeat(1025)}"`), "invalid-attribute", "subject");
});

test("decodeEnvelope: __proto__, constructor and repeated names change no prototype (CE-13)", () => {
  corrupt(event('"__proto__":"x"'), "invalid-attribute", "__proto__");
  corrupt(event('"__proto__":{"polluted":1}'), "invalid-attribute", "__proto__");
  const data = decode(event('"data":{"__proto__":{"polluted":1},"a":1}')).data as Record<string, unknown>;
  assert.ok(Object.hasOwn(data, "__proto__"), "inside data it stays a member of its own");
  assert.equal(Object.getPrototypeOf(data), Object.prototype);
  assert.equal(({} as Record<string, unknown>)["polluted"], undefined);
  const odd = decode(event('"tostring":"x","constructor":"y","hasownproperty":"z"'));
  assert.deepEqual(odd.extensions, { tostring: "x", constructor: "y", hasownproperty: "z" });
  assert.ok(!Object.hasOwn(decode(event('"other":1')).extensions, "constructor"));
  corrupt(event('"id":"e-2"'), "invalid-attribute", "id");
  corrupt(event('"tenant":"a","tenant":"a"'), "invalid-attribute", "tenant");
  corrupt(event('"tenant":"a","t\\u0065nant":"a"'), "invalid-attribute", "tenant");
  corrupt(event('"data":1,"data":2'), "invalid-attribute", "data");
  corrupt(event('"data":1,"id":"e-2"'), "invalid-attribute", "id");
});

test("decodeEnvelope: non-ASCII attributes arrive exactly (CE-14)", () => {
  for (const subject of ["a b%20é😀", "e\u0301", "日本語"]) {
    for (const written of [subject, JSON.stringify(subject), escapeAll(subject)]) {
      const body = event(`"subject":${written.startsWith('"') ? written : JSON.stringify(written)}`);
      assert.equal(decode(encode(body)).subject, subject);
    }
  }
});

function escapeAll(text: string): string {
  return `"${
    [...Array(text.length).keys()].map((i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, "0")}`).join("")
  }"`;
}

test("decodeEnvelope: attributes hold no control character or lone surrogate, data keeps its escapes (CE-15)", () => {
  for (const bad of ["\\u0000", "\\n", "\u007f", "\u0085", "\\ud800", "\\uffff"]) {
    for (const name of ["subject", "correlationid", "tenant"]) {
      corrupt(event(`"${name}":"a${bad}"`), "invalid-attribute", name);
    }
  }
  const received = decode(event('"data":"\\ud800\\u0000"'));
  assert.equal(received.data, "\ud800\u0000");
  assert.equal(textOf(received), event('"data":"\\ud800\\u0000"'));
  assert.throws(
    () => decode(event('"data":"\ud800"')),
    (error) => error instanceof EnvelopeCorruptError && error.reason === "not-utf8",
  );
});

test("decodeEnvelope: a batch is refused as such, also an empty one (CE-16)", () => {
  for (const body of ["[]", `[${event()}]`, ` [ ${event()},${event()} ] `]) corrupt(body, "batch-not-supported");
});

test("decodeEnvelope: what is no JSON object is refused without quoting it (COR-05)", () => {
  for (const body of ["", " ", "{", "}", "hush", "{hush", `${event()}hush`, `${event('"data":hush')}`, '{"a":"hush']) {
    corrupt(body, "not-json", undefined, "hush");
  }
  for (const body of ["null", '"x"', "5", "true"]) corrupt(body, "not-an-object");
  for (
    const literal of [
      "NaN",
      "Infinity",
      "-Infinity",
      "01",
      "+1",
      ".5",
      "1.",
      "undefined",
      "'x'",
      "{a:1}",
      "[1,]",
      '"\n"',
    ]
  ) {
    corrupt(event(`"data":${literal}`), "not-json");
    corrupt(`{"data":${literal},${event().slice(1)}`, "not-json");
  }
  for (const body of [event().slice(0, -1), event('"data":{}').slice(0, -1), event('"data":{}}'), event('"data":')]) {
    corrupt(body, "not-json");
  }
  assert.throws(() => inspect(5 as unknown as string, LIMITS), EnvelopeCorruptError);
});

test("decodeEnvelope: invalid UTF-8 is refused, and the next body is read", () => {
  for (const bytes of [[0xff], [0xc3], [0xed, 0xa0, 0x80], [...encode(event('"subject":"')), 0xe2, 0x82]]) {
    assert.throws(
      () => decode(Uint8Array.from(bytes)),
      (error) => error instanceof EnvelopeCorruptError && error.reason === "not-utf8",
    );
    assert.equal(decode(encode(event('"subject":"€"'))).subject, "€");
  }
});

test("decodeEnvelope: a byte order mark in front is taken off", () => {
  for (const body of [`\ufeff${event()}`, encode(`\ufeff${event()}`)]) assert.equal(textOf(decode(body)), event());
  corrupt(`\ufeff\ufeff${event()}`, "not-json");
});

test("inspect: the size is checked before anything is decoded or parsed", () => {
  const body = event('"data":"é😀"');
  const bytes = encode(body).length;
  for (const form of [body, encode(body)]) {
    assert.ok(inspect(form, { maxBytes: bytes }));
    assert.throws(() => inspect(form, { maxBytes: bytes - 1 }), EnvelopeTooLargeError);
  }
  assert.throws(() => inspect("{".repeat(2000), { maxBytes: 1000 }), EnvelopeTooLargeError);
  assert.throws(() => inspect(new Uint8Array(2000).fill(0xff), { maxBytes: 1000 }), EnvelopeTooLargeError);
});

test("inspect: deep nesting is refused without overflowing the stack", () => {
  const tower = (levels: number, inside: string): string => `${"[".repeat(levels)}${inside}${"]".repeat(levels)}`;
  for (const allowed of [tower(63, "{}"), tower(63, '{"a":1}'), tower(64, "{}"), tower(65, ""), tower(64, "1")]) {
    for (const body of [event(`"data":${allowed}`), `{"data":${allowed},${event().slice(1)}`]) {
      assert.ok(inspect(body, LIMITS));
    }
  }
  for (
    const refused of [tower(64, '{"a":1}'), tower(65, "{}"), tower(65, " 1 "), tower(700, "1"), tower(200_000, "")]
  ) {
    for (const body of [event(`"data":${refused}`), `{"data":${refused},${event().slice(1)}`]) {
      corrupt(
        body,
        "too-deep",
      );
    }
  }
  for (const body of ["[".repeat(5_000_000), event(`"data":${"[".repeat(200_000)}`), '{"a":'.repeat(1_000_000)]) {
    corrupt(body, "too-deep");
  }
  const wide = `[${Array(5000).fill('{"a":["[[[{{{","\\"[["]}').join(",")}]`;
  assert.ok(inspect(event(`"data":${wide}`), LIMITS));
});

test("inspect: the wire's attempt count is left out, whatever it is", () => {
  for (const count of ["1000000000", "99999999999", "-1", '"x"', "true", "null", "{}"]) {
    for (
      const body of [
        event(`"xsmattempt":${count},"tenant":"x","data":1`),
        event(`"tenant":"x","data":1,"xsmattempt":${count}`),
      ]
    ) {
      assert.equal(inspect(body, LIMITS).text, event('"tenant":"x","data":1'));
    }
  }
});

test("fromInspected: reads canonical text in any order of attributes, data on first access", () => {
  const reordered = '{"type":"t","tenant":"x","id":"1","data":{"a":1}}';
  const envelope = fromInspected(reordered, reordered.indexOf('{"a"'), false);
  assert.equal(envelope.type, "t");
  assert.deepEqual(envelope.extensions, { tenant: "x" });
  assert.deepEqual(envelope.data, { a: 1 });
  assert.equal(envelope.data, envelope.data, "the same object within one delivery");
  const again = fromInspected(reordered, reordered.indexOf('{"a"'), false);
  assert.notEqual(again.data, envelope.data);
});

test("fromInspected: envelopes of several producers do not mix their attributes", () => {
  const bodies = [["/a", "t.one"], ["/b", "t.one"], ["/ab", "t.one.two"], ["/a", "t"]].map(([source, type], i) =>
    [source, type, `{"specversion":"1.0","id":"${i}","source":"${source}","type":"${type}"}`] as const
  );
  for (let round = 0; round < 3; round++) {
    for (const [source, type, body] of bodies) {
      const envelope = decode(body);
      assert.equal(envelope.source, source);
      assert.equal(envelope.type, type);
    }
  }
});
