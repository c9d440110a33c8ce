import type { Capabilities } from "../../core/contract.ts";

/**
 * What Kafka can do. Order is the log's own: a partition is read by one member of the group. Nothing counts deliveries, and
 * nothing tells two sends of one envelope apart. `survivesBlockedHost` is for whoever decides on the thread.
 */
export function kafkaCapabilities(maxBytes: number): Capabilities {
  return {
    ordering: "subject",
    groups: true,
    deliveryCount: "none",
    dedupWindowMs: 0,
    delayedRelease: false,
    leaseExtension: true,
    uncountedRelease: true,
    maxBytes,
    replay: true,
    survivesBlockedHost: true,
  };
}
