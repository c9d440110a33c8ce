import assert from "node:assert/strict";
import { decodeEnvelope, inspect, textOf } from "../../core/codec.ts";
import { EnvelopeCorruptError, EnvelopeTooLargeError } from "../../core/errors.ts";
import { randomFrom, test } from "../support/test.ts";

const LITERALS: Readonly<Record<string, readonly string[]>> = {
  specversion: ['"1.0"'],
  id: ['"e-1"', '"\\u0031"', '"\\"\\\\"'],
  source: ['"/s"', '"urn:s\\/x"'],
  type: ['"t.a"', '"constructor"'],
  subject: ['"o-1"', "null", '"é😀"', '"\\u00e9"'],
  time: ['"2026-01-31T09:30:00Z"', "null"],
  datacontenttype: ['"application/json"', '"application/x+json; charset=utf-8"', "null"],
  tenant: ['"x"', '""', "null", '"{[,\\""'],
  n: ["7", "-0", "0", "-2147483648"],
  ok: ["false", "true", "null"],
  constructor: ['"x"'],
  data: [
    "1",
    "null",
    "1.0",
    "1E400",
    '"x\\\\"',
    '{"a":[1,2.50,{"b":"\\"}"}],"c":null,"__proto__":1}',
    '[ "]" ,\n{ } ]',
  ],
  data_base64: ['"AQID"', '"\\u002B+++"', "null"],
};
const REQUIRED = ["specversion", "id", "source", "type"];
const OPTIONAL = Object.keys(LITERALS).filter((name) => !REQUIRED.includes(name));

/** A valid event: random members in random order, with or without space between tokens. */
function validEvent(pick: (below: number) => number): string {
  const names = [...REQUIRED, ...OPTIONAL.filter(() => pick(3) === 0)].filter((name, _, all) =>
    name !== "data_base64" || !all.includes("data")
  );
  if (pick(2) === 0) names.sort(() => pick(3) - 1);
  const spaced = pick(2) === 0;
  const space = (): string => spaced ? ["", " ", "\n\t", "\r\n"][pick(4)] ?? "" : "";
  const members = names.map((name) => {
    const literals = LITERALS[name] ?? [];
    return `${space()}"${name}"${space()}:${space()}${literals[pick(literals.length)]}${space()}`;
  });
  return `${space()}{${members.join(",")}}${space()}`;
}

const PIECES = [
  ...'{}[]",:\\ \n\u0000\u0085é0123456789-+.eEtfn/',
  '"data":1,',
  '"data_base64":"AQ==",',
  '"id":null,',
  '"xsmattempt":5,',
  '\\"',
  "\\u0000",
  "\ud83d\ude00",
  "null",
  "true",
  '"__proto__":1,',
  ',"data":{"x":1}',
];

/** What JSON.parse makes of a text; `undefined` = it refuses. Duplicates are gone from it. */
function parsed(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text.replace(/^\ufeff/, ""));
  } catch {
    return undefined;
  }
}

const ATTRIBUTES = Object.keys(LITERALS).filter((name) => !name.startsWith("data"));

function own(object: Record<string, unknown>, name: string): unknown {
  const value = Object.hasOwn(object, name) ? object[name] : undefined;
  return value === 0 ? 0 : value;
}

test("inspect: a valid event is read, a mutated one is refused with a typed error or read as JSON.parse reads it", () => {
  const random = randomFrom(20260131);
  const pick = (below: number): number => Math.floor(random() * below);
  let read = 0;
  for (let round = 0; round < 40_000; round++) {
    let text = validEvent(pick);
    const changes = pick(4);
    for (let change = 0; change < changes; change++) {
      const at = pick(text.length + 1);
      const kind = pick(4);
      const piece = PIECES[pick(PIECES.length)] ?? "";
      if (kind === 0) text = text.slice(0, at) + piece + text.slice(at);
      else if (kind === 1) text = text.slice(0, at) + text.slice(at + 1 + pick(6));
      else if (kind === 2) text = text.slice(0, at) + piece + text.slice(at + piece.length);
      else text = text.slice(0, at) + text.slice(at, at + pick(30)) + text.slice(at);
    }
    let result: ReturnType<typeof inspect>;
    try {
      result = inspect(random() < 0.5 ? text : new TextEncoder().encode(text), { maxBytes: 2000 });
    } catch (error) {
      assert.ok(error instanceof EnvelopeCorruptError || error instanceof EnvelopeTooLargeError, `${text}\n${error}`);
      assert.ok(changes > 0, `${text}\n${error}`);
      continue;
    }
    read++;
    const original = parsed(text.toWellFormed());
    assert.ok(original !== undefined, text);
    const canonical = JSON.parse(result.text);
    for (const name of ATTRIBUTES) {
      assert.deepEqual(own(canonical, name), own(original, name) ?? undefined, text);
    }
    assert.deepEqual(canonical["data"], original["data"], text);
    assert.equal(canonical["data_base64"], original["data_base64"] ?? undefined, text);
    assert.deepEqual(inspect(result.text, { maxBytes: 2000 }), result, "canonical text is canonical");
    if (result.dataAt === -1) assert.ok(!("data" in canonical || "data_base64" in canonical));
    else {
      const literal = result.text.slice(result.dataAt, -1);
      assert.ok(text.includes(literal), "data is a part of what came");
      assert.deepEqual(JSON.parse(literal), result.binary ? original["data_base64"] : original["data"], text);
    }
    const envelope = decodeEnvelope(result.text, { maxBytes: 2000 });
    assert.equal(textOf(envelope), result.text);
    assert.equal(JSON.stringify(envelope), JSON.stringify(canonical), text);
    assert.equal(envelope.id, canonical.id);
    assert.equal(envelope.type, canonical.type);
    if (!result.binary) assert.deepEqual(envelope.data, canonical["data"], text);
  }
  assert.ok(read > 12_000, `only ${read} of 40,000 were read, so little was compared`);
});
