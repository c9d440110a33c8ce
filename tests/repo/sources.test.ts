import assert from "node:assert/strict";
import { test } from "../support/test.ts";
import { importsOf, withoutComments } from "./sources.ts";

test("withoutComments blanks comments, keeps code, and is not fooled by strings and patterns", () => {
  const source = [
    'const url = "http://x"; // comment',
    "/* import(1) */ const a = 1 / 2; // two",
    "const pattern = /[/\"']/g; const b = `// ${url}`;",
  ].join("\n");
  const code = withoutComments(source);
  assert.equal(code.split("\n").length, 3);
  assert.match(code, /"http:\/\/x";/);
  assert.match(code, /1 \/ 2;/);
  assert.match(code, /`\/\/ \$\{url\}`/);
  assert.doesNotMatch(code, /comment|import|two/);
  assert.doesNotMatch(withoutComments(source, true), /http|url\}/);
});

test("importsOf sees this file's imports and no others", () => {
  assert.deepEqual(importsOf("tests/repo/sources.test.ts"), [
    { specifier: "node:assert/strict", file: undefined, kind: "static" },
    { specifier: "../support/test.ts", file: "tests/support/test.ts", kind: "static" },
    { specifier: "./sources.ts", file: "tests/repo/sources.ts", kind: "static" },
  ]);
});

test("importsOf tells type imports, lazy imports and worker URLs apart", () => {
  const kinds = importsOf("tests/support/proxy/process.ts");
  assert.ok(kinds.some(({ kind, file }) => kind === "url" && file === "tests/support/proxy/process_main.ts"));
  const types = importsOf("tests/support/bed/kinds.ts");
  assert.ok(types.some(({ kind, file }) => kind === "type" && file === "tests/support/bed/kind.ts"));
  const lazy = importsOf("tests/support/runner.ts");
  assert.ok(lazy.some(({ kind, specifier }) => kind === "lazy" && specifier === "node:test"));
});
