import assert from "node:assert/strict";
import { test } from "../support/test.ts";
import { allFiles, textOf } from "./sources.ts";

test("every test that ARCHITECTURE.md names for a promise exists", () => {
  const [, section = ""] = textOf("ARCHITECTURE.md").split("\n## Where each promise is tested\n");
  const names = [...section.matchAll(/^\| .*$/gm)].flatMap(([row]) => [...row.matchAll(/`([^`]+)`/g)])
    .map(([, name = ""]) => name);
  assert.ok(names.length > 16);
  const tests = allFiles("tests").filter((file) => file.endsWith(".ts")).map(textOf).join("\n");
  assert.deepEqual(names.filter((name) => !tests.includes(JSON.stringify(name))), []);
});
