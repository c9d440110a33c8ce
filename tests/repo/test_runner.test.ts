import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { testCases } from "../../scripts/testing/junit.ts";
import { parseOptions } from "../../scripts/testing/options.ts";
import { countsOf, failureLines, skippedLines } from "../../scripts/testing/report.ts";
import { type FileResult, runFile } from "../../scripts/testing/run_file.ts";
import { findRuntime, NEWEST, type RuntimeName } from "../../scripts/testing/runtimes.ts";
import { test, type TestContext } from "../support/test.ts";

const FILES = {
  "mixed.test.ts": `import { test } from "SHIM";
    test('good "one" <&>', () => {});
    test("bad", () => { throw new Error("as expected"); });
    test("left out", { skip: "no server (here)" }, () => {});`,
  "crash.test.ts": `import { test } from "SHIM";
    test("never seen", () => new Promise((resolve) => setTimeout(resolve, 1)));
    throw new Error("while loading");`,
  "hang.test.ts": `import { test } from "SHIM";
    test("waits", { timeoutMs: 60_000 }, () => new Promise((resolve) => setTimeout(resolve, 50_000)));`,
  "empty.test.ts": `export {};`,
};

function scratch(context: TestContext): string {
  mkdirSync(".tmp", { recursive: true });
  const dir = mkdtempSync(join(".tmp", "runner-"));
  context.cleanup(() => rmSync(dir, { recursive: true }));
  for (const [name, text] of Object.entries(FILES)) {
    writeFileSync(join(dir, name), text.replace("SHIM", "../../tests/support/test.ts"));
  }
  return dir;
}

for (const name of ["deno", "bun", "node"] as RuntimeName[]) {
  test(`the run on ${name} tells passed, failed, skipped, crashed, hanging and empty files apart`, {
    timeoutMs: 120_000,
  }, async (context) => {
    const dir = scratch(context);
    const runtime = await findRuntime(name, NEWEST[name]);
    const run = (file: string, timeoutMs = 30_000): Promise<FileResult> =>
      runFile(runtime, join(dir, file), { timeoutMs, outDir: join(dir, "out") });

    const mixed = await run("mixed.test.ts");
    assert.deepEqual(mixed.tests, [
      { name: 'good "one" <&>', outcome: "passed", reason: "" },
      { name: "bad", outcome: "failed", reason: "" },
      { name: "left out", outcome: "skipped", reason: "no server (here)" },
    ]);
    assert.equal(mixed.trouble, undefined);
    assert.match(failureLines(mixed).join("\n"), /FAILED on \w+: .*mixed\.test\.ts\n {2}- bad\n[^]*as expected/);
    assert.deepEqual(skippedLines([mixed]), ["Skipped: no server (here)", `  - left out (${name})`]);

    const crash = await run("crash.test.ts");
    assert.ok(countsOf([crash]).failed > 0);
    assert.match(failureLines(crash).join("\n"), /while loading/);

    const hang = await run("hang.test.ts", 2_000);
    assert.match(hang.trouble ?? "", /did not end within 2 s/);
    assert.equal(countsOf([hang]).failed, 1);

    const empty = await run("empty.test.ts");
    assert.notEqual(empty.trouble, undefined);
  });
}

test("a report that was cut off gives the tests that it holds whole", () => {
  const xml = `<testsuites><testcase name="a" time="1"/><testcase name="b"><failure message="x"`;
  assert.deepEqual(testCases(xml), [{ name: "a", outcome: "passed", reason: "" }]);
});

test("the command line is read, and what it does not know is named", () => {
  const options = parseOptions([
    "core/",
    "--runtime",
    "bun,node",
    "--node=22.18",
    "--name",
    "a b",
    "--legs",
    "sqs,redis",
  ], {
    XSM_REQUIRE: "redis, valkey",
    XSM_BED_INSTALL: "1",
  });
  assert.deepEqual(options.paths, ["core/"]);
  assert.deepEqual(options.runtimes, ["bun", "node"]);
  assert.deepEqual([options.ranges.node, options.name, options.install], ["22.18", "a b", true]);
  assert.deepEqual(options.require, ["redis", "valkey"]);
  assert.deepEqual(options.legs, ["sqs", "redis"]);
  assert.equal(parseOptions([], {}).legs, undefined);
  assert.throws(() => parseOptions(["--nme"], {}), /Unknown option --nme/);
  assert.throws(() => parseOptions(["--runtime", "rhino"], {}), /Unknown runtime "rhino"/);
});
