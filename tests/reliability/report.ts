/**
 * What the reliability run prints.
 *
 * @module
 */
import type { Outcome } from "./driver.ts";
import { FAULT_KINDS } from "./faults.ts";

/** One runtime against one server. */
export interface Leg {
  readonly server: string;
  readonly runtime: string;
  readonly outcome: Outcome;
}

/** One table row a leg, as Markdown. */
export function faultTable(legs: readonly Leg[]): string[] {
  const rows = legs.filter(({ outcome }) => outcome.findings.length > 0).map(({ server, runtime, outcome }) => {
    const { rounds, findings, rolled, broken } = outcome;
    const sum = (pick: (finding: Outcome["findings"][number]) => number): number =>
      findings.reduce((total, finding) => total + pick(finding), 0);
    const times = FAULT_KINDS.map((kind) => {
      const taken = rounds.filter((round) => round.kind === kind).map((round) => round.takeOverMs);
      return taken.length === 0 ? "" : `${taken.length}: ${ms(median(taken))} / ${ms(Math.max(...taken))}`;
    });
    const balanced = rounds.map((round) => round.balancedMs);
    return [
      server,
      runtime,
      ...times,
      String(rolled),
      `${ms(median(balanced))} / ${ms(Math.max(...balanced))}`,
      sum(({ messages }) => messages).toLocaleString("en"),
      ...(["kill", "stop", "close", "lost"] as const).map((cause) => String(sum((f) => f.duplicates[cause]))),
      String(Math.max(...findings.map(({ worst }) => worst))),
      String(sum(({ stale }) => stale)),
      String(broken.length),
    ];
  });
  return markdown([
    "server",
    "runtime",
    ...FAULT_KINDS.map((kind) => `${kind}: take-over ms`),
    "rolled",
    "balanced ms",
    "messages",
    "again: killed",
    "frozen",
    "left",
    "unexplained",
    "most by one fault",
    "stale settles",
    "violations",
  ], rows);
}

/** Commands a second while nothing is published. */
export function idleTable(legs: readonly Leg[]): string[] {
  const rows = legs.flatMap(({ server, outcome }) =>
    outcome.idle.map(({ what, sent, run, most }) => [server, what, String(sent), String(run), most])
  );
  return markdown(["server", "members", "sent /s", "run /s", "of which"], rows);
}

function markdown(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  if (rows.length === 0) return [];
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)];
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? NaN;
}

const ms = (value: number): string => String(Math.round(value));
