/**
 * CPU time. `process.cpuUsage` counts the whole process, workers and helpers of the engine included; what a benchmark of the
 * host needs is the calling thread alone: `process.threadCpuUsage` (Node 24, Deno, Bun), else Linux's own count of the thread.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import process from "node:process";

interface Usage {
  readonly user: number;
  readonly system: number;
}

const threadUsage = (process as { readonly threadCpuUsage?: () => Usage }).threadCpuUsage?.bind(process);

/** CPU time of the calling thread so far, microseconds; NaN where neither way exists. */
export function threadCpu(): number {
  try {
    // The kernel's count is in nanoseconds; that of getrusage moves in ticks on some kernels.
    return Number(readFileSync("/proc/thread-self/schedstat", "utf8").split(" ")[0]) / 1_000;
  } catch {
    if (threadUsage === undefined) return NaN;
    const { user, system } = threadUsage();
    return user + system;
  }
}

/** CPU time of the process so far, microseconds. */
export function processCpu(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/** Resident memory of the process, MB. */
export function residentMb(): number {
  return process.memoryUsage().rss / 1024 / 1024;
}

let turnsPerMicrosecond = 0;
let sink = 0;

function spin(turns: number): number {
  let x = sink | 1;
  for (let n = 0; n < turns; n++) x = (Math.imul(x, 1_664_525) + 1_013_904_223) | 0;
  return x;
}

/** Finds out how fast {@link work} is; the fastest of many tries, so that another process does not make it look slow. */
export function calibrate(): void {
  const turns = 20_000;
  for (let n = 0; n < 400; n++) sink = spin(turns);
  let best = Infinity;
  for (let n = 0; n < 400; n++) {
    const started = performance.now();
    sink = spin(turns);
    const took = performance.now() - started;
    if (took > 0 && took < best) best = took;
  }
  turnsPerMicrosecond = turns / (best * 1_000);
}

/** Burns so many microseconds of CPU; the same instructions for everybody who calls it. */
export function work(microseconds: number): void {
  sink = spin(Math.round(microseconds * turnsPerMicrosecond));
}
