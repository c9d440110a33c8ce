/**
 * RabbitMQ (3.10 or later) as a broker. Connections and heartbeats live in a Web Worker, so they go on while a handler burns
 * the CPU.
 *
 * @example
 * ```ts ignore
 * import { RabbitMqBroker } from "@xsm/eda/rabbitmq";
 *
 * const broker = new RabbitMqBroker({ url: "amqp://127.0.0.1:5672", group: "billing", source: "/shop" });
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
import { rabbitMqCapabilities } from "./capabilities.ts";
import { RABBITMQ_OPTION_NAMES, type RabbitMqTransportOptions } from "./options.ts";
import { resolveOptions } from "./resolve.ts";

export type { RabbitMqTransportOptions } from "./options.ts";

/** Options of {@link RabbitMqBroker}. */
export interface RabbitMqBrokerOptions<T extends Topics = AnyTopics>
  extends
    BrokerOptions<T>,
    WorkerOptions,
    Omit<RabbitMqTransportOptions, "maxBytes" | "connectTimeoutMs" | "publishTimeoutMs"> {}

/** A broker on RabbitMQ. */
export class RabbitMqBroker<T extends Topics = AnyTopics> extends AsyncBroker<T> {
  /**
   * Checks the options and does no I/O; the first call connects.
   *
   * @throws InvalidOptionError for an unknown option, one out of range, or one that cannot be sent to the worker.
   */
  constructor(options: RabbitMqBrokerOptions<T> = {}) {
    checkOptions(
      "RabbitMqBroker",
      options,
      [...BROKER_OPTION_NAMES, ...WORKER_OPTION_NAMES, ...RABBITMQ_OPTION_NAMES],
      "socket options of amqplib go into client",
    );
    const session = sessionOptions(options);
    const adapter: Record<string, unknown> = {
      maxBytes: session.maxBytes,
      connectTimeoutMs: session.connectTimeoutMs,
      publishTimeoutMs: session.publishTimeoutMs,
    };
    for (const name of RABBITMQ_OPTION_NAMES) {
      const value = (options as Record<string, unknown>)[name];
      if (value !== undefined) adapter[name] = value;
    }
    const resolved = resolveOptions(adapter);
    const chosen = linkFor({
      options,
      adapter,
      session,
      clock: options.clock ?? systemClock,
      workerUrl: () => new URL("./rabbitmq_worker.js", import.meta.url),
      load: () => import("./transport.ts"),
    });
    const survivesBlockedHost = chosen.isolation === "worker";
    super(options, {
      ...chosen,
      capabilities: { ...rabbitMqCapabilities(resolved), survivesBlockedHost },
      groupOptional: resolved.reference,
    });
  }
}

/** Never called: its literal import puts the worker into the module graph, so that caches and lock files hold it. */
export function anchor(): Promise<unknown> {
  return import("./rabbitmq_worker.js");
}
