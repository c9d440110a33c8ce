/**
 * Amazon SQS as a broker. FIFO queues keep the order of each subject; standard queues do not (`ordered: false`). Polling and
 * visibility timeouts live in a Web Worker, so they go on while a handler burns the CPU.
 *
 * @example
 * ```ts ignore
 * import { SqsBroker } from "@xsm/eda/sqs";
 *
 * const broker = new SqsBroker({ region: "eu-central-1", group: "billing", source: "/shop" });
 * await broker.publish("orders", { type: "shop.order.placed", subject: "o-1", data: { total: 42 } });   // orders.fifo
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
import { sqsCapabilities } from "./capabilities.ts";
import { SQS_OPTION_NAMES, type SqsTransportOptions } from "./options.ts";
import { resolveOptions } from "./resolve.ts";

export type { SqsTransportOptions } from "./options.ts";

/** Options of {@link SqsBroker}. `group` only names this service: a queue has no groups, all its readers share its messages. */
export interface SqsBrokerOptions<T extends Topics = AnyTopics>
  extends
    BrokerOptions<T>,
    WorkerOptions,
    Omit<SqsTransportOptions, "maxBytes" | "connectTimeoutMs" | "commandTimeoutMs"> {}

/** A broker on Amazon SQS. */
export class SqsBroker<T extends Topics = AnyTopics> extends AsyncBroker<T> {
  /**
   * Checks the options and does no I/O; the first call connects.
   *
   * @throws InvalidOptionError for an unknown option, one out of range, or one that cannot be sent to the worker.
   */
  constructor(options: SqsBrokerOptions<T> = {}) {
    checkOptions(
      "SqsBroker",
      options,
      [...BROKER_OPTION_NAMES, ...WORKER_OPTION_NAMES, ...SQS_OPTION_NAMES],
      "options of SQSClient go into client",
    );
    const session = sessionOptions(options);
    const adapter: Record<string, unknown> = {
      maxBytes: session.maxBytes,
      connectTimeoutMs: session.connectTimeoutMs,
      commandTimeoutMs: Math.min(session.callTimeoutMs, 5_000),
    };
    for (const name of SQS_OPTION_NAMES) {
      const value = (options as Record<string, unknown>)[name];
      if (value !== undefined) adapter[name] = value;
    }
    const resolved = resolveOptions(adapter);
    const chosen = linkFor({
      options,
      adapter,
      session,
      clock: options.clock ?? systemClock,
      workerUrl: () => new URL("./sqs_worker.js", import.meta.url),
      load: () => import("./transport.ts"),
    });
    const survivesBlockedHost = chosen.isolation === "worker";
    super(options, {
      ...chosen,
      capabilities: { ...sqsCapabilities(resolved), survivesBlockedHost },
      groupOptional: true,
    });
  }
}

/** Never called: its literal import puts the worker into the module graph, so that caches and lock files hold it. */
export function anchor(): Promise<unknown> {
  return import("./sqs_worker.js");
}
