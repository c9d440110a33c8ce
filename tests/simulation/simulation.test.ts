import assert from "node:assert/strict";
import { test } from "../support/test.ts";
import { planOf } from "./plan.ts";
import { describe, runSeeds } from "./report.ts";
import { runPlan } from "./run.ts";

/** Seeds of the suite; `deno task simulate` runs many more. */
const MOST = 3_000;
/** A busy machine runs fewer. */
const FOR_MS = 12_000;

test("no schedule of faults breaks a rule of session, broker and ownership", { timeoutMs: 120_000 }, async () => {
  const end = performance.now() + FOR_MS;
  const { runs, failed } = await runSeeds(0, MOST, () => performance.now() > end);
  if (failed !== undefined) assert.fail(await describe(failed.seed, failed.result));
  assert.ok(runs > 20, `only ${runs} runs`);
});

test("a seed decides everything", async () => {
  for (const seed of [1, 5, 33]) {
    const traces: string[][] = [];
    for (let n = 0; n < 2; n++) {
      const lines: string[] = [];
      await runPlan(planOf(seed), {}, (line) => lines.push(line));
      traces.push(lines);
    }
    assert.ok(traces[0]!.length > 10);
    assert.deepEqual(traces[0], traces[1]);
  }
});
