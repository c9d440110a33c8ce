import assert from "node:assert/strict";
import { test } from "../support/test.ts";
import { allFiles, isLibrary, textOf, withoutComments } from "./sources.ts";

const library = allFiles().filter(isLibrary);

/** Every line of the library's code that matches, as `file:line: text`. */
function hits(pattern: RegExp, allowed: readonly string[]): string[] {
  return library.filter((file) => !allowed.includes(file)).flatMap((file) =>
    withoutComments(textOf(file), true).split("\n").flatMap((line, index) =>
      pattern.test(line) ? [`${file}:${index + 1}: ${line.trim()}`] : []
    )
  );
}

test("time, timers, turns and randomness come from the clock alone", () => {
  const sources = ["Date\\.now", "new Date\\(\\)", "performance\\.now", "Math\\.random", "hrtime", "randomUUID"];
  const timers = "(?:globalThis\\.)?set(?:Timeout|Interval|Immediate)\\b";
  // A member of that name, of our own or of another library's clock, is something else.
  const pattern = new RegExp(`(?<![\\w$#.]|readonly )(?:${sources.join("|")}|${timers}(?!\\s*[?:=]))`);
  assert.deepEqual(hits(pattern, ["core/clock.ts"]).filter((hit) => !hit.startsWith("cli/")), []);
});

test("nothing writes to the console but the logger", () => {
  assert.deepEqual(hits(/(?<![\w$.#])console\b/, ["core/logger.ts"]).filter((hit) => !hit.startsWith("cli/")), []);
});

test("no code waits at the top level of a module, so that CommonJS can require it", () => {
  assert.deepEqual(hits(/^(?:await\b|(?:export )?(?:const|let) [^=]+= await\b|for await\b)/, []), []);
});

test("the library has no file of more than 300 lines", () => {
  const long = library.map((file) => ({ file, lines: textOf(file).split("\n").length - 1 }))
    .filter(({ lines }) => lines > 300)
    .map(({ file, lines }) => `${file}: ${lines}`);
  assert.deepEqual(long, []);
});

test("every error class has a code of its own, and its own name", () => {
  const classes = library.flatMap((file) =>
    [...textOf(file).matchAll(/export (?:abstract )?class (\w+) extends (\w*Error)\b([^]*?)\n\}/g)].map(
      ([, name, base, body = ""]) => ({
        name,
        base,
        code: body.match(/super\(\s*"([a-z-]+)"/)?.[1],
        said: body.match(/override readonly name(?:: [^=]+)? = "(\w+)"/)?.[1],
      }),
    )
  );
  const wrongName = classes.filter(({ name, said, base }) => base === "EdaError" && said !== name).map((c) => c.name);
  assert.deepEqual(wrongName, []);
  const codes = classes.flatMap(({ code }) => code === undefined ? [] : [code]);
  assert.deepEqual(codes.filter((code, index) => codes.indexOf(code) !== index), []);
  const declared = [
    ...(textOf("core/error_base.ts").match(/type ErrorCode =([^;]*);/)?.[1] ?? "").matchAll(/"([a-z-]+)"/g),
  ]
    .map(([, code]) => code!);
  assert.deepEqual(declared, declared.toSorted());
  assert.deepEqual(codes.toSorted(), declared);
});
