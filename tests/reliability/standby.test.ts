import assert from "node:assert/strict";
import { RedisStreamsBroker, type RedisStreamsBrokerOptions } from "../../adapters/redis/mod.ts";
import { isEdaError } from "../../core/errors.ts";
import { ServerView } from "./view.ts";
import { fresh, onLeg, type TestContext, until } from "../support/test.ts";

const onRedis = onLeg("redis");

function brokerOf(context: TestContext, options: RedisStreamsBrokerOptions): RedisStreamsBroker {
  const broker = new RedisStreamsBroker({ source: "/standby", group: "billing", logger: false, ...options });
  context.cleanup(() => broker.close({ drainMs: 500 }));
  return broker;
}

/** Reads and acks until its broker is closed; answers the subjects it was handed. */
function consume(broker: RedisStreamsBroker): string[] {
  const seen: string[] = [];
  void (async () => {
    for await (const delivery of broker.subscribe("orders")) {
      seen.push(delivery.envelope.subject!);
      await delivery.ack();
    }
  })().catch(() => {});
  return seen;
}

const stateOf = (broker: RedisStreamsBroker): string | undefined => broker.health().topics[0]?.state;

for (const partitions of [1, 2]) {
  onRedis(
    `a member beyond the ${partitions} partitions stands by, healthy, and works at once when another leaves`,
    { sanitize: false },
    async ({ url }, context) => {
      const options = { url, prefix: fresh("standby"), partitions };
      const names = Array.from({ length: partitions + 1 }, (_, at) => `m${at}`);
      const server = new ServerView({ ...options, topic: "orders", group: "billing" });
      context.cleanup(() => server.clear());
      const brokers = names.map((consumer) => brokerOf(context, { ...options, consumer }));
      const seen = brokers.map(consume);
      const spare = await until(async () => {
        const owners = await server.owners();
        if (new Set(owners).size !== partitions || owners.includes(undefined)) return undefined;
        const right = brokers.every((broker, at) =>
          stateOf(broker) === (owners.includes(names[at]) ? "active" : "standby")
        );
        // One more than the index, for 0 is a condition that does not hold.
        return right && names.findIndex((name) => !owners.includes(name)) + 1;
      }, { what: "one partition a member, and one member standing by" }) - 1;
      assert.equal(brokers[spare]!.healthy, true);
      assert.equal(brokers[spare]!.health().status, "healthy");
      await brokers[(spare + 1) % brokers.length]!.close();
      const from = performance.now();
      const messages = Array.from({ length: 20 }, (_, at) => ({ type: "n", subject: `s${at}` }));
      await brokers[spare]!.publishAll("orders", messages);
      await until(() => seen.flat().length === 20, { what: "all to arrive" });
      assert.ok(seen[spare]!.length > 0);
      assert.ok(performance.now() - from < 3_000);
      assert.equal(stateOf(brokers[spare]!), "active");
    },
  );
}

onRedis(
  "another number of partitions refuses publishing and subscribing, naming both numbers",
  { sanitize: false },
  async ({ url }, context) => {
    const prefix = fresh("mismatch");
    const eight = brokerOf(context, { url, prefix, partitions: 8 });
    await eight.publish("orders", { type: "n", subject: "s" });
    const three = brokerOf(context, { url, prefix, partitions: 3 });
    const refused = (error: unknown): boolean => {
      assert.ok(isEdaError(error));
      assert.equal(error.code, "partition-mismatch");
      assert.match(error.message, /\b3\b.*\b8\b/);
      return true;
    };
    await assert.rejects(three.publish("orders", { type: "n", subject: "s" }), refused);
    await assert.rejects(three.subscribe("orders")[Symbol.asyncIterator]().next(), refused);
    assert.notEqual(three.health().status, "unhealthy", "an error of the caller changes no health");
  },
);
