/**
 * `deno task simulate`: many simulated runs of sessions, brokers and ownership under faults.
 *
 * ```text
 * deno task simulate                      100,000 runs from seed 0 on
 * deno task simulate --runs 5000 --from 7
 * deno task simulate --seed 42            one run, made smaller and described if it breaks a rule
 * ```
 *
 * @module
 */
import process from "node:process";
import { parseArgs } from "node:util";
import { describe, runSeeds } from "./report.ts";

const { values } = parseArgs({
  options: { runs: { type: "string" }, from: { type: "string" }, seed: { type: "string" } },
});
const from = Number(values.seed ?? values.from ?? 0);
const count = values.seed === undefined ? Number(values.runs ?? 100_000) : 1;
const STRIDE = 2_000;

const started = performance.now();
let runs = 0;
let steps = 0;
let failed = false;
while (runs < count && !failed) {
  const part = await runSeeds(from + runs, Math.min(STRIDE, count - runs));
  runs += part.runs;
  steps += part.steps;
  const seconds = (performance.now() - started) / 1000;
  console.log(`${runs} runs, ${steps} events, ${Math.round(runs / seconds)} runs a second`);
  if (part.failed !== undefined) {
    failed = true;
    console.log(await describe(part.failed.seed, part.failed.result));
  }
}
process.exitCode = failed ? 1 : 0;
