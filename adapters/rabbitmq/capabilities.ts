import type { Capabilities } from "../../core/contract.ts";
import type { ResolvedOptions } from "./resolve.ts";

/** What RabbitMQ can do. `survivesBlockedHost` is for whoever decides on the thread. */
export function rabbitMqCapabilities(
  options: Pick<ResolvedOptions, "ordered" | "maxBytes" | "reference">,
): Capabilities {
  return {
    ordering: options.ordered ? "subject" : "none",
    groups: !options.reference,
    deliveryCount: "hint",
    dedupWindowMs: 0,
    delayedRelease: false,
    leaseExtension: true,
    uncountedRelease: false,
    maxBytes: options.maxBytes,
    replay: false,
    survivesBlockedHost: true,
  };
}
