/**
 * What the test run prints.
 *
 * @module
 */
import type { FileResult } from "./run_file.ts";

/** Counts of tests. A file with trouble counts as one failure. */
export interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

/** Adds up results. */
export function countsOf(results: readonly FileResult[]): Counts {
  const counts: Counts = { passed: 0, failed: 0, skipped: 0 };
  for (const { tests, trouble } of results) {
    for (const { outcome } of tests) counts[outcome]++;
    if (trouble !== undefined) counts.failed++;
  }
  return counts;
}

/** One line about a file that ended. */
export function progressLine(done: number, total: number, result: FileResult): string {
  const { passed, failed, skipped } = countsOf([result]);
  const parts = [`${passed} passed`];
  if (failed > 0) parts.push(`${failed} FAILED`);
  if (skipped > 0) parts.push(`${skipped} skipped`);
  const place = `${String(done).padStart(String(total).length)}/${total}`;
  return `${result.runtime} ${place} ${result.file}: ${parts.join(", ")} (${(result.ms / 1000).toFixed(1)} s)`;
}

/** How much of a failing file's output is printed; all of it is in its log. */
const MAX_LINES = 300;

/** Everything about a file that failed; empty for one that did not. */
export function failureLines(result: FileResult): string[] {
  const names = result.tests.filter((test) => test.outcome === "failed").map((test) => test.name);
  if (names.length === 0 && result.trouble === undefined) return [];
  const lines = result.output.trimEnd().split("\n");
  const left = lines.length - MAX_LINES;
  return [
    "",
    `FAILED on ${result.runtime}: ${result.file}`,
    ...names.map((name) => `  - ${name}`),
    ...(result.trouble === undefined ? [] : [`  - ${result.trouble}`]),
    ...(left > 0 ? [`  (${left} earlier lines are in ${result.log})`] : []),
    ...lines.slice(-MAX_LINES).map((line) => `  | ${line}`),
  ];
}

/** Every skipped test by name, under its reason, with the runtimes where it was skipped. */
export function skippedLines(results: readonly FileResult[]): string[] {
  const reasons = new Map<string, Map<string, Set<string>>>();
  for (const { runtime, tests } of results) {
    for (const { name, outcome, reason } of tests) {
      if (outcome !== "skipped") continue;
      const names = reasons.get(reason) ?? new Map<string, Set<string>>();
      reasons.set(reason, names);
      names.set(name, (names.get(name) ?? new Set()).add(runtime));
    }
  }
  const lines: string[] = [];
  for (const [reason, names] of reasons) {
    lines.push(`Skipped: ${reason || "no reason given"}`);
    for (const [name, runtimes] of names) lines.push(`  - ${name} (${[...runtimes].join(", ")})`);
  }
  return lines;
}
