/**
 * The processes of one server: the one that was started, what it started, and what of that went its own way.
 *
 * @module
 */
import { readdirSync, readFileSync } from "node:fs";
import process from "node:process";
import { startTicksOf } from "./state.ts";

/** The environment variable that marks every process of a server: daemons that leave their parent keep it. */
export const MARK = "XSM_BED_SERVER";

/** One process, told from a later one with its id. */
export interface Member {
  readonly pid: number;
  readonly startTicks: string;
}

/**
 * All living processes that belong to the server in the data folder `dir` besides its own process `pid`: what descends
 * from that, and what carries its mark. `pid` is undefined once that process is gone: its number may be another's by now.
 * Empty where the system has no `/proc`.
 */
export function relativesOf(pid: number | undefined, dir: string): Member[] {
  const parents = new Map<number, number>();
  const found = new Set<number>();
  for (const name of processes()) {
    const other = Number(name);
    if (other === pid || other === process.pid) continue;
    const parent = parentOf(other);
    if (parent === undefined) continue;
    parents.set(other, parent);
    if (isMarked(other, dir)) found.add(other);
  }
  for (const other of pid === undefined ? [] : parents.keys()) {
    let above: number | undefined = other;
    while (above !== undefined && above !== pid && above > 1) above = parents.get(above);
    if (above === pid) found.add(other);
  }
  return [...found].flatMap((other) => {
    const startTicks = startTicksOf(other);
    return startTicks === undefined ? [] : [{ pid: other, startTicks }];
  });
}

function processes(): string[] {
  try {
    return readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
}

function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    return undefined;
  }
}

function isMarked(pid: number, dir: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(`${MARK}=${dir}`);
  } catch {
    return false;
  }
}
