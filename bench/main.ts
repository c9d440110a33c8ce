/**
 * `deno task bench`: every benchmark on Deno, Bun and Node, each in a process of its own; then one table. Nothing here fails
 * for being slow.
 *
 * @module
 */
import { writeFileSync } from "node:fs";
import process from "node:process";
import { findRuntime, type Runtime } from "../scripts/testing/runtimes.ts";
import { startServer, sweepPrivate, whyNoServer } from "../tests/support/bed/server.ts";
import { brokerOf } from "./brokers.ts";
import { CASES } from "./cases.ts";
import type { BenchBroker } from "./support/broker.ts";
import type { Figure } from "./support/figure.ts";
import { type BenchOptions, parseOptions, USAGE } from "./support/options.ts";
import { loadLine, machineLine, table } from "./support/report.ts";
import { endChildren, runChild } from "./support/run_child.ts";

const NEEDS_SERVER = new Set(["consume", "publish", "delay", "blocked", "backlog"]);

function readOptions(): BenchOptions {
  try {
    return parseOptions(process.argv.slice(2), Object.keys(CASES));
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${USAGE}\n`);
    process.exit(2);
  }
}

interface ServerUnderTest {
  readonly url: string;
  readonly kind: string;
  readonly text: string;
  stop(): Promise<void>;
}

/** A server that nobody else uses; or the one that the user gives. */
async function start({ servers, env }: BenchBroker, wanted: string | undefined): Promise<ServerUnderTest> {
  const given = process.env[env];
  const kind = wanted ?? servers.find((name) => whyNoServer(name) === undefined) ?? servers[0];
  if (given !== undefined && given !== "") {
    return { url: given, kind, text: `the server of ${env}`, stop: () => Promise.resolve() };
  }
  const server = await startServer(kind);
  return { url: server.url, kind, text: `${kind} ${server.version}`, stop: () => server.stop() };
}

async function main(): Promise<number> {
  const options = readOptions();
  const runtimes: Runtime[] = [];
  for (const name of options.runtimes) runtimes.push(await findRuntime(name, options.ranges[name]));
  const server = await start(await brokerOf(options.broker), options.server);
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      endChildren();
      void server.stop().finally(() => process.exit(130));
    });
  }
  console.log(`${machineLine()}\n${server.text}; ${runtimes.map((one) => `${one.name} ${one.version}`).join(", ")}`);
  const found = new Map<string, Figure[]>(runtimes.map(({ name }) => [name, []]));
  const { server: _, ...rest } = options;
  let failed = 0;
  try {
    for (const name of options.only) {
      for (const runtime of runtimes) {
        const before = loadLine();
        console.log(`\n${name} on ${runtime.name} ${runtime.version}, ${before}`);
        const settings = {
          broker: options.broker,
          url: NEEDS_SERVER.has(name) ? server.url : "",
          server: server.kind,
          quick: options.quick,
          patienceMs: options.patienceMs,
          contestants: options.contestants,
        };
        try {
          const figures = await runChild(runtime, name, settings, {
            timeoutMs: options.caseMs + options.patienceMs,
            profile: options.profile,
          });
          found.get(runtime.name)!.push(...figures);
          for (const line of table([runtime], new Map([[runtime.name, figures]])).slice(2)) console.log(line);
        } catch (error) {
          failed++;
          console.log(`FAILED: ${(error as Error).message}`);
        }
      }
    }
  } finally {
    await server.stop();
    await sweepPrivate();
  }
  console.log(`\n${machineLine()}, ${server.text}, ${loadLine()}${options.quick ? ", --quick: not to quote" : ""}\n`);
  for (const line of table(runtimes, found)) console.log(line);
  console.log("\n✗ = short of its goal; in parentheses the smallest and the largest round.");
  if (options.out !== undefined) {
    const all = {
      machine: machineLine(),
      server: server.text,
      runtimes,
      options: rest,
      figures: Object.fromEntries(found),
    };
    writeFileSync(options.out, JSON.stringify(all, null, 2));
  }
  return failed === 0 ? 0 : 1;
}

process.exit(await main());
