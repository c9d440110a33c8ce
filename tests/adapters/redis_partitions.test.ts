import assert from "node:assert/strict";
import { partitionOf } from "../../adapters/redis/keys.ts";
import { RedisStreamsBroker, type RedisStreamsBrokerOptions } from "../../adapters/redis/mod.ts";
import { onLegs, type TestContext, until } from "../support/test.ts";
import { type Admin, admin, names, openTransport, pendingOf, publish, Reader } from "./redis_support.ts";

/** A subject that belongs to a partition. */
function subjectIn(partition: number, partitions: number, tag = "s"): string {
  for (let at = 0;; at++) if (partitionOf(`${tag}${at}`, partitions) === partition) return `${tag}${at}`;
}

function brokerOf(context: TestContext, options: RedisStreamsBrokerOptions): RedisStreamsBroker {
  const broker = new RedisStreamsBroker({ source: "/partitions", group: "billing", logger: false, ...options });
  context.cleanup(() => broker.close({ drainMs: 500 }));
  return broker;
}

/** Publishes `each` numbered events under every subject. */
async function fill(
  broker: RedisStreamsBroker,
  topic: string,
  subjects: readonly string[],
  each: number,
): Promise<void> {
  for (let n = 0; n < each; n++) {
    await broker.publishAll(topic, subjects.map((subject) => ({ type: "n", subject, data: n })));
  }
}

/** What is pending in each partition, all at one moment. */
async function pendingByPartition(client: Admin, stream: string, partitions: number, group: string): Promise<number[]> {
  const keys = Array.from({ length: partitions }, (_, n) => `${stream}:${n}`);
  const script = `
local out = {}
for at, key in ipairs(KEYS) do
  local pending = redis.pcall('XPENDING', key, ARGV[1])
  out[at] = pending.err and 0 or pending[1]
end
return out`;
  return await client.call("EVAL", script, keys.length, ...keys, group) as number[];
}

onLegs(["redis"], (onRedis) => {
  for (const isolation of ["worker", "inline"] as const) {
    const options = { isolation, partitions: 4, prefetch: 16 } as const;
    onRedis(
      `9: every partition has its share of prefetch, and waits when it is used up (${isolation})`,
      { sanitize: false },
      async ({ url }, context) => {
        const n = names();
        const client = await admin(context, url);
        const broker = brokerOf(context, { url, prefix: n.prefix, ...options });
        const subjects = [0, 1, 2, 3].map((at) => subjectIn(at, 4));
        await fill(broker, n.topic, subjects, 12);
        const bySubject = new Map<string, number>();
        let taken = 0;
        for await (const { envelope } of broker.subscribe(n.topic)) {
          bySubject.set(envelope.subject!, (bySubject.get(envelope.subject!) ?? 0) + 1);
          if (++taken === 16) break;
        }
        assert.deepEqual(subjects.map((subject) => bySubject.get(subject)), [4, 4, 4, 4]);
        assert.deepEqual(await pendingByPartition(client, n.stream, 4, n.group), [4, 4, 4, 4]);
      },
    );

    onRedis(
      `9: a partition with a held subject never starves the others (${isolation})`,
      { sanitize: false },
      async ({ url }, context) => {
        const n = names();
        const client = await admin(context, url);
        const broker = brokerOf(context, { url, prefix: n.prefix, ...options });
        const held = subjectIn(0, 4, "held");
        const others = [1, 2, 3].map((at) => subjectIn(at, 4));
        await fill(broker, n.topic, [held], 40);
        await fill(broker, n.topic, others, 30);
        let flowed = 0;
        const seen = new Map<string, number[]>();
        for await (const delivery of broker.subscribe(n.topic)) {
          const { subject } = delivery.envelope;
          if (subject === held) {
            await delivery.retry({ delayMs: 60_000 });
            continue;
          }
          seen.set(subject!, [...seen.get(subject!) ?? [], delivery.envelope.data as number]);
          await delivery.ack();
          if (++flowed === 90) break;
        }
        for (const subject of others) assert.deepEqual(seen.get(subject), Array.from({ length: 30 }, (_, at) => at));
        await until(async () => (await pendingByPartition(client, n.stream, 4, n.group)).join() === "4,0,0,0", {
          what: "the held share alone to be unsettled",
        });
      },
    );
  }

  onRedis("9: seven of eight partitions held, the last one flows", { sanitize: false }, async ({ url }, context) => {
    const n = names();
    const broker = brokerOf(context, { url, prefix: n.prefix, partitions: 8, prefetch: 32 });
    const subjects = Array.from({ length: 8 }, (_, at) => subjectIn(at, 8));
    await fill(broker, n.topic, subjects, 20);
    let flowed = 0;
    for await (const delivery of broker.subscribe(n.topic)) {
      if (delivery.envelope.subject !== subjects[7]) continue;
      await delivery.ack();
      if (++flowed === 20) break;
    }
    assert.equal(broker.health().topics[0]!.unsettled, 28);
  });

  for (const prefetch of [1, 3]) {
    onRedis(
      `9: prefetch ${prefetch} over eight partitions: they take turns, and never more is in flight`,
      { sanitize: false },
      async ({ url }, context) => {
        const n = names();
        const client = await admin(context, url);
        const broker = brokerOf(context, { url, prefix: n.prefix, partitions: 8, prefetch });
        const subjects = Array.from({ length: 8 }, (_, at) => subjectIn(at, 8));
        await fill(broker, n.topic, subjects, 5);
        const order: string[] = [];
        for await (const delivery of broker.subscribe(n.topic)) {
          order.push(delivery.envelope.subject!);
          const pending = await pendingByPartition(client, n.stream, 8, n.group);
          assert.ok(pending.reduce((sum, count) => sum + count, 0) <= prefetch);
          await delivery.ack();
          if (order.length === 40) break;
        }
        // Nobody has its second turn much before another had its first.
        assert.equal(new Set(order.slice(0, 8 + prefetch)).size, 8);
      },
    );
  }

  onRedis("a settle refused because the owner key was gone is sent again once it is back", async ({ url }, context) => {
    const n = names();
    const client = await admin(context, url);
    const { transport, listener } = await openTransport(context, { url, prefix: n.prefix });
    const reader = new Reader(transport, n.topic, n.group);
    await publish(transport, n.topic, ["m1", "m2"], "a");
    const held = await reader.take(2);
    await client.call("DEL", n.owner);
    assert.deepEqual(await reader.ack(held), ["settled", "settled"]);
    assert.equal(await pendingOf(client, n.stream, n.group), 0);
    assert.equal(listener.count("revoked"), 0);
  });
});
