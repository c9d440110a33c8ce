import { Buffer } from "node:buffer";
import { KafkaBroker, type KafkaBrokerOptions } from "../../adapters/kafka/mod.ts";
import { contractCases, type Harness } from "../contract/mod.ts";
import type { KafkaDoor } from "../support/kafka_door.ts";
import { openKafkaDoor } from "../support/kafka_door.ts";
import { leg, type LegInfo, onLeg } from "../support/test.ts";
import { type Hand, openHand } from "./kafka_support.ts";

/** Registers the contract over one isolation. */
export function kafkaContract(isolation: "worker" | "inline", extra: KafkaBrokerOptions = {}): void {
  const register = onLeg("kafka");
  const info = leg("kafka");
  const state: { door?: KafkaDoor; hand?: Hand } = {};
  const harness = harnessOf(["kafka", isolation].join(" "), info, isolation, extra, state);
  for (const { name: title, run, skip, timeoutMs } of contractCases(harness)) {
    // The client ends its timers some time after it is closed; what we leave behind, the leak tests measure.
    const options = { sanitize: false as const, skip, timeoutMs: timeoutMs ?? 30_000 };
    register(title, options, async (server, context) => {
      state.door = await openKafkaDoor(server);
      context.cleanup(() => state.door!.proxy.close());
      state.hand = await openHand(server.url);
      context.cleanup(() => state.hand!.close());
      await run();
    });
  }
}

function harnessOf(
  name: string,
  info: LegInfo | undefined,
  isolation: "worker" | "inline",
  extra: KafkaBrokerOptions,
  state: { door?: KafkaDoor; hand?: Hand },
): Harness {
  const brokers = (info?.url ?? "127.0.0.1:1").split(",");
  return {
    name,
    takeOverMs: 2_000,
    broker: (options) => {
      const { ordered: _native, ...rest } = options;
      return new KafkaBroker({ brokers, isolation, ...extra, ...rest });
    },
    faultyBroker: (options) => {
      const { ordered: _native, ...rest } = options;
      return new KafkaBroker({ brokers: [state.door!.brokers], isolation, ...extra, ...rest });
    },
    faults: {
      down: async () => {
        await state.door!.proxy.refuse();
        await state.door!.proxy.cut();
      },
      up: () => state.door!.proxy.heal(),
      cut: () => state.door!.proxy.cut(),
      blackHole: () => state.door!.proxy.blackHole(),
    },
    raw: async (topic, bytes) => {
      await state.hand!.write(topic, [{ value: Buffer.from(bytes) }]);
    },
  };
}
