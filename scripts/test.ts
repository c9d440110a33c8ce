/**
 * `deno task test`: the whole suite on Deno, Bun and Node, against the servers of the test bed.
 *
 * @module
 */
import { readdirSync } from "node:fs";
import { join, relative } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { down, status, up, type UpReport } from "../tests/support/bed/bed.ts";
import { must } from "../tests/support/bed/run.ts";
import { sweepPrivate } from "../tests/support/bed/server.ts";
import { leg, legVariable, missingReason } from "../tests/support/legs.ts";
import { fail, type Options, parseOptions } from "./testing/options.ts";
import { countsOf, failureLines, progressLine, skippedLines } from "./testing/report.ts";
import { type FileResult, killRunning, OUT_DIR, runFile } from "./testing/run_file.ts";
import { findRuntime, type Runtime } from "./testing/runtimes.ts";

/** Tests of the repository itself: they need the `deno` program or start the other runtimes themselves. */
const DENO_ONLY = ["tests/repo/", "tests/packaging/"];

const ROOT = fileURLToPath(new URL("..", import.meta.url));

function readOptions(): Options {
  try {
    return parseOptions(process.argv.slice(2), process.env);
  } catch (error) {
    return fail(error);
  }
}

function testFiles(options: Options): string[] {
  const files = readdirSync(join(ROOT, "tests"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".test.ts"))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)).replaceAll("\\", "/"))
    .sort();
  const wanted = options.paths.map((path) => path.replace(/^\.\//, ""));
  return wanted.length === 0 ? files : files.filter((file) => wanted.some((path) => file.includes(path)));
}

/** Files whose name says so run with nothing beside them: they measure time. */
const isSerial = (file: string): boolean => file.endsWith(".serial.test.ts");

async function runLeg(runtime: Runtime, files: readonly string[], options: Options): Promise<FileResult[]> {
  const results: FileResult[] = [];
  const end = performance.now() + options.legMs;
  const one = async (file: string) => {
    const timeoutMs = Math.min(options.fileMs, end - performance.now());
    const result = timeoutMs > 0
      ? await runFile(runtime, file, { timeoutMs, name: options.name, outDir: join(ROOT, OUT_DIR) })
      : notRun(runtime, file);
    results.push(result);
    if (options.name === undefined || result.tests.length > 0) {
      console.log(progressLine(results.length, files.length, result));
    }
  };
  const queue = files.filter((file) => !isSerial(file));
  const worker = async () => {
    for (let file = queue.shift(); file !== undefined; file = queue.shift()) await one(file);
  };
  await Promise.all(Array.from({ length: options.jobs }, worker));
  for (const file of files.filter(isSerial)) await one(file);
  return results;
}

function notRun(runtime: Runtime, file: string): FileResult {
  const trouble = "not run: the time for this runtime was over";
  return { runtime: runtime.name, file, tests: [], trouble, output: "", log: "", ms: 0 };
}

async function startBed(options: Options): Promise<UpReport | undefined> {
  if (!options.bed) return undefined;
  const { install, legs } = options;
  const report = await up({ install, log: (line) => console.log(line), ...(legs === undefined ? {} : { legs }) });
  for (const line of status()) console.log(`leg ${line}`);
  return report;
}

/** Gives the legs to the tests by the same variables by which a user gives them. */
function exportLegs(names: readonly string[]): void {
  for (const name of names) {
    const url = leg(name)?.url;
    if (url !== undefined) process.env[legVariable(name)] = url;
  }
}

async function main(): Promise<number> {
  process.chdir(ROOT);
  const options = readOptions();
  const files = testFiles(options);
  if (files.length === 0) fail(new TypeError("No test file matches"));
  const results: FileResult[] = [];
  let bed: UpReport | undefined;
  const stop = async () => {
    killRunning();
    if (bed !== undefined && bed.started.length > 0 && !options.keep) await down();
    else await sweepPrivate();
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => void stop().finally(() => process.exit(130)));
  }
  const missing: string[] = [];
  try {
    bed = await startBed(options);
    for (const name of options.require) {
      if (leg(name) === undefined) missing.push(`${name}: ${missingReason(name)}`);
    }
    exportLegs([...status().map((line) => line.slice(0, line.indexOf(":"))), ...options.require]);
    // Bun and Node resolve packages from the folder that Deno fills.
    await must(process.execPath, ["install", "--quiet"], { tries: 4, timeoutMs: 300_000 });
    for (const name of options.runtimes) {
      const own = name === "deno" ? files : files.filter((file) => !DENO_ONLY.some((dir) => file.startsWith(dir)));
      if (own.length === 0) continue;
      const runtime = await findRuntime(name, options.ranges[name]);
      console.log(`\n${name} ${runtime.version}`);
      const started = performance.now();
      const done = await runLeg(runtime, own, options);
      const { passed, failed, skipped } = countsOf(done);
      const seconds = ((performance.now() - started) / 1000).toFixed(0);
      console.log(`${name} ${runtime.version}: ${passed} passed, ${failed} failed, ${skipped} skipped in ${seconds} s`);
      results.push(...done);
    }
  } finally {
    await stop();
  }
  return report(results, bed?.missing ?? {}, missing);
}

function report(
  results: readonly FileResult[],
  absent: Readonly<Record<string, string>>,
  missing: readonly string[],
): number {
  for (const result of results) for (const line of failureLines(result)) console.log(line);
  console.log();
  for (const line of skippedLines(results)) console.log(line);
  for (const [name, reason] of Object.entries(absent)) console.log(`Missing leg ${name}: ${reason}`);
  for (const line of missing) console.log(`FAILED: a required leg is missing: ${line}`);
  const counts = countsOf(results);
  const failed = counts.failed + missing.length;
  if (counts.skipped > 0) console.log(`${counts.skipped} skipped, listed above`);
  console.log(`\n${counts.passed} passed, ${failed} failed`);
  return failed === 0 && counts.passed > 0 ? 0 : 1;
}

process.exit(await main());
