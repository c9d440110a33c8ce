import assert from "node:assert/strict";
import { skipJson as skipBytes } from "../../core/codec_json.ts";
import { randomFrom, test } from "../support/test.ts";

/** On the bytes of a text, with the zero behind them. */
function skipJson(text: string, at: number, most: number): number {
  return skipBytes(new TextEncoder().encode(`${text}\0`), at, most);
}

/** Whether a whole text is one JSON value. */
function accepts(text: string): boolean {
  return skipJson(text, 0, 64) === new TextEncoder().encode(text).length;
}

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

test("skipJson: accepts and refuses what JSON.parse does, by table", () => {
  const scalars = [
    "0",
    "-0",
    "1.5e+10",
    "1E-2",
    "1e400",
    "true",
    "false",
    "null",
    '""',
    '"\\u00e9\\"\\\\\\/\\b\\f\\n\\r\\t"',
    '"é😀\u2028"',
  ];
  const bad = [
    ...[
      "",
      "-",
      "01",
      "-01",
      "1.",
      ".5",
      "1e",
      "1e+",
      "+1",
      "0x1",
      "NaN",
      "Infinity",
      "tru",
      "nul",
      "True",
      "undefined",
    ],
    ...[
      '"',
      '"a',
      '"\\',
      '"\\u00g0"',
      '"\\u00',
      '"\\x"',
      '"\n"',
      '"\u0000"',
      "'a'",
      "{",
      "[",
      "[1",
      "[1,",
      "[1,]",
      "[,]",
    ],
    ...[
      "{]",
      "[}",
      '{"a"',
      '{"a":',
      '{"a":1',
      '{"a":1,',
      '{"a":1,}',
      "{a:1}",
      '{"a" 1}',
      "{,}",
      "[1 2]",
      "1 2",
      "]",
      "}",
      ",",
      ":",
    ],
    ...["\u00a01", "1\u00a0", "\u000b1", "[\u000c]", "\ufeff1", "[1]]", "{}}"],
  ];
  const good = [
    ...scalars,
    ...scalars.map((value) => `[${value}]`),
    ...scalars.map((value) => `{ "a" :\t${value}\n, "b":[ ${value} , {} ] }`),
  ];
  for (const text of good) assert.ok(parses(text) && accepts(text), text);
  for (const text of bad) assert.ok(!parses(text) && !accepts(text), text);
});

test("skipJson: stops behind the value and leaves the rest alone", () => {
  assert.equal(skipJson('x{"a":[1]},"b"', 1, 64), 10);
  assert.equal(skipJson("12,", 0, 64), 2);
});

test("skipJson: a value deeper than the limit is refused, an empty container at the limit is not", () => {
  const tower = (levels: number, inside: string): string => `${"[".repeat(levels)}${inside}${"]".repeat(levels)}`;
  for (const text of [tower(64, "1"), tower(65, ""), tower(64, "{}"), tower(65, " ")]) assert.ok(accepts(text), text);
  for (const text of [tower(65, "1"), tower(66, ""), tower(64, '{"a":1}'), "[".repeat(5_000_000)]) {
    assert.ok(!accepts(text));
  }
});

test("skipJson: agrees with JSON.parse on mutated texts", () => {
  const random = randomFrom(7);
  const pick = (below: number): number => Math.floor(random() * below);
  const seeds = [
    '{"a":[1,-2.5e3,true,null,"x\\"y\\u00e9"],"b":{},"c":[[],{"d":false}]}',
    '[ 0 , "" , { "k" : [ "\\\\" ] } ]',
    "-12.75E+2",
    '"plain é \\/ text"',
  ];
  const pieces = [
    ...'{}[]",:\\ \n\t\u0000\u00e9019-+.eEtfnu/',
    "true",
    "null",
    "false",
    '\\"',
    "\\u00ff",
    '"k":',
    "[]",
    "{}",
    "1,",
  ];
  let both = 0;
  for (let round = 0; round < 60_000; round++) {
    let text = seeds[pick(seeds.length)] ?? "";
    for (let change = pick(3); change >= 0; change--) {
      const at = pick(text.length + 1);
      const piece = pieces[pick(pieces.length)] ?? "";
      text = text.slice(0, at) + piece + text.slice(at + pick(2) * (1 + pick(2)));
    }
    // Space around the root is the caller's business.
    text = text.replace(/^[ \n\r\t]+|[ \n\r\t]+$/g, "");
    assert.equal(accepts(text), parses(text), JSON.stringify(text));
    if (accepts(text)) both++;
  }
  assert.ok(both > 5000, `only ${both} valid texts`);
});
