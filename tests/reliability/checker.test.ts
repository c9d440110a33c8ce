import assert from "node:assert/strict";
import { test } from "../support/test.ts";
import { check } from "./checker.ts";
import type { Findings } from "./findings.ts";
import type { Line } from "./history.ts";

/**
 * A history from short words: `A+1` handed to A, `A?1` A sends a confirmed settle of it, `A!1` with a plain one, `A=1` it is
 * settled, `A~1` it was stale, `A<1` held back, `A-1` lost; `kill A`, `stop A`, `cont A`, `close A`. All of subject `s`.
 */
function lines(text: string): Line[] {
  const words = text.split(/\s+/).filter((word) => word !== "");
  const out: Line[] = [];
  const hands = new Map<string, number[]>();
  let next = 0;
  while (words.length > 0) {
    const word = words.shift()!;
    const what = (["kill", "stop", "cont", "close"] as const).find((name) => name === word);
    if (what !== undefined) {
      out.push({ k: "fault", what, member: words.shift()! });
      continue;
    }
    const [, member = "", sign = "", number = "", dash] = word.match(/^(\w+)([+?!=~<-])(\d+)('?)$/)!;
    const known = hands.get(member + number) ?? [];
    hands.set(member + number, known);
    if (sign === "+") known.push(next++);
    const d = known.at(dash === "'" ? -2 : -1) ?? -1;
    const about = { member, d, subject: "s", n: Number(number) };
    if (sign === "+") out.push({ k: "handed", ...about });
    else if (sign === "?" || sign === "!") out.push({ k: "settling", confirm: sign === "?", ...about });
    else if (sign === "=" || sign === "~") {
      out.push({ k: "settled", outcome: sign === "=" ? "settled" : "stale", ...about });
    } else out.push({ k: sign === "<" ? "held" : "lost", ...about });
  }
  return out;
}

function look(count: number, text: string, prefetch = 10): Findings {
  return check(new Map([["s", count]]), lines(text), prefetch);
}

function good(name: string, count: number, text: string, expected: Partial<Findings["duplicates"]> = {}): void {
  test(`check accepts ${name}`, () => {
    const findings = look(count, text);
    assert.deepEqual(findings.violations, []);
    assert.deepEqual(findings.duplicates, { kill: 0, stop: 0, close: 0, lost: 0, ...expected });
  });
}

function bad(name: string, count: number, text: string, expected: RegExp, prefetch?: number): void {
  test(`check finds ${name}`, () => {
    const { violations } = look(count, text, prefetch);
    assert.ok(violations.some((text) => expected.test(text)), `found only: ${violations.join("; ")}`);
  });
}

good("a plain run", 2, "A+0 A+1 A?0 A=0 A!1");
good("a settle whose answer a killed member did not hear", 1, "A+0 A?0 kill A");
good("a killed member's messages at the next one", 2, "A+0 A+1 A!0 kill A B+0 B+1 B?0 B=0 B?1 B=1", { kill: 2 });
good("a member that is killed before it hears of its loss", 1, "A+0 A?0 B+0 B?0 B=0 kill A", { lost: 1 });
good("a killed member's messages though the line of the kill comes late", 1, "A+0 kill A B+0 B?0 B=0", { kill: 1 });
good(
  "a frozen member whose settles are refused",
  3,
  "A+0 A+1 stop A B+0 B+1 B?0 B=0 B+2 cont A A?0 A~0 A-1 A?1 A~1 B?1 B=1 B?2 B=2",
  { stop: 2 },
);
good("a member handed something just before it freezes", 1, "stop A A+0 B+0 cont A A-0 B?0 B=0", { stop: 1 });
good("a frozen member that kept its partition", 2, "A+0 stop A cont A A+1 A?0 A=0 A?1 A=1");
good("a retried message that comes back first", 2, "A+0 A<0 A+0 A+1 A?0 A=0 A?1 A=1");
good("an unexplained loss, but counts it", 1, "A+0 A-0 B+0 B?0 B=0", { lost: 1 });
good("a member that had no time and hears of its loss late", 2, "A+0 A+1 B+0 B+1 B!0 B!1 A-0 A?1 A~1", { lost: 2 });
good("a plain settle that came too late", 2, "A+0 A!0 A+1 A-1 B+0 B+1 B?0 B=0 B?1 B=1", { lost: 2 });
good(
  "a member that has it again and whose old settle is refused",
  2,
  "A+0 stop A cont A A-0 A+0 A?0' A~0' A+1 A?0 A=0 A?1 A=1",
  { stop: 1 },
);
good("a handing over between two messages", 2, "A+0 A?0 A=0 close A B+1 B?1 B=1");

bad("a lost message", 2, "A+0 A?0 A=0", /sets: s:1 was never handed out/);
bad("a message nobody published", 1, "A+0 A?0 A=0 A+1", /sets: s:1 was never published/);
bad("a message nobody settled", 1, "A+0", /sets: s:0 was never settled/);
bad("first hand-outs out of order", 2, "A+1 A+0 A?0 A=0 A?1 A=1", /order: s:1 to A before s:0/);
bad("an overtaking after a crash", 3, "A+0 A+1 kill A B+1 B+0 B?0 B=0 B?1 B=1 B+2 B?2 B=2", /one owner: s:1 to B/);
bad(
  "two owners: a later message elsewhere while an earlier one is in somebody's hands",
  2,
  "A+0 B+1 A?0 A=0 B?1 B=1",
  /one owner: s:1 to B while s:0/,
);
bad("two owners of one message, and none is told", 1, "A+0 B+0 B?0 B=0", /once: s:0 to B while A has/);
bad("two owners of one message, who both settle it", 1, "A+0 B+0 A?0 B?0 A=0 B=0", /fence: the settle of s:0 by A/);
bad("a repetition nobody asked for", 1, "A+0 A+0 A?0 A=0", /once: s:0 to A/);
bad("a held message that is overtaken", 2, "A+0 A<0 A+1 A+0 A?0 A=0 A?1 A=1", /one owner: s:1 to A while s:0/);
bad(
  "a late hand-out by a member that woke up",
  2,
  "A+0 stop A B+0 B?0 B=0 B+1 B?1 B=1 cont A A+1 A-1",
  /fence: s:1 to A after it was settled/,
);
bad(
  "a late hand-out while the new owner has it",
  2,
  "A+0 stop A B+0 B+1 cont A A+1 A-0 A-1 B?0 B=0 B?1 B=1",
  /once: s:1 to A while B has/,
);
bad(
  "a late hand-out ahead of what the new owner has",
  2,
  "A+0 stop A B+0 cont A A+1 A-0 A-1 B+1 B?0 B=0 B?1 B=1",
  /one owner: s:1 to A while s:0/,
);
bad(
  "a frozen owner's settle that took effect and was told so",
  1,
  "A+0 stop A B+0 cont A A?0 A=0 B?0 B~0",
  /fence: the settle of s:0 by A/,
);
bad(
  "a frozen owner's settle that took effect unseen",
  1,
  "A+0 stop A B+0 cont A A!0 B?0 B~0",
  /sets: s:0 was never settled/,
);
bad("a message settled twice", 1, "A+0 A?0 A=0 A?0 A=0", /fence: s:0 was settled twice/);
bad(
  "a settle of an earlier hand-out to the same member",
  1,
  "A+0 A-0 A+0 A?0' A=0' A?0 A~0",
  /fence: the settle of s:0 by A/,
);
bad(
  "more duplicates than were in flight",
  3,
  "A+0 A+1 A+2 kill A B+0 B+1 B+2 B!0 B!1 B!2",
  /bound: one kill led to 3/,
  2,
);

test("check tells at most a few violations of a kind", () => {
  const { violations } = look(20, "");
  assert.equal(violations.length, 6);
  assert.match(violations[5]!, /and 15 more/);
});
