/**
 * Leaks: what stays after work that should leave nothing.
 *
 * @module
 */
import { readdirSync, readlinkSync } from "node:fs";
import process from "node:process";
import { child, type ChildOptions, type ChildResult } from "./child.ts";
import { until } from "./wait.ts";

/** How {@link assertExits} runs a script. */
export interface ExitOptions extends ChildOptions {
  /** How long the script may take to end after it printed `done`, milliseconds; 2,000 by default. */
  readonly withinMs?: number;
}

/** The line by which a script says that its work is over and only its own end is left. */
export const DONE = "done";

/**
 * Runs `script` on this runtime and asserts that it ends by itself, with exit code 0, soon after it printed the line
 * `done`. A socket, timer, worker or server left open keeps it alive, on every runtime.
 *
 * @throws Error that holds the script's output.
 */
export async function assertExits(
  script: string | URL,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
  options: ExitOptions = {},
): Promise<ChildResult> {
  const withinMs = options.withinMs ?? 2_000;
  const running = child(script, args, env, options);
  await running.output(new RegExp(`^${DONE}$`, "m"), options.timeoutMs ?? 20_000);
  const timer = setTimeout(() => running.kill(), withinMs);
  const result = await running.done;
  clearTimeout(timer);
  if (result.code === 0) return result;
  const how = result.code === null
    ? `did not end within ${withinMs} ms of "${DONE}"`
    : `ended with code ${result.code}`;
  throw new Error(`The script ${how}\nstdout: ${result.stdout}\nstderr: ${result.stderr}`);
}

/** How {@link leakCheck} measures. */
export interface LeakOptions {
  /** How often the work is done between the two measurements; 10 by default. */
  readonly cycles?: number;
  /** How often it is done before the first one, so that what is made once and kept does not count; 2 by default. */
  readonly warmUp?: number;
}

/**
 * Does the same work several times and asserts that nothing grows with it: open files and sockets, threads (both as Linux
 * counts them), and on Node the resources that keep the event loop alive. What grows by one or more a cycle is a leak;
 * less is the runtime's own pools.
 *
 * @throws Error naming what grew.
 */
export async function leakCheck(work: (cycle: number) => unknown, options: LeakOptions = {}): Promise<void> {
  const { cycles = 10, warmUp = 2 } = options;
  for (let cycle = 0; cycle < warmUp; cycle++) await work(cycle);
  const before = census();
  for (let cycle = 0; cycle < cycles; cycle++) await work(warmUp + cycle);
  let grown: string[] = [];
  const settled = () => {
    const now = census();
    grown = Object.entries(now)
      .filter(([what, count]) => count - (before[what] ?? 0) >= cycles)
      .map(([what, count]) => `${what} from ${before[what] ?? 0} to ${count}`);
    return grown.length === 0;
  };
  try {
    await until(settled, { timeoutMs: 2_000, everyMs: 50, what: "what was opened to be closed" });
  } catch {
    throw new Error(`After ${cycles} cycles there is more than before: ${grown.join(", ")}`);
  }
}

/** How many of each kind of thing this process holds. */
function census(): Record<string, number> {
  const counts: Record<string, number> = {};
  const count = (what: string, by = 1) => counts[what] = (counts[what] ?? 0) + by;
  for (const fd of list("/proc/self/fd")) count(`open ${kindOfFile(fd)}`);
  count("threads", list("/proc/self/task").length);
  if (!("Deno" in globalThis) && !("Bun" in globalThis)) {
    for (const resource of process.getActiveResourcesInfo()) count(`active ${resource}`);
  }
  return counts;
}

function list(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}

function kindOfFile(fd: string): string {
  try {
    const target = readlinkSync(`/proc/self/fd/${fd}`);
    return target.startsWith("/") ? "files" : target.replace(/:?\[.*$/, "");
  } catch {
    return "files";
  }
}
