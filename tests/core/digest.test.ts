import assert from "node:assert/strict";
import { createEnvelope, decodeEnvelope, withData } from "../../core/codec.ts";
import { fingerprint, sha256Hex } from "../../core/digest.ts";
import type { EnvelopeInit } from "../../core/envelope.ts";
import { test } from "../support/test.ts";

const defaults = { source: "/s", now: () => 0, nextId: () => "1" };
const print = (init: EnvelopeInit): string => fingerprint(createEnvelope(init, defaults, 10_000));
const read = (data: string): string =>
  fingerprint(
    decodeEnvelope(`{"specversion":"1.0","id":"1","source":"/s","type":"t","data":${data}}`, { maxBytes: 10_000 }),
  );

test("sha256Hex: hashes text as UTF-8 and bytes alike", () => {
  assert.equal(sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  assert.equal(sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  assert.equal(sha256Hex("é😀"), sha256Hex(new TextEncoder().encode("é😀")));
  assert.equal(sha256Hex(Uint8Array.of(0, 97, 98, 99).subarray(1)), sha256Hex("abc"));
});

test("fingerprint: the same type and wire data give the same, whatever the other attributes", () => {
  const init = { type: "t", data: { a: 1 } };
  assert.equal(print(init), print({ ...init, id: "2", subject: "o", time: new Date(5), extensions: { n: 1 } }));
  assert.equal(print(init), read('{"a":1}'));
  assert.match(print(init), /^[0-9a-f]{64}$/);
});

test("fingerprint: other types, other data, no data, null and bytes differ", () => {
  const prints = [
    print({ type: "t", data: { a: 1 } }),
    print({ type: "u", data: { a: 1 } }),
    print({ type: "t", data: { a: 2 } }),
    print({ type: "t" }),
    print({ type: "t", data: null }),
    print({ type: "t", data: "AQ==" }),
    print({ type: "t", data: Uint8Array.of(1) }),
    read("1"),
    read("1.0"),
    read("9007199254740993"),
    read("9007199254740992"),
  ];
  assert.equal(new Set(prints).size, prints.length);
});

test("fingerprint: is of the wire, not of what a schema made of it", () => {
  const envelope = createEnvelope({ type: "t", data: { a: 1 } }, defaults, 10_000);
  assert.equal(fingerprint(withData(envelope, { a: 1, filled: true })), fingerprint(envelope));
});
