import assert from "node:assert/strict";
import { matches, overlap } from "../../core/dispatch/pattern.ts";
import { RouteTable } from "../../core/dispatch/routes.ts";
import { InvalidOptionError } from "../../core/errors.ts";
import { test } from "../support/test.ts";

const MATCHES: readonly (readonly [pattern: string, text: string, matches: boolean])[] = [
  ["a.b", "a.b", true],
  ["a.b", "a.B", false],
  ["a.b", "axb", false],
  ["*", "", true],
  ["*", "a.b/c", true],
  ["a.*", "a.", true],
  ["a.*", "a.b.c", true],
  ["a.*", "a", false],
  ["*.b", "a.c.b", true],
  ["*.b", "b", false],
  ["a*b*c", "a-b-b-c", true],
  ["a*b*c", "a-c-b", false],
  ["**", "x", true],
  ["a?c", "abc", true],
  ["a?c", "a.c", true],
  ["a?c", "ac", false],
  ["a?c", "abbc", false],
  ["?", "😀", true],
  ["??", "😀", false],
  ["*?", "", false],
  ["*?", "x", true],
  ["[ab]", "a", false],
  ["[ab]", "[ab]", true],
  ["a\\*", "a\\x", true],
  ["a+", "aa", false],
];

for (const [pattern, text, expected] of MATCHES) {
  test(`pattern ${JSON.stringify(pattern)} ${expected ? "matches" : "does not match"} ${JSON.stringify(text)}`, () => {
    assert.equal(matches(pattern, text), expected);
  });
}

test("matching a hostile pattern against a long type takes no noticeable time", () => {
  const text = "a".repeat(1_024);
  const started = performance.now();
  assert.equal(matches(`${"*a".repeat(100)}*b`, text), false);
  assert.ok(performance.now() - started < 1_000);
});

const OVERLAPS: readonly (readonly [a: string, b: string, overlap: boolean])[] = [
  ["a.*", "*.b", true],
  ["a.*", "b.*", false],
  ["a.?.c", "a.b.?", true],
  ["a.?.c", "a.b.d", false],
  ["*a", "*b", false],
  ["a*", "*b", true],
  ["?b*", "a?c", true],
  ["ab?", "?bc", true],
  ["*", "?", true],
  ["a*z", "a?", true],
  ["a*z", "ab", false],
  ["*x*", "ay?", true],
];

for (const [a, b, expected] of OVERLAPS) {
  test(`patterns ${a} and ${b} ${expected ? "can" : "cannot"} match one type`, () => {
    assert.equal(overlap(a, b), expected);
    assert.equal(overlap(b, a), expected);
  });
}

test("an exact key beats every pattern, and a longer pattern a shorter one", () => {
  const table = new RouteTable({
    "*": 1,
    "shop.*": 2,
    "shop.order.*": 3,
    "shop.order.placed": 4,
    "shop.*.placed.now": 5,
  });
  assert.equal(table.resolve("shop.order.placed"), 4);
  assert.equal(table.resolve("shop.order.cancelled"), 3);
  assert.equal(table.resolve("shop.mail"), 2);
  assert.equal(table.resolve("shop.order.placed.now"), 5);
  assert.equal(table.resolve("bank"), 1);
  assert.equal(new RouteTable({ "a.*": 1 }).resolve("b"), undefined);
});

test("a type is resolved to the same route however many other types came between", () => {
  const table = new RouteTable({ "a.*": 1, "b.*": 2 });
  for (let n = 0; n < 5_000; n++) table.resolve(`x.${n}`);
  assert.equal(table.resolve("a.x"), 1);
  assert.equal(table.resolve("a.x"), 1);
  assert.equal(table.resolve("x.1"), undefined);
});

test("types with the names of object members are types like others", () => {
  const table = new RouteTable<number>({ "a": 1 });
  for (const type of ["constructor", "__proto__", "toString"]) assert.equal(table.resolve(type), undefined);
});

test("two patterns of one length that can match one type are refused by name", () => {
  assert.throws(
    () => new RouteTable({ "a.*": 1, "*.b": 2 }),
    (error: Error) =>
      error instanceof InvalidOptionError && error.message.includes('"a.*"') && error.message.includes('"*.b"'),
  );
  new RouteTable({ "a.*": 1, "b.*": 2 });
  new RouteTable({ "a.*": 1, "*.bc": 2 });
});

test("an empty key is refused", () => {
  assert.throws(() => new RouteTable({ "": 1 }), InvalidOptionError);
});
