/**
 * What a driver process is told to do, and what it answers.
 *
 * @module
 */
import type { FaultKind, Round } from "./faults.ts";
import type { Findings } from "./findings.ts";
import type { IdleCost } from "./idle.ts";
import type { Outage, OutageKind } from "./outages/outages.ts";

/**
 * What is to be done: many rounds of faults of members, or of outages of a server started for it; a member that sleeps for a
 * minute or whose clock jumps; or nothing at all.
 */
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
  | {
    readonly task: "outages";
    readonly server: string;
    readonly kinds: readonly OutageKind[];
    readonly rounds: number;
    readonly perSecond: number;
  }
  | { readonly task: "minute" | "clock"; readonly url: string; readonly perSecond: number }
  | { readonly task: "idle"; readonly url: string };

/** What came of it. */
export interface Outcome {
  readonly broken: readonly string[];
  readonly rounds: readonly Round[];
  readonly findings: readonly Findings[];
  readonly rolled: number;
  readonly idle: readonly IdleCost[];
  readonly outages: readonly Outage[];
}

/** Of a task that came to nothing. */
export const NOTHING: Outcome = { broken: [], rounds: [], findings: [], rolled: 0, idle: [], outages: [] };
