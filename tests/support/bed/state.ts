/**
 * What the test bed remembers between its starter and its users: one file in a folder of this user's own.
 *
 * @module
 */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";

/** A server that the bed started. */
export interface BedLeg {
  readonly url: string;
  readonly pid: number;
  readonly port: number;
  /** Further ports, by the names in its kind. */
  readonly ports: Readonly<Record<string, number>>;
  /** Its data folder. */
  readonly dir: string;
  readonly version: string;
  /** When the process started, in the operating system's ticks: tells it from a later process of the same id. */
  readonly startTicks: string;
}

/** The state of the bed. */
export interface BedState {
  /** Servers, by the name of their leg. */
  readonly legs: Readonly<Record<string, BedLeg>>;
  /** Paths of programs that are legs without being servers. */
  readonly tools: Readonly<Record<string, string>>;
  /** Legs that could not be had, with the reason. */
  readonly missing: Readonly<Record<string, string>>;
}

/** The bed's own folder: `XSM_BED_DIR`, or one in the system's temporary folder named after the user. */
export function bedDir(): string {
  return process.env.XSM_BED_DIR ?? join(tmpdir(), `xsm-bed-${process.getuid?.() ?? "user"}`);
}

const stateFile = (): string => join(bedDir(), "state.json");

/** The start time of a process, or undefined if it is gone. Empty where the system has no `/proc`. */
export function startTicksOf(pid: number): string | undefined {
  try {
    process.kill(pid, 0);
  } catch {
    return undefined;
  }
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? undefined : fields[19];
  } catch {
    return "";
  }
}

/** Whether the process that the bed started still runs, and is no other one with its id. */
export function isRunning(leg: BedLeg): boolean {
  return startTicksOf(leg.pid) === leg.startTicks;
}

function storedState(): BedState | undefined {
  try {
    return JSON.parse(readFileSync(stateFile(), "utf8")) as BedState;
  } catch {
    return undefined;
  }
}

/** The state of the bed with the legs that run now; undefined if the bed was never started. */
export function bedState(): BedState | undefined {
  const state = storedState();
  if (state === undefined) return undefined;
  return { ...state, legs: Object.fromEntries(Object.entries(state.legs).filter(([, leg]) => isRunning(leg))) };
}

/** Servers of the bed whose process is gone although nobody ended them: data and helpers of them may be left. */
export function fallenLegs(): BedLeg[] {
  return Object.values(storedState()?.legs ?? {}).filter((leg) => !isRunning(leg));
}

/** Replaces the state in one step. */
export function writeBedState(state: BedState): void {
  mkdirSync(bedDir(), { recursive: true, mode: 0o700 });
  const draft = `${stateFile()}.${process.pid}`;
  writeFileSync(draft, JSON.stringify(state, null, 2), { mode: 0o600 });
  renameSync(draft, stateFile());
}

/** Forgets the state. */
export function clearBedState(): void {
  rmSync(stateFile(), { force: true });
}
