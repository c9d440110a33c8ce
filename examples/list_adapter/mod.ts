/**
 * The host's face of the adapter: options, their checks, and the broker class. It never imports a client.
 *
 * @module
 */
import {
  AsyncBroker,
  BROKER_OPTION_NAMES,
  type BrokerOptions,
  checkOptions,
  linkFor,
  sessionOptions,
  systemClock,
} from "@xsm/eda/adapter";
import { capabilities, ListServer, ListTransport } from "./transport.ts";

/** Options of {@link ListBroker}. */
export interface ListBrokerOptions extends BrokerOptions {
  /** Share it between brokers that are to see the same topics. */
  readonly server?: ListServer;
}

/** A broker over a list. Always inline: its server is an object, which no other thread can be given. */
export class ListBroker extends AsyncBroker {
  /** @throws InvalidOptionError for an unknown option or one out of range. */
  constructor(options: ListBrokerOptions = {}) {
    checkOptions("ListBroker", options, [...BROKER_OPTION_NAMES, "server"]);
    const server = options.server ?? new ListServer();
    super(options, {
      ...linkFor({
        options: { isolation: "inline" },
        adapter: {}, // the adapter's own options: plain data, so that they can cross to a worker
        session: sessionOptions(options),
        clock: options.clock ?? systemClock,
        // Asked only for isolation "worker". An adapter with a client names its worker's file here; see adapters/redis/mod.ts.
        workerUrl: () => {
          throw new Error("this adapter has no worker");
        },
        load: () => Promise.resolve({ createTransport: (_options, clock) => new ListTransport(server, clock) }),
      }),
      capabilities,
      groupOptional: true,
    });
  }
}

export { ListServer } from "./transport.ts";
