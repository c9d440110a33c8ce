import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "../support/test.ts";
import { adapterOf, CLIENTS, forbidden, packageOf, STATIC_CLIENTS } from "./layers.ts";
import { allFiles, type Import, importsOf, isCode, ROOT } from "./sources.ts";

const files = allFiles().filter(isCode);
const imports: ReadonlyMap<string, readonly Import[]> = new Map(files.map((file) => [file, importsOf(file)]));

/** All imports that a check complains about, one line each. */
function complaints(check: (from: string, wanted: Import) => string | undefined): string[] {
  return files.flatMap((from) =>
    imports.get(from)!.flatMap((wanted) => {
      const why = check(from, wanted);
      return why === undefined ? [] : [`${from} imports ${wanted.specifier}: ${why}`];
    })
  );
}

test("every imported file exists and is written with its extension", () => {
  // A test may name a worker that is not there, to see what happens.
  const missing = complaints((from, { file, kind }) =>
    file === undefined || existsSync(join(ROOT, file)) || (kind === "url" && from.startsWith("tests/"))
      ? undefined
      : "there is no such file"
  );
  assert.deepEqual(missing, []);
});

test("the layers import only what lies below them", () => {
  const broken = complaints((from, { file, kind }) =>
    file === undefined || (kind === "url" && from.startsWith("tests/")) ? undefined : forbidden(from, file)
  );
  assert.deepEqual(broken, []);
});

test("a package is imported by its own adapter alone, and lazily", () => {
  const broken = complaints((from, { specifier, kind }) => {
    const name = packageOf(specifier);
    if (name === undefined || !/^(core|workers|adapters|cli)\/|^[^/]+\.ts$/.test(from)) return undefined;
    const adapter = adapterOf(from);
    if (adapter === undefined) return "only an adapter imports a package";
    if (!(CLIENTS[adapter] ?? []).includes(name)) return `${name} is not the client of ${adapter}`;
    if (kind === "static" && !STATIC_CLIENTS.has(adapter)) return "a client is imported by import() inside a function";
    return undefined;
  });
  assert.deepEqual(broken, []);
});

test("an adapter's mod.ts reaches its client by the worker alone", () => {
  const broken: string[] = [];
  for (const from of files.filter((file) => /^adapters\/[^/]+\/mod\.ts$/.test(file))) {
    if (STATIC_CLIENTS.has(adapterOf(from)!)) continue;
    for (const file of reachable(from, ["static", "type"])) {
      for (const { specifier } of imports.get(file) ?? []) {
        if (packageOf(specifier) !== undefined) broken.push(`${from} reaches ${specifier} through ${file}`);
      }
    }
  }
  assert.deepEqual(broken, []);
});

test("no files import each other in a circle", () => {
  const circles: string[] = [];
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]) => {
    if (path.includes(file)) return void circles.push([...path.slice(path.indexOf(file)), file].join(" -> "));
    if (done.has(file)) return;
    for (const { file: next, kind } of imports.get(file) ?? []) {
      if (next !== undefined && (kind === "static" || kind === "type")) visit(next, [...path, file]);
    }
    done.add(file);
  };
  for (const file of files) visit(file, []);
  assert.deepEqual(circles, []);
});

function reachable(from: string, kinds: readonly Import["kind"][]): Set<string> {
  const seen = new Set<string>();
  const queue = [from];
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    if (seen.has(file)) continue;
    seen.add(file);
    for (const { file: next, kind } of imports.get(file) ?? []) {
      if (next !== undefined && kinds.includes(kind)) queue.push(next);
    }
  }
  return seen;
}
