import assert from "node:assert/strict";
import { isEdaError } from "../../core/errors.ts";
import { type ContractCase, contractCase, eventually, type Harness, severalOfOneSubject } from "./kit.ts";

/** Promise 16 and the life cycle. */
export function lifeCases(harness: Harness): ContractCase[] {
  return [
    contractCase(harness, "16: close is idempotent, ends subscriptions, and every later call is refused", async (c) => {
      const broker = c.broker();
      const stream = broker.subscribe(c.topic)[Symbol.asyncIterator]();
      const waiting = stream.next();
      await eventually("it reads", () => broker.health().topics[0]?.state === "active");
      const [one, two] = await Promise.all([broker.close(), broker.close()]);
      assert.deepEqual(one, two);
      assert.equal(one.terminated, false);
      assert.deepEqual(await waiting, { done: true, value: undefined });
      for (let n = 0; n < 3; n++) {
        await assert.rejects(
          broker.publish(c.topic, { type: "a" }),
          (error) => isEdaError(error) && error.code === "closed",
        );
      }
      await assert.rejects(broker.connect(), (error) => isEdaError(error) && error.code === "closed");
      assert.throws(() => broker.subscribe(c.topic), (error) => isEdaError(error) && error.code === "closed");
      assert.equal(broker.health().status, "closed");
      assert.equal(broker.healthy, false);
    }),
    contractCase(harness, "16: closing an idle subscription takes less than a second (RED-14, RUN-10)", async (c) => {
      const broker = c.broker();
      const stream = broker.subscribe(c.topic)[Symbol.asyncIterator]();
      const waiting = stream.next();
      await eventually("it reads", () => broker.health().topics[0]?.state === "active");
      const start = performance.now();
      await broker.close();
      assert.ok(performance.now() - start < 1_000, "close was quick");
      await waiting;
    }),
    contractCase(
      harness,
      "16: close gives unsettled messages back at once: the next consumer has them within a second",
      async (c) => {
        const first = c.broker();
        const second = c.broker();
        await c.fill(first, 10, 3);
        const held = await c.take(first, 4);
        const stream = second.subscribe(c.topic)[Symbol.asyncIterator]();
        const next = stream.next();
        await held[0]!.ack();
        const aborted = held[1]!.signal;
        await first.close();
        assert.equal(aborted.aborted, true);
        const start = performance.now();
        const result = await next;
        assert.ok(performance.now() - start < 1_500, "the take-over was quick");
        assert.equal(result.done, false);
        assert.equal(result.value!.envelope.data, 1);
        await result.value!.ack();
      },
      { skip: severalOfOneSubject(harness) },
    ),
    contractCase(harness, "16: a broker that was never used closes without connecting", async (c) => {
      const broker = c.broker();
      assert.deepEqual(await broker.close(), { released: 0, unconfirmed: 0, terminated: false });
    }),
    contractCase(harness, "13: health is idle, then healthy, and names its topics", async (c) => {
      const broker = c.broker();
      assert.equal(broker.health().status, "idle");
      await broker.connect();
      assert.equal(broker.health().status, "healthy");
      assert.equal(broker.healthy, true);
      await c.fill(broker, 1);
      const [delivery] = await c.take(broker, 1);
      const report = broker.health();
      assert.deepEqual(report.topics.map(({ topic, group, unsettled }) => ({ topic, group, unsettled })), [
        { topic: c.topic, group: c.group, unsettled: 1 },
      ]);
      await delivery!.ack();
    }),
    contractCase(harness, "16: nothing an object of ours prints shows an address or a secret", async (c) => {
      const broker = c.broker();
      await broker.connect();
      const shown = String(broker) + JSON.stringify(broker) + JSON.stringify(broker.health()) +
        JSON.stringify(broker.capabilities);
      assert.ok(!shown.includes("://") && !shown.includes("@"));
    }),
  ];
}
