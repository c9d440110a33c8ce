/**
 * What became of an envelope, and the counts of a run.
 *
 * @module
 */
import type { Envelope } from "../envelope.ts";
import type { DeadLetterReason } from "../store/contract.ts";

/**
 * What one attempt came to.
 *
 * | outcome | what it means | what happens to the delivery |
 * |---|---|---|
 * | `processed` | the unit is committed | acked |
 * | `duplicate` | it was handled before | acked |
 * | `ignored` | no route and `onUnknown: "ignore"`, or `ctx.ignore()` | acked |
 * | `retry` | the handler failed and may try again | its lane waits, then tries again |
 * | `unavailable` | the store, or something the handler needs, is down; not counted | its lane waits, then tries again |
 * | `deferred` | set aside for its subject, with its receipt; needs a store with a deferred list | acked |
 * | `dead_lettered:…` | given up: record and receipt are stored | acked |
 * | `lost` | the broker took the delivery away; nothing was stored | none: it comes again |
 * | `released` | the run ended first; nothing was stored | given back |
 */
export type Outcome =
  | "processed"
  | "duplicate"
  | "ignored"
  | "deferred"
  | "retry"
  | "unavailable"
  | "lost"
  | "released"
  | `dead_lettered:${DeadLetterReason}`;

/** One outcome, for `onOutcome`. */
export interface OutcomeReport {
  readonly outcome: Outcome;
  readonly envelope: Envelope;
  readonly topic: string;
  /** Attempts before this one as far as known. */
  readonly attempt: number;
  /** What the handler or the store threw, where something did. */
  readonly error?: unknown;
}

/** What a run came to: counts only, so that it stays small however long it ran. */
export interface RunReport {
  readonly processed: number;
  readonly duplicates: number;
  readonly ignored: number;
  /** Events their machine did not handle; counted in `processed` too. */
  readonly unhandled: number;
  /** Counted failures after which another attempt followed. */
  readonly retried: number;
  /** Attempts that failed because the store or a dependency was down. */
  readonly unavailable: number;
  /** Dead letters by reason, corrupt messages included. */
  readonly deadLettered: Readonly<Partial<Record<DeadLetterReason, number>>>;
  /** Deliveries that the broker took away before they were settled. */
  readonly lost: number;
  /** Deliveries given back because the run ended. */
  readonly released: number;
  /** Settles that came to nothing, because the delivery was no longer ours or the broker failed; those messages come again. */
  readonly staleSettles: number;
  /** Timers that fired. */
  readonly timers: number;
  /** Outbox rows published. */
  readonly relayed: number;
  /** Outbox rows that the downstream refused. */
  readonly parked: number;
}

type Counter = Exclude<keyof RunReport, "deadLettered">;

/** Counts while a run goes on. */
export class Tally {
  processed = 0;
  duplicates = 0;
  ignored = 0;
  unhandled = 0;
  retried = 0;
  unavailable = 0;
  lost = 0;
  released = 0;
  staleSettles = 0;
  timers = 0;
  relayed = 0;
  parked = 0;
  readonly deadLettered: Partial<Record<DeadLetterReason, number>> = {};

  /** Counts one outcome. */
  add(outcome: Outcome): void {
    if (outcome === "processed") this.processed++;
    else if (outcome === "duplicate") this.duplicates++;
    else if (outcome === "retry") this.retried++;
    else if (outcome.startsWith("dead_lettered:")) this.deadLetter(outcome.slice(14) as DeadLetterReason);
    else this[outcome as "ignored" | "unavailable" | "lost" | "released"]++;
  }

  /** Counts one dead letter. */
  deadLetter(reason: DeadLetterReason): void {
    this.deadLettered[reason] = (this.deadLettered[reason] ?? 0) + 1;
  }

  /** The counts since `before`, or all. */
  report(before?: RunReport): RunReport {
    const since = (name: Counter) => this[name] - (before?.[name] ?? 0);
    const deadLettered: Partial<Record<DeadLetterReason, number>> = {};
    for (const [reason, count] of Object.entries(this.deadLettered) as [DeadLetterReason, number][]) {
      const more = count - (before?.deadLettered[reason] ?? 0);
      if (more > 0) deadLettered[reason] = more;
    }
    return {
      processed: since("processed"),
      duplicates: since("duplicates"),
      ignored: since("ignored"),
      unhandled: since("unhandled"),
      retried: since("retried"),
      unavailable: since("unavailable"),
      deadLettered,
      lost: since("lost"),
      released: since("released"),
      staleSettles: since("staleSettles"),
      timers: since("timers"),
      relayed: since("relayed"),
      parked: since("parked"),
    };
  }
}
