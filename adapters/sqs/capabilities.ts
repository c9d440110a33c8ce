import type { Capabilities } from "../../core/contract.ts";
import type { ResolvedOptions } from "./resolve.ts";

/** The most that SQS takes as one message or one batch, attributes included. */
export const MOST_BYTES = 1_048_576;
/** How long a FIFO queue drops what it has had already. */
const DEDUP_WINDOW_MS = 300_000;

/** What SQS can do. `survivesBlockedHost` is for whoever decides on the thread. */
export function sqsCapabilities(options: Pick<ResolvedOptions, "ordered" | "maxBytes">): Capabilities {
  const ordered = options.ordered !== false;
  return {
    ordering: ordered ? "subject" : "none",
    groups: false,
    deliveryCount: "hint",
    dedupWindowMs: ordered ? DEDUP_WINDOW_MS : 0,
    delayedRelease: true,
    leaseExtension: true,
    uncountedRelease: false,
    maxBytes: Math.min(options.maxBytes, MOST_BYTES),
    replay: true,
    survivesBlockedHost: true,
  };
}
