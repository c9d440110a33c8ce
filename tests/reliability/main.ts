/**
 * `deno task reliability`: members as processes on Deno, Bun and Node, killed, frozen, restarted, joining and leaving under
 * load, and servers that are killed, cut off, silent and frozen; all on servers started for it. Everything is written down and checked; anything amiss fails the run.
 *
 * @module
 */
import { type ChildProcess, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { findRuntime, type Runtime } from "../../scripts/testing/runtimes.ts";
import { kindOf } from "../support/bed/kinds.ts";
import { type Server, startServer, sweepPrivate } from "../support/bed/server.ts";
import { parseOptions, type ReliabilityOptions, USAGE } from "./options.ts";
import { historyTable, idleTable, type Leg, outageTable, timeTable } from "./report.ts";
import { NOTHING, type Outcome, type Task } from "./task.ts";

const DRIVER = fileURLToPath(new URL("./driver.ts", import.meta.url));

function readOptions(): ReliabilityOptions {
  try {
    return parseOptions(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${USAGE}\n`);
    process.exit(2);
  }
}

const running = new Set<ChildProcess>();

/** Runs a task on a runtime; resolves to its outcome. */
function drive(runtime: Runtime, task: Task): Promise<Outcome> {
  const own = { deno: ["run", "-A", "--no-check", "--quiet"], bun: ["run"], node: [] }[runtime.name];
  return new Promise((resolve, reject) => {
    const child = spawn(runtime.program, [...own, DRIVER, JSON.stringify(task)], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, NO_COLOR: "1", DENO_NO_UPDATE_CHECK: "1" },
    });
    running.add(child);
    let outcome: Outcome | undefined;
    createInterface({ input: child.stdout }).on("line", (line) => {
      if (line.startsWith("RESULT ")) outcome = JSON.parse(line.slice(7)) as Outcome;
      else console.log(line);
    });
    child.once("error", reject);
    child.once("close", (code, signal) => {
      running.delete(child);
      if (outcome !== undefined) resolve(outcome);
      else reject(new Error(`the driver on ${runtime.name} ended with ${signal ?? code} and no result`));
    });
  });
}

/** Tasks on one server that is started for them all. */
function sharedTasks(options: ReliabilityOptions, url: string): Task[] {
  const { kinds, extras, rounds, seed, ownerLeaseMs, perSecond } = options;
  return [
    ...(kinds.length === 0 ? [] : [{ task: "faults", url, kinds, rounds, seed, ownerLeaseMs, perSecond } as const]),
    ...extras.map((task) => ({ task, url, perSecond })),
  ];
}

/** Tasks that start a server of their own, to do something to it. */
function ownTasks({ outages, rounds, perSecond }: ReliabilityOptions, server: string): Task[] {
  return outages.length === 0 ? [] : [{ task: "outages", server, kinds: outages, rounds, perSecond }];
}

/** Runs tasks on every runtime; answers what came of them. */
async function runTasks(options: ReliabilityOptions, tasks: readonly Task[], place: string): Promise<Leg[]> {
  const legs: Leg[] = [];
  for (const name of tasks.length === 0 ? [] : options.runtimes) {
    const runtime = await findRuntime(name, options.ranges[name]);
    for (const task of tasks) {
      const load = loadavg()[0]!.toFixed(1);
      console.log(`\n${task.task} on ${name} ${runtime.version}, ${place}, load ${load}`);
      const outcome = await drive(runtime, task).catch((error): Outcome => ({
        ...NOTHING,
        broken: [(error as Error).message],
      }));
      for (const line of outcome.broken) console.log(`BROKEN: ${line}`);
      legs.push({ task: task.task, server: place, runtime: `${name} ${runtime.version}`, outcome });
    }
  }
  return legs;
}

async function main(): Promise<number> {
  const options = readOptions();
  const legs: Leg[] = [];
  const started = performance.now();
  let server: Server | undefined;
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      for (const child of running) child.kill("SIGTERM");
      void (server?.stop() ?? Promise.resolve()).finally(() => process.exit(130));
    });
  }
  for (const kind of options.servers) {
    const binary = kindOf(kind).find();
    if (binary === undefined) throw new Error(`${kind} is not installed: \`deno task bed up --install\``);
    const place = `${kind} ${await kindOf(kind).version(binary)}`;
    legs.push(...await runTasks(options, ownTasks(options, kind), place));
    if (sharedTasks(options, "").length === 0) continue;
    server = await startServer(kind);
    try {
      legs.push(...await runTasks(options, sharedTasks(options, server.url), place));
    } finally {
      await server.stop();
    }
  }
  await sweepPrivate();
  const minutes = ((performance.now() - started) / 60_000).toFixed(1);
  const asked = JSON.stringify({ ...options, ranges: undefined });
  console.log(`\n${cpus().length} cores, ${minutes} minutes, load ${loadavg()[0]!.toFixed(1)}, ${asked}`);
  for (const line of [...timeTable(legs), ...historyTable(legs), ...outageTable(legs), ...idleTable(legs)]) {
    console.log(line);
  }
  if (options.out !== undefined) writeFileSync(options.out, JSON.stringify(legs, null, 2));
  return legs.every(({ outcome }) => outcome.broken.length === 0) ? 0 : 1;
}

process.exit(await main());
