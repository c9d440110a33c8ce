/**
 * Makes a failing run smaller.
 *
 * @module
 */
import { type Plan, smaller } from "./plan.ts";
import { type Defects, runPlan } from "./run.ts";
import type { Rule } from "./rules.ts";

/** The smallest plan found in `tries` runs that still breaks `rule`. */
export async function shrink(plan: Plan, rule: Rule, defects: Defects = {}, tries: number = 400): Promise<Plan> {
  let best = plan;
  let left = tries;
  for (let again = true; again && left > 0;) {
    again = false;
    for (const candidate of smaller(best)) {
      if (left-- <= 0) break;
      const { violations } = await runPlan(candidate, defects);
      if (!violations.some((violation) => violation.rule === rule)) continue;
      best = candidate;
      again = true;
      break;
    }
  }
  return best;
}
