/**
 * The memory broker: the whole contract in one process, for development, tests and the parts of a service that need no
 * broker. Brokers that share a {@link MemoryHub} see each other's messages; nothing outlives the process.
 *
 * @example
 * ```ts
 * import { MemoryBroker } from "@xsm/eda";
 *
 * const broker = new MemoryBroker({ source: "/shop" });
 * await broker.publish("orders", { type: "shop.order.placed", subject: "o-1", data: { total: 42 } });
 * for await (const delivery of broker.subscribe("orders", { idleMs: 0 })) await delivery.ack();
 * await broker.close();
 * ```
 *
 * @module
 */
import { AsyncBroker } from "../../core/broker.ts";
import { BROKER_OPTION_NAMES, type BrokerOptions, sessionOptions } from "../../core/broker_options.ts";
import { systemClock } from "../../core/clock.ts";
import { checkOptions } from "../../core/options.ts";
import type { AnyTopics, Topics } from "../../core/topics.ts";
import { InlineLink } from "../../workers/inline_link.ts";
import { MemoryHub } from "./hub.ts";
import { memoryCapabilities, MemoryTransport } from "./transport.ts";

/** Options of {@link MemoryBroker}. */
export interface MemoryBrokerOptions<T extends Topics = AnyTopics> extends BrokerOptions<T> {
  /** Share it between brokers that are to see the same topics. Default: one of its own. */
  readonly hub?: MemoryHub;
  /** Keep order per subject: one owner a topic and group at a time. Default true. */
  readonly ordered?: boolean;
}

/** A broker in memory. Always inline; needs no group. */
export class MemoryBroker<T extends Topics = AnyTopics> extends AsyncBroker<T> {
  /** Where its messages are. */
  readonly hub: MemoryHub;

  /** @throws InvalidOptionError for an unknown option or one out of range. */
  constructor(options: MemoryBrokerOptions<T> = {}) {
    checkOptions("MemoryBroker", options, [...BROKER_OPTION_NAMES, "hub", "ordered"]);
    const clock = options.clock ?? systemClock;
    const hub = options.hub ?? new MemoryHub();
    const ordered = options.ordered ?? true;
    const session = sessionOptions(options);
    super(options, {
      isolation: "inline",
      capabilities: memoryCapabilities(ordered, session.maxBytes),
      groupOptional: true,
      link: () => new InlineLink(() => new MemoryTransport(hub, clock, ordered, session.maxBytes), clock, session),
    });
    this.hub = hub;
  }
}

export { MemoryHub };
