/**
 * Runs one benchmark on one runtime in a process of its own.
 *
 * @module
 */
import { type ChildProcess, spawn } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import type { Runtime } from "../../scripts/testing/runtimes.ts";
import type { CaseSettings } from "./case.ts";
import type { Figure } from "./figure.ts";

const CHILD = fileURLToPath(new URL("../child.ts", import.meta.url));

const running = new Set<ChildProcess>();

/** Ends the benchmarks that run now. */
export function endChildren(): void {
  for (const child of running) child.kill("SIGKILL");
}

/** How it is run. */
export interface ChildOptions {
  readonly timeoutMs: number;
  /** Folder for CPU profiles. */
  readonly profile: string | undefined;
}

/** Resolves to the figures. @throws Error when it fails or takes too long. */
export function runChild(
  runtime: Runtime,
  name: string,
  settings: CaseSettings,
  options: ChildOptions,
): Promise<readonly Figure[]> {
  const profile = options.profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${options.profile}`];
  const own = {
    deno: ["run", "-A", "--no-check", "--quiet", "--v8-flags=--expose-gc"],
    bun: ["--expose-gc", "run"],
    node: ["--expose-gc", "--disable-warning=ExperimentalWarning", ...profile],
  }[runtime.name];
  return new Promise((resolve, reject) => {
    const child = spawn(runtime.program, [...own, CHILD, name, JSON.stringify(settings)], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, NO_COLOR: "1", DENO_NO_UPDATE_CHECK: "1" },
    });
    running.add(child);
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => output += text);
    const timer = setTimeout(() => child.kill("SIGKILL"), options.timeoutMs);
    child.once("error", reject);
    child.once("close", (code, signal) => {
      clearTimeout(timer);
      running.delete(child);
      const result = output.match(/^RESULT (.*)$/m)?.[1];
      if (result !== undefined) resolve(JSON.parse(result) as Figure[]);
      else reject(new Error(`${name} on ${runtime.name} ended with ${signal ?? code} and no result`));
    });
  });
}
