import type { Capabilities } from "../../core/contract.ts";
import type { ResolvedOptions } from "./resolve.ts";

/** What Redis Streams can do. `survivesBlockedHost` is for whoever decides on the thread. */
export function redisCapabilities(options: Pick<ResolvedOptions, "ordered" | "maxBytes">): Capabilities {
  return {
    ordering: options.ordered ? "subject" : "none",
    groups: true,
    deliveryCount: "hint",
    dedupWindowMs: 0,
    delayedRelease: false,
    leaseExtension: true,
    uncountedRelease: true,
    maxBytes: options.maxBytes,
    replay: true,
    survivesBlockedHost: true,
  };
}
