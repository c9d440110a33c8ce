/**
 * All brokers that can be measured, by name.
 *
 * @module
 */
import type { BenchBroker } from "./support/broker.ts";

/** Loads a broker. */
export const BROKERS: Readonly<Record<string, () => Promise<BenchBroker>>> = {
  nats: async () => (await import("./brokers/nats.ts")).nats,
  rabbitmq: async () => (await import("./brokers/rabbitmq.ts")).rabbitmq,
  kafka: async () => (await import("./brokers/kafka.ts")).kafka,
  redis: async () => (await import("./brokers/redis.ts")).redis,
  sqs: async () => (await import("./brokers/sqs.ts")).sqs,
};

/** The broker of this name. */
export function brokerOf(name: string): Promise<BenchBroker> {
  const load = BROKERS[name];
  if (load === undefined) throw new TypeError(`Unknown broker "${name}": use ${Object.keys(BROKERS).join(", ")}`);
  return load();
}
