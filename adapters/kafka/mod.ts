/**
 * Kafka (3.0 or later) as a broker, over the npm package `kafkajs`. Connections, heartbeats and the membership in the group
 * live in a Web Worker, so they go on while a handler burns the CPU.
 *
 * @example
 * ```ts ignore
 * import { KafkaBroker } from "@xsm/eda/kafka";
 *
 * const broker = new KafkaBroker({ url: "kafka://127.0.0.1:9092", group: "billing", source: "/shop" });
 * await broker.publish("orders", { type: "shop.order.placed", subject: "o-1", data: { total: 42 } });
 * for await (const delivery of broker.subscribe("orders")) {
 *   console.log(delivery.envelope.data);
 *   await delivery.ack();
 * }
 * ```
 *
 * @module
 */
import { AsyncBroker } from "../../core/broker.ts";
import {
  BROKER_OPTION_NAMES,
  type BrokerOptions,
  sessionOptions,
  WORKER_OPTION_NAMES,
  type WorkerOptions,
} from "../../core/broker_options.ts";
import { systemClock } from "../../core/clock.ts";
import { checkOptions } from "../../core/options.ts";
import type { AnyTopics, Topics } from "../../core/topics.ts";
import { linkFor } from "../../workers/link_for.ts";
import { kafkaCapabilities } from "./capabilities.ts";
import { KAFKA_OPTION_NAMES, type KafkaTransportOptions } from "./options.ts";
import { resolveOptions } from "./resolve.ts";

export type { KafkaCompression, KafkaTransportOptions } from "./options.ts";

/** Options of {@link KafkaBroker}. */
export interface KafkaBrokerOptions<T extends Topics = AnyTopics>
  extends
    BrokerOptions<T>,
    WorkerOptions,
    Omit<KafkaTransportOptions, "maxBytes" | "connectTimeoutMs" | "commandTimeoutMs" | "publishTimeoutMs"> {}

/** A broker on Kafka. */
export class KafkaBroker<T extends Topics = AnyTopics> extends AsyncBroker<T> {
  /**
   * Checks the options and does no I/O; the first call connects.
   *
   * @throws InvalidOptionError for an unknown option, one out of range, or one that cannot be sent to the worker.
   */
  constructor(options: KafkaBrokerOptions<T> = {}) {
    checkOptions(
      "KafkaBroker",
      options,
      [...BROKER_OPTION_NAMES, ...WORKER_OPTION_NAMES, ...KAFKA_OPTION_NAMES],
      "options of kafkajs go into client",
    );
    const session = sessionOptions(options);
    const adapter: Record<string, unknown> = {
      maxBytes: session.maxBytes,
      connectTimeoutMs: session.connectTimeoutMs,
      publishTimeoutMs: session.publishTimeoutMs,
      commandTimeoutMs: Math.min(session.callTimeoutMs, 5_000),
    };
    for (const name of KAFKA_OPTION_NAMES) {
      const value = (options as Record<string, unknown>)[name];
      if (value !== undefined) adapter[name] = value;
    }
    const resolved = resolveOptions(adapter);
    const chosen = linkFor({
      options,
      adapter,
      session,
      clock: options.clock ?? systemClock,
      workerUrl: () => new URL("./kafka_worker.js", import.meta.url),
      load: () => import("./transport.ts"),
    });
    const survivesBlockedHost = chosen.isolation === "worker";
    super(options, {
      ...chosen,
      capabilities: { ...kafkaCapabilities(resolved.maxBytes), survivesBlockedHost },
      groupOptional: false,
    });
  }
}

/** Never called: its literal import puts the worker into the module graph, so that caches and lock files hold it. */
export function anchor(): Promise<unknown> {
  return import("./kafka_worker.js");
}
