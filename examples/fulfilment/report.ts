/**
 * Prints what a run came to.
 *
 * @module
 */
import type { DeadLetter } from "@xsm/eda";
import { check, type Facts } from "./checks.ts";

/** Prints the tables; answers whether everything holds. */
export function printReport(facts: Facts, ms: number, broker: string): boolean {
  const { outcomes } = facts.observer;
  print("Outcomes of attempts", [...outcomes].sort(byName).map(([name, count]) => [name, count.toLocaleString("en")]));
  print("Dead letters", facts.letters.map(describe));
  const checks = check(facts);
  print("Checks", checks.map(({ holds, says }) => [holds ? "ok" : "FAILS", says]));
  const failed = checks.filter(({ holds }) => !holds).length;
  const verdict = failed === 0 ? "all of it holds" : `${failed} of ${checks.length} checks fail`;
  console.log(`\n${verdict} · ${broker} · ${(ms / 1_000).toFixed(1)} s`);
  return failed === 0;
}

function byName([a]: readonly [string, number], [b]: readonly [string, number]): number {
  return a < b ? -1 : 1;
}

function describe({ reason, subject = "", type = "", failures, errors }: DeadLetter): readonly string[] {
  const [error] = errors;
  return [reason, subject, type, `failures: ${failures}`, error === undefined ? "" : `${error.name}: ${error.message}`];
}

/** A table: a title and rows whose columns are aligned. */
function print(title: string, rows: readonly (readonly string[])[]): void {
  const widths: number[] = [];
  for (const row of rows) row.forEach((cell, at) => widths[at] = Math.max(widths[at] ?? 0, cell.length));
  console.log(`\n${title}`);
  for (const row of rows) console.log(`  ${row.map((cell, at) => cell.padEnd(widths[at]!)).join("  ").trimEnd()}`);
}
