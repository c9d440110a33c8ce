import type { Capabilities } from "../../core/contract.ts";
import { DEDUP_WINDOW_MS, MOST_BYTES } from "./limits.ts";
import type { ResolvedOptions } from "./resolve.ts";

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
