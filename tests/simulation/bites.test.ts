import assert from "node:assert/strict";
import type { ToHost } from "../../core/session/messages.ts";
import { test } from "../support/test.ts";
import { planOf } from "./plan.ts";
import { type Defects, runPlan } from "./run.ts";
import type { Rule } from "./rules.ts";
import { shrink } from "./shrink.ts";

/** Runs until `rule` is broken; answers the seed. */
async function firstToBreak(rule: Rule, defects: Defects, most: number = 400): Promise<number> {
  for (let seed = 0; seed < most; seed++) {
    const { violations } = await runPlan(planOf(seed), defects);
    if (violations.some((violation) => violation.rule === rule)) return seed;
  }
  throw new Error(`No run of ${most} broke the rule "${rule}"`);
}

/** A line that loses messages of one kind. */
const loses = (kind: ToHost["k"]): Defects => ({
  link: { toHost: (message) => message.k === kind ? [] : [message] },
});

/** What is broken, and the rule that must notice. */
const BITES: readonly (readonly [what: string, rule: Rule, defects: Defects])[] = [
  ["a server that forgets settles it confirmed", "lost", { server: "forgets-settles" }],
  ["a server that confirms what it did not settle", "settle-once", { server: "forgets-settles" }],
  ["a server that forgets publishes it confirmed", "publish", { server: "forgets-publishes" }],
  ["a server that settles what nobody asked it to", "unasked", { server: "settles-too-much" }],
  ["a server without a fence", "fence", { server: "no-fence" }],
  ["a server that lets two members own a partition", "late", { server: "two-owners" }],
  ["a server that gives more than it is asked for", "credit", { server: "gives-too-much" }],
  ["a server that gives the newest first", "order", { server: "gives-backwards" }],
  ["a transport that keeps to itself what it lost, while the host hands on", "late", { transport: "silent" }],
  ["a transport that keeps to itself what it lost, while settles are sent", "stale-sent", { transport: "silent" }],
  ["a transport that brings everything twice", "twice", { transport: "doubles" }],
  ["a line that does not deliver", "lost", loses("deliver")],
  ["a line that loses answers", "lost", loses("answer")],
  ["a line that loses what it says of health", "health", loses("health")],
  ["retries that come back too soon", "retry", { hastyRetries: true }],
  ["timers that cannot be stopped", "quiet", { leakyClock: true }],
  ["the newest first, in the history", "history", { server: "gives-backwards" }],
  ["two owners, in the history", "history", { server: "two-owners" }],
  ["forgotten settles, in the history", "history", { server: "forgets-settles" }],
];

for (const [what, rule, defects] of BITES) {
  test(`${what}: the rule "${rule}" notices`, { timeoutMs: 60_000 }, async () => {
    const seed = await firstToBreak(rule, defects);
    assert.deepEqual((await runPlan(planOf(seed))).violations, [], "and nothing else is wrong with that run");
  });
}

test("a failing run is made smaller and still fails alike", { timeoutMs: 60_000 }, async () => {
  const defects: Defects = { server: "gives-too-much" };
  const plan = planOf(await firstToBreak("credit", defects));
  const small = await shrink(plan, "credit", defects, 150);
  const { violations } = await runPlan(small, defects);
  assert.ok(violations.some(({ rule }) => rule === "credit"));
  assert.ok(small.actions.length === 0 && small.messages <= plan.messages && small.members.length === 1);
});
