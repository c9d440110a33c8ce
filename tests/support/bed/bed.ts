/**
 * The test bed: one server per leg, shared by all tests, which outlives the process that starts it.
 *
 * @module
 */
import process from "node:process";
import type { ServerKind, ToolKind } from "./kind.ts";
import { kinds, tools } from "./kinds.ts";
import { locked } from "./lock.ts";
import { makeDataDir } from "./inside.ts";
import { endProcess, removeDir, startProcess } from "./process.ts";
import { sweepPrivate } from "./server.ts";
import { type BedLeg, bedState, clearBedState, fallenLegs, isRunning, writeBedState } from "./state.ts";

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

/**
 * Starts every leg that does not run yet. Legs that cannot start are reported, not thrown.
 *
 * @throws TypeError naming a leg that there is not.
 */
export async function up(options: UpOptions = {}): Promise<UpReport> {
  const names = [...kinds, ...tools].map(({ name }) => name);
  for (const name of options.legs ?? []) {
    if (!names.includes(name)) throw new TypeError(`The bed knows no leg "${name}": use ${names.join(", ")}`);
  }
  return await locked(async () => {
    await clearFallen();
    const state = bedState();
    const legs: Record<string, BedLeg> = { ...state?.legs };
    const paths: Record<string, string> = { ...state?.tools };
    const missing: Record<string, string> = { ...state?.missing };
    const report = { started: [] as string[], running: [] as string[], given: [] as string[], missing };
    const save = () => writeBedState({ legs, tools: paths, missing });
    const provide = async (wanted: ServerKind | ToolKind, obtain: () => Promise<void>) => {
      if (options.legs !== undefined && !options.legs.includes(wanted.name)) return;
      delete missing[wanted.name];
      if (process.env[wanted.env]) return void report.given.push(wanted.name);
      if (legs[wanted.name] !== undefined) return void report.running.push(wanted.name);
      try {
        await obtain();
      } catch (error) {
        missing[wanted.name] = (error as Error).message;
      }
      save();
    };
    // Sources are installed beside each other; servers start one after another.
    let starting: Promise<unknown> = Promise.resolve();
    const startInTurn = (kind: ServerKind): Promise<BedLeg> => {
      const leg = starting.then(() => startLeg(kind));
      starting = leg.catch(() => {});
      return leg;
    };
    await Promise.all([
      ...kinds.map((kind) =>
        provide(kind, async () => {
          if (kind.find() === undefined) await install(kind, options);
          legs[kind.name] = await startInTurn(kind);
          report.started.push(kind.name);
        })
      ),
      ...tools.map((tool) =>
        provide(tool, async () => {
          if (tool.find() === undefined) await install(tool, options);
          paths[tool.name] = tool.find()!;
        })
      ),
    ]);
    save();
    return report;
  });
}

async function clearFallen(): Promise<void> {
  for (const leg of fallenLegs()) {
    await endProcess(leg);
    removeDir(leg.dir);
  }
}

async function startLeg(kind: ServerKind): Promise<BedLeg> {
  const binary = kind.find()!;
  const dir = makeDataDir(binary, kind.name, kind.user);
  const started = await startProcess(kind, binary, dir);
  return { ...started, url: kind.url(started.port, false), version: await kind.version(binary) };
}

async function install(wanted: ServerKind | ToolKind, options: UpOptions): Promise<void> {
  if (options.install !== true) throw new Error(`needs ${wanted.needs}; \`deno task bed up --install\` can install it`);
  options.log?.(`installing ${wanted.name}`);
  try {
    await wanted.install();
  } catch (error) {
    throw new Error(`needs ${wanted.needs}; it could not be installed: ${(error as Error).message}`);
  }
  if (wanted.find() === undefined) throw new Error(`${wanted.name} was installed and is not found`);
}

/** Ends every server that the bed started and removes its data. What was installed stays. */
export async function down(log: (line: string) => void = () => {}): Promise<void> {
  await locked(async () => {
    await clearFallen();
    const state = bedState();
    for (const [name, leg] of Object.entries(state?.legs ?? {})) {
      const kind = kinds.find((kind) => kind.name === name);
      await endProcess(leg, { signal: kind?.stopSignal, stopMs: kind?.stopMs });
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
  const programs = tools.map((tool) => {
    if (process.env[tool.env]) return `${tool.name}: given by ${tool.env}`;
    const why = state?.missing[tool.name];
    return `${tool.name}: ${state?.tools[tool.name] ?? `not there${why ? ` (${why})` : ""}`}`;
  });
  const servers = kinds.map((kind) => {
    const leg = state?.legs[kind.name];
    if (process.env[kind.env]) return `${kind.name}: given by ${kind.env}`;
    if (leg !== undefined && isRunning(leg)) {
      return `${kind.name}: ${leg.version} on port ${leg.port}, process ${leg.pid}, data in ${leg.dir}`;
    }
    return `${kind.name}: not running${state?.missing[kind.name] ? ` (${state.missing[kind.name]})` : ""}`;
  });
  return [...servers, ...programs];
}
