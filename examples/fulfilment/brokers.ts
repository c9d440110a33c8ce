/**
 * Which broker the demo runs on: in memory, or on the Redis server that `XSM_BROKER_URL` names. Nothing else in the demo knows.
 *
 * @module
 */
import process from "node:process";
import { type AnyTopics, type BrokerAdapter, MemoryBroker, MemoryHub, type Topics } from "@xsm/eda";
import { RedisStreamsBroker } from "@xsm/eda/redis";

const url = process.env["XSM_BROKER_URL"] || undefined;

/** Memory brokers that share a hub see the same topics, as the clients of one server do. */
const hub = new MemoryHub();

/** Every run has keys of its own, so that it neither meets what another one left nor disturbs a running one. */
const prefix = `xsm-demo-${crypto.randomUUID().slice(0, 8)}`;

/** How long the owner of a topic may be silent before another instance takes over. Far below how long a handler is busy here. */
export const OWNER_LEASE_MS = 1_500;

/** Whether the demo runs on a server. */
export const onServer: boolean = url !== undefined;

/** What the broker is called in the report. */
export const brokerName: string = onServer ? "Redis Streams, in a worker" : "memory";

/** A broker object: one member of `group`. It does no I/O before its first call. */
export function openBroker<T extends Topics = AnyTopics>(
  options: { readonly group: string; readonly topics?: T },
): BrokerAdapter<T> {
  // Events published here that name no source of their own come from the shop.
  const common = { ...options, source: "/shop" };
  if (url === undefined) return new MemoryBroker<T>({ ...common, hub });
  return new RedisStreamsBroker<T>({ ...common, url, prefix, ownerLeaseMs: OWNER_LEASE_MS });
}

/** Removes this run's keys from the server. A service would keep them, and bound them with `retentionMs`. */
export async function removeTraces(): Promise<void> {
  if (url === undefined) return;
  const { Redis } = await import("ioredis");
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null, disconnectTimeout: 100 });
  // Without a listener the client prints what its calls reject with anyway.
  redis.on("error", () => {});
  try {
    await redis.connect();
    for await (const keys of redis.scanStream({ match: `*${prefix}:*`, count: 1_000 })) {
      if ((keys as string[]).length > 0) await redis.unlink(keys as string[]);
    }
  } catch {
    // The server is away; what the run failed with says so already.
  } finally {
    redis.disconnect();
  }
}
