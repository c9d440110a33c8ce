import { NatsJetStreamBroker, type NatsJetStreamBrokerOptions } from "../../adapters/nats/mod.ts";
import { contractCases, type Harness } from "../contract/mod.ts";
import { leg, type LegInfo, onLeg, type Proxy, startProxy } from "../support/test.ts";
import { NatsAdmin } from "./nats_admin.ts";

/** Registers the contract, or those cases of it whose names match, over one server and one isolation. */
export function natsContract(
  legName: string,
  isolation: "worker" | "inline",
  extra: NatsJetStreamBrokerOptions = {},
  only: RegExp = /./,
): void {
  const register = onLeg(legName);
  const known = leg(legName);
  const name = [legName, isolation, extra.ordered === false ? "unordered" : ""].filter(Boolean).join(" ");
  const state: { proxy?: Proxy; admin?: NatsAdmin } = {};
  const harness = harnessOf(name, known, isolation, extra, state);
  for (const { name: title, run, skip, timeoutMs } of contractCases(harness)) {
    if (!only.test(title)) continue;
    const options = { skip, ...(timeoutMs === undefined ? {} : { timeoutMs }) };
    register(title, options, async (info, context) => {
      state.proxy = await startProxy({ port: Number(new URL(info.url).port) });
      context.cleanup(() => state.proxy!.close());
      state.admin = await NatsAdmin.connect(info.url);
      context.cleanup(() => state.admin!.close());
      await run();
    });
  }
}

function harnessOf(
  name: string,
  info: LegInfo | undefined,
  isolation: "worker" | "inline",
  extra: NatsJetStreamBrokerOptions,
  state: { proxy?: Proxy; admin?: NatsAdmin },
): Harness {
  const url = info?.url ?? "nats://127.0.0.1:1";
  return {
    name,
    ordering: extra.ordered === false ? "none" : "subject",
    broker: (options) => new NatsJetStreamBroker({ url, isolation, ...extra, ...options }),
    faultyBroker: (options) => new NatsJetStreamBroker({ url: state.proxy!.url(url), isolation, ...extra, ...options }),
    faults: {
      down: async () => {
        await state.proxy!.refuse();
        await state.proxy!.cut();
      },
      up: () => state.proxy!.heal(),
      cut: () => state.proxy!.cut(),
      blackHole: () => state.proxy!.blackHole(),
    },
    raw: async (topic, bytes) => {
      await state.admin!.put(`${topic}._`, bytes).catch(async () => {
        // Nobody published there yet.
        await state.admin!.api(`STREAM.CREATE.${topic}`, { name: topic, subjects: [`${topic}.>`] });
        await state.admin!.put(`${topic}._`, bytes);
      });
    },
    inFlight: (topic, group) => state.admin!.inFlight(topic, group),
  };
}
