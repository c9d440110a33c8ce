/**
 * One `test` over the native runner of each runtime: `Deno.test`, `bun:test`, `node:test`.
 *
 * @module
 */
/** Where the tests run. */
export type Runtime = "deno" | "bun" | "node";

/** The runtime of this process. */
export const runtime: Runtime = "Deno" in globalThis ? "deno" : "Bun" in globalThis ? "bun" : "node";

/** What a test may need besides its body. */
export interface TestOptions {
  /** The test fails after this many milliseconds; 30,000 by default. */
  readonly timeoutMs?: number;
  /** Why the test cannot run here. It is registered as skipped and listed with this reason at the end of the run. */
  readonly skip?: string | undefined;
  /** `false` turns off Deno's checks for leaked operations, resources and exit; for clients that leak by themselves. */
  readonly sanitize?: false;
}

/** What a test body is given. */
export interface TestContext {
  /** The whole name of the test. */
  readonly name: string;
  /** Aborts when the test ran out of time. */
  readonly signal: AbortSignal;
  /** Runs `fn` when the test ends, however it ends; the last one registered runs first. */
  cleanup(fn: () => unknown): void;
}

/** The body of a test. */
export type TestBody = (context: TestContext) => unknown;

const DEFAULT_TIMEOUT_MS = 30_000;
/** What the native runner grants on top, so that the time limit here (which runs the cleanups) always comes first. */
const GRACE_MS = 15_000;

type Register = (name: string, body: () => Promise<void>, options: TestOptions) => void;

const register: Register = await nativeRegister();

/** Registers a test. It runs alone in its process: tests of one file run one after another. */
export function test(name: string, fn: TestBody): void;
/** Registers a test with options. */
export function test(name: string, options: TestOptions, fn: TestBody): void;
export function test(name: string, second: TestOptions | TestBody, third?: TestBody): void {
  const options = typeof second === "function" ? {} : second;
  const fn = typeof second === "function" ? second : third;
  if (fn === undefined) throw new TypeError(`Test "${name}" has no body`);
  register(titleOf(name, options.skip), () => runBody(name, fn, options.timeoutMs ?? DEFAULT_TIMEOUT_MS), options);
}

/** Two of the three runners drop a reason in their report, so it travels in the name. */
function titleOf(name: string, skip: string | undefined): string {
  return skip === undefined ? name : `${name} [skipped: ${skip}]`;
}

async function runBody(name: string, fn: TestBody, timeoutMs: number): Promise<void> {
  const stop = new AbortController();
  const cleanups: (() => unknown)[] = [];
  const context: TestContext = { name, signal: stop.signal, cleanup: (run) => void cleanups.push(run) };
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const error = new Error(`Test "${name}" did not end within ${timeoutMs} ms`);
      reject(error);
      stop.abort(error);
    }, timeoutMs);
  });
  const failures: unknown[] = [];
  try {
    await Promise.race([(async () => await fn(context))(), late]);
  } catch (error) {
    failures.push(error);
  } finally {
    clearTimeout(timer);
  }
  for (const run of cleanups.reverse()) {
    try {
      await run();
    } catch (error) {
      failures.push(error);
    }
  }
  // What was put off to the next turn of the event loop may still run: that is no leak, but older Denos take it for a timer.
  await new Promise((resolve) => setTimeout(resolve, 1));
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) throw new AggregateError(failures, `${failures.length} failures in test "${name}"`);
}

async function nativeRegister(): Promise<Register> {
  if (runtime === "deno") {
    return (name, body, { skip, sanitize }) => {
      const check = sanitize !== false;
      const ignore = skip !== undefined;
      Deno.test({ name, ignore, fn: body, sanitizeOps: check, sanitizeResources: check, sanitizeExit: check });
    };
  }
  if (runtime === "bun") {
    // Not a literal: the other runtimes would look the module up when they load this file.
    const name = ["bun", "test"].join(":");
    const bun = await import(name) as { test: BunTest };
    return (name, body, { skip, timeoutMs }) =>
      skip === undefined
        ? bun.test(name, body, (timeoutMs ?? DEFAULT_TIMEOUT_MS) + GRACE_MS)
        : bun.test.skip(name, body);
  }
  const node = await import("node:test");
  return (name, body, { skip, timeoutMs }) => {
    const timeout = (timeoutMs ?? DEFAULT_TIMEOUT_MS) + GRACE_MS;
    void node.test(name, skip === undefined ? { timeout } : { timeout, skip }, () => body());
  };
}

interface BunTest {
  (name: string, body: () => Promise<void>, timeoutMs: number): void;
  skip(name: string, body: () => Promise<void>): void;
}
