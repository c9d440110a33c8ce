/**
 * The example adapter keeps the contract, so that whoever starts from it starts from something that holds.
 */
import { ListBroker, ListServer } from "../../examples/list_adapter/mod.ts";
import { contractCases } from "../contract/mod.ts";
import { test } from "../support/test.ts";

const server = new ListServer();

const cases = contractCases({
  name: "list",
  ordering: "none",
  broker: ({ ordered: _ordered, ...options }) => new ListBroker({ ...options, server }),
  raw: (topic, bytes) => Promise.resolve(server.append(topic, bytes)),
  inFlight: (topic, group) =>
    Promise.resolve([...server.group(topic, group)].filter((copy) => copy.holder !== undefined).length),
});

for (const { name, run, skip, timeoutMs } of cases) {
  test(name, { ...(skip === undefined ? {} : { skip }), ...(timeoutMs === undefined ? {} : { timeoutMs }) }, run);
}
