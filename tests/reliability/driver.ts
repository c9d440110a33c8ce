/**
 * One part of the run on one runtime against one server, in a process of its own; called by `main.ts` with its settings.
 * Prints what goes on, and in the end `RESULT` and a line of JSON.
 *
 * @module
 */
import process from "node:process";
import type { Findings } from "./findings.ts";
import type { FaultKind, Round } from "./faults.ts";
import { type IdleCost, idleCosts } from "./idle.ts";
import { broken, LOAD, runPlan } from "./plan.ts";
import { jumpAnHour, sleepAMinute } from "./time.ts";

/** What is to be done: many rounds of faults, a member that sleeps for a minute or whose clock jumps, or nothing at all. */
export type Task =
  | {
    readonly task: "faults";
    readonly url: string;
    readonly kinds: readonly FaultKind[];
    readonly rounds: number;
    readonly seed: number;
    readonly ownerLeaseMs: number;
    readonly perSecond: number;
  }
  | { readonly task: "minute" | "clock"; readonly url: string; readonly perSecond: number }
  | { readonly task: "idle"; readonly url: string };

/** What came of it. */
export interface Outcome {
  readonly broken: readonly string[];
  readonly rounds: readonly Round[];
  readonly findings: readonly Findings[];
  readonly rolled: number;
  readonly idle: readonly IdleCost[];
}

/** Rounds of each kind that one team goes through. */
const ROUNDS_PER_TEAM = 10;
/** What is measured from outside, by polling, on a machine that does much else. */
const GRACE_MS = 150;

const NOTHING: Outcome = { broken: [], rounds: [], findings: [], rolled: 0, idle: [] };

async function run(task: Task): Promise<Outcome> {
  switch (task.task) {
    case "faults": {
      const { url, kinds, rounds, seed, ownerLeaseMs, perSecond } = task;
      const team = { url, ownerLeaseMs, workMs: 150 };
      const plan = { ...LOAD, team, kinds, rounds, roundsPerTeam: ROUNDS_PER_TEAM, seed, perSecond };
      const result = await runPlan(plan, (line) => console.log(line));
      return { ...NOTHING, ...result, broken: broken(result, GRACE_MS) };
    }
    case "minute":
    case "clock": {
      const result = await (task.task === "minute" ? sleepAMinute : jumpAnHour)(task.url, task.perSecond);
      return { ...NOTHING, ...result, broken: broken(result, GRACE_MS) };
    }
    case "idle":
      return { ...NOTHING, idle: await idleCosts(task.url, 10, (cost) => console.log(JSON.stringify(cost))) };
  }
}

const outcome = await run(JSON.parse(process.argv[2] ?? "{}") as Task);
console.log(`RESULT ${JSON.stringify(outcome)}`);
process.exit(outcome.broken.length === 0 ? 0 : 1);
