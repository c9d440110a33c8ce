/**
 * One process at a time changes the bed.
 *
 * @module
 */
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { bedDir, startTicksOf } from "./state.ts";

/** How old a lock without an owner's name must be before it is broken. */
const UNSIGNED_MS = 10_000;

/** Runs `work` while no other process changes the bed. A lock whose owner is gone is taken over. */
export async function locked<T>(work: () => Promise<T>): Promise<T> {
  mkdirSync(bedDir(), { recursive: true, mode: 0o700 });
  const file = join(bedDir(), "lock");
  const owner = JSON.stringify({ pid: process.pid, startTicks: startTicksOf(process.pid) });
  while (!take(file, owner)) {
    if (isStale(file)) rmSync(file, { force: true });
    else await new Promise((resolve) => setTimeout(resolve, 200));
  }
  try {
    return await work();
  } finally {
    rmSync(file, { force: true });
  }
}

function take(file: string, owner: string): boolean {
  try {
    writeFileSync(file, owner, { flag: "wx" });
    return true;
  } catch {
    return false;
  }
}

function isStale(file: string): boolean {
  try {
    const { pid, startTicks } = JSON.parse(readFileSync(file, "utf8")) as { pid: number; startTicks: string };
    return startTicksOf(pid) !== startTicks;
  } catch {
    try {
      return Date.now() - statSync(file).mtimeMs > UNSIGNED_MS;
    } catch {
      return false;
    }
  }
}
