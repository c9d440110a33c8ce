/**
 * What is printed of a run that broke a rule: its seed, the smallest plan that still breaks it, and what happens there.
 *
 * @module
 */
import { planOf } from "./plan.ts";
import { type Defects, runPlan, type RunResult } from "./run.ts";
import { shrink } from "./shrink.ts";

/** Runs the seeds from `from` on until one breaks a rule, `count` have run or `enough` says so. */
export async function runSeeds(
  from: number,
  count: number,
  enough: () => boolean = () => false,
  defects: Defects = {},
): Promise<{ readonly runs: number; readonly steps: number; readonly failed?: { seed: number; result: RunResult } }> {
  let steps = 0;
  for (let runs = 0; runs < count; runs++) {
    if (enough()) return { runs, steps };
    const result = await runPlan(planOf(from + runs), defects);
    steps += result.steps;
    if (result.violations.length > 0) return { runs: runs + 1, steps, failed: { seed: from + runs, result } };
  }
  return { runs: count, steps };
}

/** Describes a failing seed: how to run it again, and its smallest form. */
export async function describe(seed: number, result: RunResult, lines: number = 200): Promise<string> {
  const { rule } = result.violations[0]!;
  const plan = await shrink(planOf(seed), rule);
  const trace: string[] = [];
  const { violations } = await runPlan(plan, {}, (line) => trace.push(line));
  return [
    `seed ${seed} breaks "${rule}"; again with: deno task simulate --seed ${seed}`,
    ...result.violations.slice(0, 5).map(({ rule, at, text }) => `  ${rule} at ${Math.round(at)} ms: ${text}`),
    `made smaller: ${JSON.stringify(plan)}`,
    ...trace.slice(0, lines),
    ...(trace.length > lines ? [`… and ${trace.length - lines} lines`] : []),
    ...violations.slice(0, 5).map(({ rule, at, text }) => `  ${rule} at ${Math.round(at)} ms: ${text}`),
  ].join("\n");
}
