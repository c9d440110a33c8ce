/**
 * `deno task reliability`: members as processes on Deno, Bun and Node, killed, frozen, restarted, joining and leaving under
 * load, on Redis servers started for it. Everything is written down and checked; anything amiss fails the run.
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
import { startServer, sweepPrivate } from "../support/bed/server.ts";
import type { Outcome, Task } from "./driver.ts";
import { parseOptions, type ReliabilityOptions, USAGE } from "./options.ts";
import { historyTable, idleTable, type Leg, timeTable } from "./report.ts";

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

function tasksOf(options: ReliabilityOptions, url: string): Task[] {
  const { kinds, extras, rounds, seed, ownerLeaseMs, perSecond } = options;
  return [
    ...(kinds.length === 0 ? [] : [{ task: "faults", url, kinds, rounds, seed, ownerLeaseMs, perSecond } as const]),
    ...extras.map((task) => ({ task, url, perSecond })),
  ];
}

async function main(): Promise<number> {
  const options = readOptions();
  const legs: Leg[] = [];
  let failed = 0;
  const started = performance.now();
  for (const kind of options.servers) {
    const server = await startServer(kind);
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      process.on(signal, () => {
        for (const child of running) child.kill("SIGTERM");
        void server.stop().finally(() => process.exit(130));
      });
    }
    try {
      for (const name of options.runtimes) {
        const runtime = await findRuntime(name, options.ranges[name]);
        for (const task of tasksOf(options, server.url)) {
          const load = loadavg()[0]!.toFixed(1);
          console.log(`\n${task.task} on ${name} ${runtime.version}, ${kind} ${server.version}, load ${load}`);
          const outcome = await drive(runtime, task).catch((error): Outcome => ({
            broken: [(error as Error).message],
            rounds: [],
            findings: [],
            rolled: 0,
            idle: [],
          }));
          for (const line of outcome.broken) console.log(`BROKEN: ${line}`);
          failed += outcome.broken.length;
          const place = { server: `${kind} ${server.version}`, runtime: `${name} ${runtime.version}` };
          legs.push({ task: task.task, ...place, outcome });
        }
      }
    } finally {
      await server.stop();
    }
  }
  await sweepPrivate();
  const minutes = ((performance.now() - started) / 60_000).toFixed(1);
  const asked = JSON.stringify({ ...options, ranges: undefined });
  console.log(`\n${cpus().length} cores, ${minutes} minutes, load ${loadavg()[0]!.toFixed(1)}, ${asked}`);
  for (const line of [...timeTable(legs), ...historyTable(legs), ...idleTable(legs)]) console.log(line);
  if (options.out !== undefined) writeFileSync(options.out, JSON.stringify(legs, null, 2));
  return failed === 0 ? 0 : 1;
}

process.exit(await main());
