/** The memory transport by itself, and names that objects have members of. */
import assert from "node:assert/strict";
import { MemoryHub } from "../../adapters/memory/hub.ts";
import { MemoryBroker } from "../../adapters/memory/mod.ts";
import { MemoryTransport } from "../../adapters/memory/transport.ts";
import { InboundDispatcher } from "../../core/dispatch/dispatcher.ts";
import type { TransportEvents } from "../../core/transport.ts";
import { text } from "../core/fake_transport.ts";
import { test } from "../support/test.ts";
import { VirtualClock } from "../support/virtual_clock.ts";

const SILENT: TransportEvents = {
  owned: () => {},
  revoked: () => {},
  lost: () => {},
  topic: () => {},
  lag: () => {},
  signal: () => {},
};
const now = { group: "g", max: 10, window: 10, waitMs: 0, signal: new AbortController().signal };

/** Two members of one group; the first has read one message. */
async function two(): Promise<{ first: MemoryTransport; second: MemoryTransport; native: unknown }> {
  const hub = new MemoryHub();
  const clock = new VirtualClock();
  const [first, second] = [0, 1].map(() => new MemoryTransport(hub, clock, true, 1_048_576)) as [
    MemoryTransport,
    MemoryTransport,
  ];
  await first.open(SILENT);
  await second.open(SILENT);
  await first.send("t", [{ body: text() }]);
  const [raw] = await first.fetch("t", now);
  return { first, second, native: raw!.native };
}

for (const how of ["ack", "release"] as const) {
  test(`a late ${how} does not make a member that left the owner of the topic again`, async () => {
    const { first, second, native } = await two();
    await first.unsubscribe("t", "g");
    const outcomes = how === "ack" ? await first.ack("t", "g", [native]) : await first.release("t", "g", [native], 0);
    assert.deepEqual(outcomes, ["stale"]);
    assert.equal((await second.fetch("t", now)).length, 1);
  });
}

test("a read behind the end of a transport makes it nobody's owner", async () => {
  const { first, second } = await two();
  await first.close();
  assert.deepEqual(await first.fetch("t", now), []);
  assert.equal((await second.fetch("t", now)).length, 1);
});

for (const name of ["__proto__", "constructor", "hasOwnProperty", "toString"]) {
  test(`${name} is a topic, group, subject, type, consumer and extension like any other`, async (t) => {
    const broker = new MemoryBroker({ group: name, source: "/s", logger: false });
    t.cleanup(() => broker.close());
    const seen: string[] = [];
    const app = new InboundDispatcher({
      broker,
      consumer: name,
      logger: false,
      maxAttempts: 1,
      routes: Object.fromEntries([
        [name, (envelope: { subject?: string }) => void seen.push(envelope.subject!)],
        ["bad", () => {
          throw new Error(name);
        }],
      ]),
    });
    const data = JSON.parse(`{"${name}":1}`);
    await broker.publish(name, { type: name, subject: name, id: name, data });
    await broker.publish(name, { type: name, subject: name, id: name, data });
    await broker.publish(name, { type: "bad", subject: name });
    const { processed, duplicates, deadLettered } = await app.runOnce([name]);
    assert.deepEqual({ processed, duplicates, deadLettered }, {
      processed: 1,
      duplicates: 1,
      deadLettered: { max_attempts: 1 },
    });
    assert.deepEqual(seen, [name]);
    assert.equal(broker.health().topics[0]?.topic, name);
  });
}
