/**
 * What the reliability run prints: tables in Markdown.
 *
 * @module
 */
import { FAULT_KINDS } from "./faults.ts";
import { OUTAGE_KINDS } from "./outages/outages.ts";
import type { Outcome } from "./task.ts";

/** One task on one runtime against one server. */
export interface Leg {
  readonly task: string;
  readonly server: string;
  readonly runtime: string;
  readonly outcome: Outcome;
}

/** How long it took: of each fault the number of rounds, and the median and the longest take-over. */
export function timeTable(legs: readonly Leg[]): string[] {
  const rows = legs.filter(({ outcome }) => outcome.rounds.length > 0).map(({ task, server, runtime, outcome }) => {
    const times = FAULT_KINDS.map((kind) => {
      const taken = outcome.rounds.filter((round) => round.kind === kind).map((round) => round.takeOverMs);
      return taken.length === 0 ? "" : `${taken.length}: ${spread(taken)}`;
    });
    const balanced = spread(outcome.rounds.map((round) => round.balancedMs));
    return [task, server, runtime, ...times, balanced, String(outcome.rolled)];
  });
  return markdown(["task", "server", "runtime", ...FAULT_KINDS, "balanced", "rolled"], rows);
}

/** What the histories say: how many messages came again, by what had happened to the member that had them. */
export function historyTable(legs: readonly Leg[]): string[] {
  const rows = legs.filter(({ outcome }) => outcome.findings.length > 0).map(({ task, server, runtime, outcome }) => {
    const { findings, broken } = outcome;
    const sum = (pick: (finding: Outcome["findings"][number]) => number): string =>
      findings.reduce((total, finding) => total + pick(finding), 0).toLocaleString("en");
    return [
      task,
      server,
      runtime,
      sum(({ messages }) => messages),
      ...(["kill", "stop", "close", "lost"] as const).map((cause) => sum(({ duplicates }) => duplicates[cause])),
      String(Math.max(...findings.map(({ worst }) => worst))),
      sum(({ stale }) => stale),
      String(broken.length),
    ];
  });
  const again = ["killed", "frozen", "left", "other", "most"];
  return markdown(["task", "server", "runtime", "messages", ...again, "stale", "violations"], rows);
}

/** Commands a second while nothing is published. */
export function idleTable(legs: readonly Leg[]): string[] {
  const rows = legs.flatMap(({ server, outcome }) =>
    outcome.idle.map(({ what, sent, run, most }) => [server, what, String(sent), String(run), most])
  );
  return markdown(["server", "members", "sent /s", "run /s", "of which"], rows);
}

/** Outages of a server: how long until new messages flowed again, and what came twice. */
export function outageTable(legs: readonly Leg[]): string[] {
  const rows = legs.flatMap(({ server, runtime, outcome }) =>
    OUTAGE_KINDS.flatMap((kind) => {
      const all = outcome.outages.filter((outage) => outage.kind === kind);
      if (all.length === 0) return [];
      const sum = (pick: (outage: (typeof all)[number]) => number): string =>
        all.reduce((total, outage) => total + pick(outage), 0).toLocaleString("en");
      return [[
        server,
        runtime,
        kind,
        String(all.length),
        spread(all.map(({ againMs }) => againMs)),
        sum(({ sent }) => sent),
        sum(({ redelivered }) => redelivered),
        String(Math.max(...all.map(({ redelivered }) => redelivered))),
        sum(({ retried }) => retried),
        sum(({ copies }) => copies),
        sum(({ reordered }) => reordered),
        String(outcome.broken.length),
      ]];
    })
  );
  const counted = ["messages", "delivered again", "most", "published again", "copies", "out of order", "violations"];
  return markdown(["server", "runtime", "outage", "rounds", "flows again", ...counted], rows);
}

function markdown(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  if (rows.length === 0) return [];
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return ["", line(head), line(head.map(() => "---")), ...rows.map(line)];
}

/** Median and largest. */
function spread(values: readonly number[]): string {
  const sorted = [...values].sort((a, b) => a - b).map(Math.round);
  return `${sorted[sorted.length >> 1]} / ${sorted.at(-1)} ms`;
}
