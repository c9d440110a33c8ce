import type { Capabilities } from "../../core/contract.ts";
import type { ResolvedOptions } from "./resolve.ts";

/** What NATS JetStream can do. `survivesBlockedHost` is for whoever decides on the thread. */
export function natsCapabilities(
  options: Pick<ResolvedOptions, "ordered" | "maxBytes" | "duplicateWindowMs">,
): Capabilities {
  return {
    ordering: options.ordered ? "subject" : "none",
    groups: true,
    deliveryCount: "hint",
    dedupWindowMs: options.duplicateWindowMs,
    delayedRelease: !options.ordered,
    leaseExtension: true,
    // A partition that is given up whole is read anew by its next owner; a message given back by itself is counted.
    uncountedRelease: options.ordered,
    maxBytes: options.maxBytes,
    replay: true,
    survivesBlockedHost: true,
  };
}
