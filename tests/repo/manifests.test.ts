import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { jsrManifest, packageManifest, readManifest } from "../../scripts/manifests.ts";
import { test } from "../support/test.ts";
import { allFiles, ROOT, textOf } from "./sources.ts";

const deno = readManifest("deno.json");
const entries = Object.entries(deno.exports as Record<string, string>);

test("jsr.json and package.json repeat deno.json (deno task manifests)", () => {
  assert.deepEqual(readManifest("jsr.json"), jsrManifest());
  assert.deepEqual(readManifest("package.json"), packageManifest());
});

test("every entry point exists and opens with a module doc", () => {
  for (const [name, path] of entries) {
    assert.ok(existsSync(join(ROOT, path)), `${name} is ${path}, which is not there`);
    if (path.endsWith(".js")) continue;
    assert.match(textOf(path), /^(?:\/\/[^\n]*\n)*\/\*\*[^]*?@module[^]*?\*\//, `${path} has no module doc`);
  }
});

test("every adapter is an entry point, and so is its worker", () => {
  const exported = new Set(entries.map(([, path]) => path.replace("./", "")));
  const wanted = allFiles("adapters").filter((file) =>
    /^adapters\/(?!memory\/)[^/]+\/(mod\.ts|\w+_worker\.js)$/.test(file)
  );
  assert.deepEqual(wanted.filter((file) => !exported.has(file)), []);
});

test("what is published is the library, its licence and its readme, and no test but the contract suite", () => {
  const { include } = deno.publish as { include: string[] };
  const published = (file: string) => include.some((path) => file === path || file.startsWith(`${path}/`));
  for (const [name, path] of entries) assert.ok(published(path.replace("./", "")), `${name} is not published`);
  assert.ok(published("LICENSE") && published("README.md"));
  const tests = allFiles("tests").filter(published).filter((file) => !file.startsWith("tests/contract/"));
  assert.deepEqual(tests, []);
});

test("no runtime is a dependency: a copy among the packages would be taken for the real one", () => {
  const { dependencies, devDependencies } = readManifest("package.json") as Record<string, object | undefined>;
  for (const name of ["bun", "deno", "node"]) {
    assert.ok(!(name in { ...dependencies, ...devDependencies, ...deno.imports as object }), name);
  }
});
