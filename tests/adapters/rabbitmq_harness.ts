import { queueArguments } from "../../adapters/rabbitmq/queue.ts";
import { resolveOptions } from "../../adapters/rabbitmq/resolve.ts";
import {
  RabbitMqBroker,
  type RabbitMqBrokerOptions,
  type RabbitMqTransportOptions,
} from "../../adapters/rabbitmq/mod.ts";
import { contractCases, type Harness } from "../contract/mod.ts";
import { leg, type LegInfo, onLeg, type Proxy, startProxy } from "../support/test.ts";
import { bedServer, inFlightOf, type RawClient, rawClient } from "./rabbitmq_support.ts";

interface State {
  proxy?: Proxy;
  client?: RawClient;
}

/** Registers the contract over one server and one isolation. */
export function rabbitMqContract(
  legName: string,
  isolation: "worker" | "inline",
  extra: RabbitMqBrokerOptions = {},
): void {
  const register = onLeg(legName);
  const name = [legName, isolation, extra.ordered === false ? "unordered" : ""].filter(Boolean).join(" ");
  const state: State = {};
  const harness = harnessOf(name, legName, leg(legName), isolation, extra, state);
  for (const { name: title, run, skip, timeoutMs } of contractCases(harness)) {
    register(title, { skip, ...(timeoutMs === undefined ? {} : { timeoutMs }) }, async (info, context) => {
      state.proxy = await startProxy({ port: Number(new URL(info.url).port) });
      context.cleanup(() => state.proxy!.close());
      state.client = await rawClient(context, info.url);
      await run();
    });
  }
}

function harnessOf(
  name: string,
  legName: string,
  info: LegInfo | undefined,
  isolation: "worker" | "inline",
  extra: RabbitMqBrokerOptions,
  state: State,
): Harness {
  const url = info?.url ?? "amqp://127.0.0.1:1";
  // What is in flight can only be asked of a server that runs here.
  const server = bedServer(legName);
  return {
    name,
    ordering: extra.ordered === false ? "none" : "subject",
    connectionBound: true,
    broker: (options) => new RabbitMqBroker({ url, isolation, ...extra, ...options }),
    faultyBroker: (options) => new RabbitMqBroker({ url: state.proxy!.url(url), isolation, ...extra, ...options }),
    faults: {
      down: async () => {
        await state.proxy!.refuse();
        await state.proxy!.cut();
      },
      up: () => state.proxy!.heal(),
      cut: () => state.proxy!.cut(),
      blackHole: () => state.proxy!.blackHole(),
    },
    raw: (topic, bytes) =>
      state.client!.put(topic, bytes, queueArguments(resolveOptions(extra as RabbitMqTransportOptions))),
    ...(server === undefined ? {} : { inFlight: (topic) => inFlightOf(server, topic) }),
  };
}
