import assert from "node:assert/strict";
import { onServer } from "../support/test.ts";
import { OUTAGE_KINDS, runOutages } from "./outages/outages.ts";

/** Shorter than what is promised: the long ones take `deno task reliability --only outages`. */
const SHORT = { cutMs: 1_000, blackHoleMs: 3_000, freezeMs: 2_000 };

for (const server of ["redis", "nats", "rabbitmq", "kafka", "sqs"]) {
  onServer(server)(
    "it is killed, cut off, silent and frozen under load: all that was confirmed arrives, in order",
    { timeoutMs: 240_000 },
    async (start) => {
      const plan = { server, kinds: OUTAGE_KINDS, rounds: 1, lengths: SHORT, perSecond: 200 };
      const { outages, violations } = await runOutages(plan, () => {}, start);
      assert.deepEqual(violations, []);
      assert.equal(outages.length, OUTAGE_KINDS.length);
      for (const { sent } of outages) assert.ok(sent > 100, "there was load");
    },
  );
}
