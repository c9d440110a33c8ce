import assert from "node:assert/strict";
import { isEdaError, PublishBatchError } from "../../core/errors.ts";
import { asTheyCame, type ContractCase, contractCase, type Harness } from "./kit.ts";

/** Promises 1, 3 and the outbound half of 8. */
export function publishCases(harness: Harness): ContractCase[] {
  return [
    contractCase(harness, "1: publish resolves to the envelope sent, and the broker has it", async (c) => {
      const broker = c.broker();
      const sent = await broker.publish(c.topic, { type: "a", subject: "s", data: { n: 1 } });
      assert.equal(sent.source, "/contract");
      assert.equal(sent.type, "a");
      assert.match(sent.id, /^[0-9a-f-]{36}$/);
      const [delivery] = await c.take(c.broker(), 1);
      assert.equal(delivery!.envelope.id, sent.id);
      assert.deepEqual(delivery!.envelope.data, { n: 1 });
      assert.equal(delivery!.envelope.time, sent.time);
    }),
    contractCase(harness, "3: pipelined publishes of one subject arrive in the order they were called", async (c) => {
      const broker = c.broker();
      await Promise.all(
        Array.from({ length: 500 }, (_, n) => broker.publish(c.topic, { type: "n", subject: `s${n % 3}`, data: n })),
      );
      const seen = asTheyCame(harness, await c.drain(broker) as number[]);
      assert.equal(seen.length, 500);
      for (const rest of [0, 1, 2]) {
        const lane = seen.filter((n) => n % 3 === rest);
        assert.deepEqual(lane, [...lane].sort((a, b) => a - b));
      }
    }),
    contractCase(harness, "3: publishAll keeps order over many more messages than one frame", async (c) => {
      const broker = c.broker();
      await c.fill(broker, 1_500, 7);
      const seen = asTheyCame(harness, await c.drain(broker) as number[]);
      assert.equal(seen.length, 1_500);
      for (let s = 0; s < 7; s++) {
        const lane = seen.filter((n) => n % 7 === s);
        assert.deepEqual(lane, [...lane].sort((a, b) => a - b));
      }
    }, { timeoutMs: 90_000 }),
    contractCase(harness, "3: publishAll refuses an invalid message before anything is sent", async (c) => {
      const broker = c.broker();
      const messages = [{ type: "a", data: 1 }, { type: "", data: 2 }, { type: "c", data: 3 }];
      await assert.rejects(
        broker.publishAll(c.topic, messages),
        (error) => isEdaError(error) && error.code === "envelope-invalid",
      );
      assert.deepEqual(await c.drain(broker), []);
    }),
    contractCase(
      harness,
      "8: an envelope above maxBytes is refused before it is sent, at exactly maxBytes it passes",
      async (c) => {
        const broker = c.broker({ maxBytes: 2_000 });
        const probe = await broker.publish(c.topic, { type: "a", data: "" });
        const empty = JSON.stringify(probe).length;
        await assert.rejects(
          broker.publish(c.topic, { type: "a", data: "x".repeat(2_000 - empty + 1) }),
          (error) => isEdaError(error) && error.code === "envelope-too-large",
        );
        await broker.publish(c.topic, { type: "a", data: "x".repeat(2_000 - empty) });
        assert.equal((await c.drain(broker)).length, 2);
        assert.equal(broker.health().status, "healthy");
      },
    ),
    contractCase(harness, "1: a bad message or topic is the caller's error and changes no health", async (c) => {
      const broker = c.broker();
      await broker.connect();
      for (
        const [topic, message] of [["", { type: "a" }], ["a\nb", { type: "a" }], [c.topic, { type: 7 }], [
          c.topic,
          null,
        ]]
      ) {
        await assert.rejects(
          // deno-lint-ignore no-explicit-any
          broker.publish(topic as string, message as any),
          (error) => isEdaError(error) && (error.code === "invalid-option" || error.code === "envelope-invalid"),
        );
      }
      assert.equal(broker.healthy, true);
    }),
    contractCase(harness, "3: publishAll tells the outcome of each message", async (c) => {
      const broker = c.broker();
      const sent = await broker.publishAll(c.topic, [{ type: "a", data: 1 }, { type: "a", data: 2 }]);
      assert.equal(sent.length, 2);
      assert.deepEqual(await broker.publishAll(c.topic, []), []);
      await broker.close();
      await assert.rejects(
        broker.publishAll(c.topic, [{ type: "a" }]),
        (error) => isEdaError(error) && (error.code === "closed" || error instanceof PublishBatchError),
      );
    }),
  ];
}
