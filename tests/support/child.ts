/**
 * Child scripts on the runtime that runs the test: for exit codes, leaks, crashes and output.
 *
 * @module
 */
import { type ChildProcess, spawn } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { runtime } from "./runner.ts";

/** How a child script ended. */
export interface ChildResult {
  /** The exit code; null if a signal ended it. */
  readonly code: number | null;
  /** The signal that ended it, or null. */
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Whether it was killed because it ran past its deadline. */
  readonly timedOut: boolean;
  /** How long it ran, milliseconds. */
  readonly ms: number;
}

/** How a child script is run. */
export interface ChildOptions {
  /** It is killed after this many milliseconds; 20,000 by default. */
  readonly timeoutMs?: number;
  /** Its working folder; the test's own by default. */
  readonly cwd?: string;
  /** Arguments for the runtime itself, placed before the script (`--expose-gc`). */
  readonly runtimeArgs?: readonly string[];
}

/** A running child script. */
export interface Child {
  readonly pid: number;
  /** What it wrote so far. */
  readonly stdout: string;
  readonly stderr: string;
  /** Resolves when it ended and all its output was read. Never rejects. */
  readonly done: Promise<ChildResult>;
  /**
   * Resolves with the match once its standard output contains `what`.
   *
   * @throws Error when it ends first, or after `timeoutMs` (10,000 by default); the message holds its output.
   */
  output(what: string | RegExp, timeoutMs?: number): Promise<string>;
  /** Writes to its standard input. */
  write(text: string): void;
  /** Ends its standard input. */
  end(): void;
  /** Sends it a signal, SIGKILL by default; only to this one process. */
  kill(signal?: "SIGTERM" | "SIGKILL" | "SIGINT" | "SIGSTOP" | "SIGCONT"): void;
}

/** Starts `script` (a path or file URL) on this runtime with full permissions. `env` is added to this process's own. */
export function child(
  script: string | URL,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
  options: ChildOptions = {},
): Child {
  const path = script instanceof URL || script.startsWith("file:") ? fileURLToPath(script) : script;
  const own = options.runtimeArgs ?? [];
  const run = { deno: ["run", "-A", "--quiet", ...own], bun: [...own, "run"], node: own }[runtime];
  const started = performance.now();
  const running = spawn(process.execPath, [...run, path, ...args], {
    env: { ...process.env, NO_COLOR: "1", ...env },
    stdio: ["pipe", "pipe", "pipe"],
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  });
  return new RunningChild(running, started, options.timeoutMs ?? 20_000);
}

class RunningChild implements Child {
  readonly done: Promise<ChildResult>;
  readonly #process: ChildProcess;
  readonly #watchers = new Set<() => void>();
  #stdout = "";
  #stderr = "";
  #ended = false;

  constructor(running: ChildProcess, started: number, timeoutMs: number) {
    this.#process = running;
    running.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.#stdout += text;
      this.#notify();
    });
    running.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr += text;
    });
    // A child that is gone does not read any more; its exit code tells what matters.
    running.stdin?.on("error", () => {});
    this.done = new Promise((resolve) => {
      let timedOut = false;
      const timer = setTimeout(() => {
        timedOut = true;
        this.kill("SIGKILL");
      }, timeoutMs);
      const end = (code: number | null, signal: string | null) => {
        clearTimeout(timer);
        this.#ended = true;
        running.stdin?.destroy();
        resolve({
          code,
          signal,
          stdout: this.#stdout,
          stderr: this.#stderr,
          timedOut,
          ms: performance.now() - started,
        });
        this.#notify();
      };
      running.once("close", end);
      running.once("error", (error) => {
        this.#stderr += String(error);
        end(null, null);
      });
    });
  }

  get pid(): number {
    return this.#process.pid ?? -1;
  }

  get stdout(): string {
    return this.#stdout;
  }

  get stderr(): string {
    return this.#stderr;
  }

  output(what: string | RegExp, timeoutMs = 10_000): Promise<string> {
    return new Promise((resolve, reject) => {
      const settle = (run: () => void) => {
        clearTimeout(timer);
        this.#watchers.delete(look);
        run();
      };
      const fail = (why: string) =>
        settle(() => reject(new Error(`${why} ${what}\nstdout: ${this.#stdout}\nstderr: ${this.#stderr}`)));
      const look = () => {
        const found = typeof what === "string"
          ? this.#stdout.includes(what) ? what : undefined
          : this.#stdout.match(what)?.[0];
        if (found !== undefined) settle(() => resolve(found));
        else if (this.#ended) fail("The child ended before it printed");
      };
      const timer = setTimeout(() => fail(`The child did not print within ${timeoutMs} ms`), timeoutMs);
      this.#watchers.add(look);
      look();
    });
  }

  write(text: string): void {
    this.#process.stdin?.write(text);
  }

  end(): void {
    this.#process.stdin?.end();
  }

  kill(signal: "SIGTERM" | "SIGKILL" | "SIGINT" | "SIGSTOP" | "SIGCONT" = "SIGKILL"): void {
    // Not through the child object: on Deno it sends only the first signal, and then reports it as the way the child ended.
    if (!this.#ended) process.kill(this.pid, signal);
  }

  #notify(): void {
    for (const watch of [...this.#watchers]) watch();
  }
}
