/**
 * One part of the run on one runtime against one server, in a process of its own; called by `main.ts` with its settings.
 * Prints what goes on, and in the end `RESULT` and a line of JSON.
 *
 * @module
 */
import process from "node:process";
import { idleCosts } from "./idle.ts";
import { FULL, runOutages } from "./outages/outages.ts";
import { broken, LOAD, runPlan } from "./plan.ts";
import { NOTHING, type Outcome, type Task } from "./task.ts";
import { jumpAnHour, sleepAMinute } from "./time.ts";

/** Rounds of each kind that one team goes through. */
const ROUNDS_PER_TEAM = 10;
/** What is measured from outside, by polling, on a machine that does much else. */
const GRACE_MS = 150;

async function run(task: Task): Promise<Outcome> {
  switch (task.task) {
    case "faults": {
      const { url, kinds, rounds, seed, ownerLeaseMs, perSecond } = task;
      const team = { url, ownerLeaseMs, workMs: 150 };
      const plan = { ...LOAD, team, kinds, rounds, roundsPerTeam: ROUNDS_PER_TEAM, seed, perSecond };
      const result = await runPlan(plan, (line) => console.log(line));
      return { ...NOTHING, ...result, broken: broken(result, GRACE_MS) };
    }
    case "outages": {
      const { outages, violations } = await runOutages({ ...task, lengths: FULL }, (line) => console.log(line));
      return { ...NOTHING, outages, broken: violations };
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
