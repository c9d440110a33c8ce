/**
 * What the check of a history comes to.
 *
 * @module
 */

/** Why a message was handed out more than once: what had happened to the member that had it before. */
export type Cause = "kill" | "stop" | "close" | "lost";

/** What a history comes to. */
export interface Findings {
  /** Broken promises, a few of each kind; empty = all kept. */
  readonly violations: readonly string[];
  readonly messages: number;
  /** Messages handed out more than once because a member failed, by cause. `lost` = no fault of ours explains it. */
  readonly duplicates: Readonly<Record<Cause, number>>;
  /** The most duplicates that one fault led to. */
  readonly worst: number;
  /** Settles that were refused as no longer the member's. */
  readonly stale: number;
}
