import assert from "node:assert/strict";
import { MemoryBroker } from "../../adapters/memory/mod.ts";
import { RedisStreamsBroker } from "../../adapters/redis/mod.ts";
import type { BrokerAdapter } from "../../core/contract.ts";
import { countedSignal } from "../support/counted_signal.ts";
import { fresh, leakCheck, onLeg, test } from "../support/test.ts";

/** Opens, publishes, consumes with a signal that outlives everything, and closes. */
async function cycle(broker: BrokerAdapter, topic: string, signal: AbortSignal, n: number): Promise<void> {
  await broker.publish(topic, { type: "n", subject: "s", data: n });
  for await (const delivery of broker.subscribe(topic, { signal })) {
    assert.equal(delivery.envelope.data, n);
    await delivery.ack({ confirm: true });
    break;
  }
  const report = await broker.close();
  assert.deepEqual(report, { released: 0, unconfirmed: 0, terminated: false });
}

async function hundredCycles(make: () => BrokerAdapter): Promise<void> {
  const topic = fresh("t");
  const { signal, listeners } = countedSignal();
  await leakCheck((n) => cycle(make(), topic, signal, n), { cycles: 98, warmUp: 2 });
  assert.equal(listeners(), 0);
}

const what = "100 cycles of open, consume and close leave no worker, socket, timer or listener behind";

test(`memory: ${what}`, () => {
  return hundredCycles(() => new MemoryBroker({ source: "/leak", logger: false }));
});

for (const isolation of ["worker", "inline"] as const) {
  onLeg("redis")(`${isolation}: ${what}`, { timeoutMs: 120_000 }, async ({ url }) => {
    const prefix = fresh("t");
    await hundredCycles(() =>
      new RedisStreamsBroker({ url, prefix, isolation, group: "g", source: "/leak", logger: false })
    );
  });
}
