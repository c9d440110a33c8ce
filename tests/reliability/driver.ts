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
import { broken, LOAD, type PlanResult, runPlan } from "./plan.ts";
import { Team } from "./team.ts";

/** What is to be done: many rounds of faults, a minute's sleep, or nothing at all. */
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
  | { readonly task: "minute"; readonly url: string; readonly perSecond: number }
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
const MINUTE_MS = 60_000;

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
    case "minute": {
      const result = await sleepAMinute(task.url, task.perSecond);
      return { ...NOTHING, ...result, broken: broken(result, GRACE_MS) };
    }
    case "idle":
      return { ...NOTHING, idle: await idleCosts(task.url, 10, (cost) => console.log(JSON.stringify(cost))) };
  }
}

/** One of three members is stopped for a minute, four times the usual lease, and goes on. */
async function sleepAMinute(url: string, perSecond: number): Promise<PlanResult> {
  const ownerLeaseMs = 15_000;
  const team = new Team({ url, ownerLeaseMs, workMs: 150 });
  try {
    for (let n = 0; n < 3; n++) await team.join();
    await team.publish({ ...LOAD, perSecond });
    await team.balanced();
    const sleeper = [...team.members.values()][0]!;
    const owned = (await team.server.owners()).flatMap((owner, at) => owner === sleeper.name ? [at] : []);
    await team.freeze(sleeper);
    const from = performance.now();
    const limitMs = ownerLeaseMs + 1_000;
    await team.takenOver(owned, sleeper.name, limitMs + 5_000);
    const takeOverMs = performance.now() - from;
    await new Promise((resolve) => setTimeout(resolve, MINUTE_MS - takeOverMs));
    await team.thaw(sleeper);
    const balancedMs = await team.balanced();
    const findings = [await team.finish()];
    return { rounds: [{ kind: "freeze", takeOverMs, limitMs, balancedMs }], findings, rolled: 0 };
  } finally {
    await team.end();
  }
}

const outcome = await run(JSON.parse(process.argv[2] ?? "{}") as Task);
console.log(`RESULT ${JSON.stringify(outcome)}`);
process.exit(outcome.broken.length === 0 ? 0 : 1);
