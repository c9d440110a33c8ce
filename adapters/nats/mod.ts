/**
 * NATS JetStream (server 2.9 or later) as a broker. The connection, leases and heartbeats live in a Web Worker, so they
 * go on while a handler burns the CPU.
 *
 * @example
 * ```ts ignore
 * import { NatsJetStreamBroker } from "@xsm/eda/nats";
 *
 * const broker = new NatsJetStreamBroker({ url: "nats://127.0.0.1:4222", group: "billing", source: "/shop" });
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
import { natsCapabilities } from "./capabilities.ts";
import { NATS_OPTION_NAMES, type NatsTransportOptions } from "./options.ts";
import { resolveOptions } from "./resolve.ts";

export type { NatsTransportOptions } from "./options.ts";

/** Options of {@link NatsJetStreamBroker}. */
export interface NatsJetStreamBrokerOptions<T extends Topics = AnyTopics>
  extends
    BrokerOptions<T>,
    WorkerOptions,
    Omit<NatsTransportOptions, "maxBytes" | "connectTimeoutMs" | "commandTimeoutMs" | "publishTimeoutMs"> {}

/** A broker on NATS JetStream. */
export class NatsJetStreamBroker<T extends Topics = AnyTopics> extends AsyncBroker<T> {
  /**
   * Checks the options and does no I/O; the first call connects.
   *
   * @throws InvalidOptionError for an unknown option, one out of range, or one that cannot be sent to the worker.
   */
  constructor(options: NatsJetStreamBrokerOptions<T> = {}) {
    checkOptions(
      "NatsJetStreamBroker",
      options,
      [...BROKER_OPTION_NAMES, ...WORKER_OPTION_NAMES, ...NATS_OPTION_NAMES],
      "options of @nats-io/transport-node go into client",
    );
    const session = sessionOptions(options);
    const adapter: Record<string, unknown> = {
      maxBytes: session.maxBytes,
      connectTimeoutMs: session.connectTimeoutMs,
      publishTimeoutMs: session.publishTimeoutMs,
      commandTimeoutMs: Math.min(session.callTimeoutMs, 5_000),
    };
    for (const name of NATS_OPTION_NAMES) {
      const value = (options as Record<string, unknown>)[name];
      if (value !== undefined) adapter[name] = value;
    }
    const resolved = resolveOptions(adapter);
    const chosen = linkFor({
      options,
      adapter,
      session,
      clock: options.clock ?? systemClock,
      workerUrl: () => new URL("./nats_worker.js", import.meta.url),
      load: () => import("./transport.ts"),
    });
    const survivesBlockedHost = chosen.isolation === "worker";
    super(options, {
      ...chosen,
      capabilities: { ...natsCapabilities(resolved), survivesBlockedHost },
      groupOptional: false,
    });
  }
}

/** Never called: its literal import puts the worker into the module graph, so that caches and lock files hold it. */
export function anchor(): Promise<unknown> {
  return import("./nats_worker.js");
}
