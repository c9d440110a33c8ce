import process from "node:process";
import { RedisStreamsBroker, type RedisStreamsBrokerOptions } from "../../adapters/redis/mod.ts";
import { contractCases, type Harness } from "../contract/mod.ts";
import { leg, type LegInfo, onLeg, type Proxy, startProxy } from "../support/test.ts";
import { Redis } from "ioredis";

/** Registers the contract over one server and one isolation. */
export function redisContract(
  legName: string,
  isolation: "worker" | "inline",
  extra: RedisStreamsBrokerOptions = {},
): void {
  const register = onLeg(legName);
  const known = leg(legName);
  const name = [legName, isolation, extra.ordered === false ? "unordered" : ""].filter(Boolean).join(" ");
  const state: { proxy?: Proxy; client?: Redis } = {};
  const harness = harnessOf(name, known, isolation, extra, state);
  for (const { name: title, run, skip, timeoutMs } of contractCases(harness)) {
    // Redis clients keep a timer of their own for some time after they are closed; what we leave behind, the leak tests measure.
    const options = { sanitize: false as const, skip, ...(timeoutMs === undefined ? {} : { timeoutMs }) };
    register(title, options, async (info, context) => {
      state.proxy = await startProxy({ port: portOf(info.url) });
      context.cleanup(() => state.proxy!.close());
      state.client = new Redis(info.url, { maxRetriesPerRequest: 1 });
      state.client.on("error", () => {});
      context.cleanup(() => state.client!.disconnect());
      await run();
    });
  }
}

function harnessOf(
  name: string,
  info: LegInfo | undefined,
  isolation: "worker" | "inline",
  extra: RedisStreamsBrokerOptions,
  state: { proxy?: Proxy; client?: Redis },
): Harness {
  const url = info?.url ?? "redis://127.0.0.1:1";
  const prefix = `xsm-test-${process.pid}`;
  const streamOf = (topic: string): string => `${prefix}:stream:${topic}`;
  return {
    name,
    ordering: extra.ordered === false ? "none" : "subject",
    broker: (options) => new RedisStreamsBroker({ url, prefix, isolation, ...extra, ...options }),
    faultyBroker: (options) =>
      new RedisStreamsBroker({ url: state.proxy!.url(url), prefix, isolation, ...extra, ...options }),
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
      await state.client!.xadd(streamOf(topic), "*", "ce", Buffer.from(bytes), "subject", "");
    },
    inFlight: async (topic, group) => {
      const summary = await state.client!.xpending(streamOf(topic), group) as [number];
      return summary[0];
    },
  };
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}
