import assert from "node:assert/strict";
import { TurnBudget } from "../../workers/turn_budget.ts";
import { test } from "../support/test.ts";
import { VirtualClock } from "../support/virtual_clock.ts";

/** A budget whose items take a millisecond of a virtual clock each. */
function budget(): { clock: VirtualClock; seen: number[]; items: TurnBudget<number> } {
  const clock = new VirtualClock();
  const seen: number[] = [];
  const items = new TurnBudget<number>(clock, (item) => {
    seen.push(item);
    clock.pass(1);
  });
  return { clock, seen, items };
}

test("a turn's budget: what comes is handled at once until the budget is spent, the rest in later turns, in order", async () => {
  const { clock, seen, items } = budget();
  for (let n = 1; n <= 6; n++) items.push(n);
  assert.deepEqual(seen, [1, 2], "a port that goes on handing out takes no more of the turn");
  await clock.advance(0);
  assert.deepEqual(seen.slice(0, 4), [1, 2, 3, 4]);
  items.push(7);
  for (let turn = 0; turn < 5; turn++) await clock.advance(0);
  assert.deepEqual(seen, [1, 2, 3, 4, 5, 6, 7]);
  items.push(8);
  assert.equal(seen.at(-1), 8, "after a quiet turn nothing waits");
});

test("a turn's budget: what waits is handled before an end is told", () => {
  const { seen, items } = budget();
  for (let n = 1; n <= 6; n++) items.push(n);
  items.drain();
  assert.deepEqual(seen, [1, 2, 3, 4, 5, 6]);
});
