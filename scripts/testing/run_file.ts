/**
 * Running one test file in a process of its own.
 *
 * @module
 */
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import process from "node:process";
import { type TestCase, testCases } from "./junit.ts";
import { type Runtime, testCommand } from "./runtimes.ts";

/** What one file did on one runtime. */
export interface FileResult {
  readonly runtime: string;
  readonly file: string;
  readonly tests: readonly TestCase[];
  /** What is wrong with the run itself, beyond failed tests: a crash, a process that does not end, no test at all. */
  readonly trouble: string | undefined;
  /** Standard output and error as they came. */
  readonly output: string;
  /** Where the output is kept. */
  readonly log: string;
  readonly ms: number;
}

/** How a file is run. */
export interface FileOptions {
  /** The process is killed after this many milliseconds. */
  readonly timeoutMs: number;
  /** Only tests whose name matches this regular expression. */
  readonly name?: string | undefined;
  /** Where reports and logs go. */
  readonly outDir: string;
}

/** Process groups of test files that run now. */
const groups = new Set<number>();

/** Ends every test file that runs now, with the processes it started. */
export function killRunning(): void {
  for (const group of groups) killGroup(group);
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // Gone.
  }
}

/** Runs one file and resolves to what it did; never rejects. */
export async function runFile(runtime: Runtime, file: string, options: FileOptions): Promise<FileResult> {
  const base = resolve(options.outDir, runtime.name, file);
  const report = `${base}.xml`;
  mkdirSync(dirname(base), { recursive: true });
  rmSync(report, { force: true });
  const started = performance.now();
  const end = await runProcess(runtime, testCommand(runtime.name, file, report, options.name), options.timeoutMs);
  const log = `${base}.log`;
  writeFileSync(log, end.output);
  const tests = readReport(report);
  const failed = tests.some((test) => test.outcome === "failed");
  return {
    runtime: runtime.name,
    file,
    tests,
    trouble: troubleOf(end, tests.length, failed, options),
    output: end.output,
    log,
    ms: performance.now() - started,
  };
}

interface ProcessEnd {
  readonly code: number | null;
  readonly signal: string | null;
  readonly timedOut: boolean;
  readonly output: string;
}

function runProcess(runtime: Runtime, args: readonly string[], timeoutMs: number): Promise<ProcessEnd> {
  return new Promise((done) => {
    // A group of its own: whatever the file starts and forgets ends with it.
    const running = spawn(runtime.program, args, {
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, NO_COLOR: "1", DENO_NO_UPDATE_CHECK: "1" },
    });
    const { pid } = running;
    if (pid !== undefined) groups.add(pid);
    let output = "";
    let timedOut = false;
    for (const stream of [running.stdout, running.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => output += text);
    }
    const timer = setTimeout(() => {
      timedOut = true;
      if (pid !== undefined) killGroup(pid);
    }, timeoutMs);
    const end = (code: number | null, signal: string | null) => {
      clearTimeout(timer);
      if (pid !== undefined) {
        killGroup(pid);
        groups.delete(pid);
      }
      done({ code, signal, timedOut, output });
    };
    running.once("error", (error) => {
      output += String(error);
      end(null, null);
    });
    // Not "close": a forgotten grandchild holds the pipes open.
    running.once("exit", (code, signal) => setTimeout(() => end(code, signal), 50));
  });
}

function readReport(report: string): TestCase[] {
  try {
    return testCases(readFileSync(report, "utf8"));
  } catch {
    return [];
  }
}

function troubleOf(end: ProcessEnd, count: number, failed: boolean, options: FileOptions): string | undefined {
  if (end.timedOut) return `the process did not end within ${options.timeoutMs / 1000} s`;
  if (options.name !== undefined && count === 0) return undefined;
  if (end.code !== 0 && !failed) return `the process ended with ${end.signal ?? `code ${end.code}`}`;
  return count === 0 ? "no test ran" : undefined;
}

/** Where reports and logs go, under the repository. */
export const OUT_DIR: string = join(".tmp", "test");
