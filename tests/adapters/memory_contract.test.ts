import { MemoryBroker } from "../../adapters/memory/mod.ts";
import { MemoryHub } from "../../adapters/memory/mod.ts";
import { contractCases } from "../contract/mod.ts";
import { test } from "../support/test.ts";

const hub = new MemoryHub();

const cases = contractCases({
  name: "memory",
  broker: (options) => new MemoryBroker({ ...options, hub }),
  raw: (topic, bytes) => {
    // The hub keeps text; bytes that are no text go in as they are, which is what a real server would hand out.
    hub.publish(topic, bytes as unknown as string);
    return Promise.resolve();
  },
  inFlight: (topic, group) => Promise.resolve(hub.group(topic, group, true).pending),
});

for (const { name, run, skip, timeoutMs } of cases) {
  test(name, { ...(skip === undefined ? {} : { skip }), ...(timeoutMs === undefined ? {} : { timeoutMs }) }, run);
}
