/**
 * The test bed: one server per leg, shared by all tests, which outlives the process that starts it.
 *
 * @module
 */
import process from "node:process";
import type { Binary, ServerKind } from "./kind.ts";
import { kinds } from "./kinds.ts";
import { locked } from "./lock.ts";
import { endProcess, makeDataDir, removeDir, startProcess } from "./process.ts";
import { debianCodename, isRoot } from "./run.ts";
import { sweepPrivate } from "./server.ts";
import { type BedLeg, bedState, clearBedState, isRunning, writeBedState } from "./state.ts";

/** What {@link up} does. */
export interface UpOptions {
  /** Only these legs; all by default. */
  readonly legs?: readonly string[];
  /** Whether to install what is missing. */
  readonly install?: boolean;
  /** Told what goes on. */
  readonly log?: (line: string) => void;
}

/** What {@link up} did. */
export interface UpReport {
  /** Legs that this call started. */
  readonly started: readonly string[];
  /** Legs that ran already. */
  readonly running: readonly string[];
  /** Legs that the user gives by an environment variable; the bed leaves them alone. */
  readonly given: readonly string[];
  /** Legs that cannot be had, with the reason. */
  readonly missing: Readonly<Record<string, string>>;
}

/** Starts every leg that does not run yet. Legs that cannot start are reported, not thrown. */
export async function up(options: UpOptions = {}): Promise<UpReport> {
  const log = options.log ?? (() => {});
  return await locked(async () => {
    const state = bedState();
    const legs: Record<string, BedLeg> = { ...state?.legs };
    const missing: Record<string, string> = { ...state?.missing };
    const started: string[] = [];
    const running: string[] = [];
    const given: string[] = [];
    for (const kind of kinds) {
      if (options.legs !== undefined && !options.legs.includes(kind.name)) continue;
      delete missing[kind.name];
      if (process.env[kind.env]) {
        given.push(kind.name);
        continue;
      }
      if (legs[kind.name] !== undefined) {
        running.push(kind.name);
        continue;
      }
      try {
        const binary = await obtain(kind, options.install === true, log);
        legs[kind.name] = await startLeg(kind, binary);
        started.push(kind.name);
      } catch (error) {
        missing[kind.name] = (error as Error).message;
      }
      writeBedState({ legs, missing });
    }
    writeBedState({ legs, missing });
    return { started, running, given, missing };
  });
}

async function startLeg(kind: ServerKind, binary: Binary): Promise<BedLeg> {
  const dir = makeDataDir(binary, kind.name);
  const { pid, port, startTicks } = await startProcess(kind, binary, dir);
  return { url: kind.url(port, false), pid, port, dir, startTicks, version: await kind.version(binary) };
}

async function obtain(kind: ServerKind, install: boolean, log: (line: string) => void): Promise<Binary> {
  const found = kind.find();
  if (found !== undefined) return found;
  if (!install) throw new Error(`needs ${kind.needs}; \`deno task bed up --install\` installs it on Debian as root`);
  if (debianCodename() === undefined || !isRoot()) {
    throw new Error(`needs ${kind.needs}; installing it takes Debian and root`);
  }
  log(`installing ${kind.name}`);
  await kind.install();
  const installed = kind.find();
  if (installed === undefined) throw new Error(`${kind.name} was installed and is not found`);
  return installed;
}

/** Ends every server that the bed started and removes its data. What was installed stays. */
export async function down(log: (line: string) => void = () => {}): Promise<void> {
  await locked(async () => {
    const state = bedState();
    for (const [name, leg] of Object.entries(state?.legs ?? {})) {
      await endProcess(leg.pid, leg.startTicks);
      removeDir(leg.dir);
      log(`${name} ended`);
    }
    clearBedState();
  });
  await sweepPrivate();
}

/** One line a leg: what runs, where, and what is missing. */
export function status(): string[] {
  const state = bedState();
  return kinds.map((kind) => {
    const leg = state?.legs[kind.name];
    if (process.env[kind.env]) return `${kind.name}: given by ${kind.env}`;
    if (leg !== undefined && isRunning(leg)) {
      return `${kind.name}: ${leg.version} on port ${leg.port}, process ${leg.pid}, data in ${leg.dir}`;
    }
    return `${kind.name}: not running${state?.missing[kind.name] ? ` (${state.missing[kind.name]})` : ""}`;
  });
}
