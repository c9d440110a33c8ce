import assert from "node:assert/strict";
import { isEdaError } from "../../core/errors.ts";
import { asTheyCame, type ContractCase, contractCase, eventually, type Harness } from "./kit.ts";

/** Promises 9, 11 and 12. */
export function flowCases(harness: Harness): ContractCase[] {
  return [
    contractCase(harness, "9: what the broker sees in flight never exceeds prefetch, held ones included", async (c) => {
      const broker = c.broker({ prefetch: 8 });
      await c.fill(broker, 40, 40);
      const held = await c.take(broker, 8);
      await held[0]!.retry({ delayMs: 60_000 });
      await held[1]!.retry({ delayMs: 60_000 });
      assert.equal(broker.health().topics[0]?.unsettled, 8);
      assert.equal(await harness.inFlight!(c.topic, c.group), 8);
      for (const delivery of held.slice(2)) await delivery.ack({ confirm: true });
      const more = await c.take(broker, 6);
      assert.equal(more.length, 6);
      assert.equal(await harness.inFlight!(c.topic, c.group), 8);
    }, { skip: harness.inFlight === undefined ? "the harness cannot see what is in flight" : undefined }),
    contractCase(harness, "9: prefetch 1 hands out one at a time", async (c) => {
      const broker = c.broker({ prefetch: 1 });
      await c.fill(broker, 5);
      const seen = asTheyCame(harness, await c.drain(broker) as number[]);
      assert.deepEqual(seen, [0, 1, 2, 3, 4]);
    }),
    contractCase(harness, "11: idleMs 0 drains everything that is ready, over many fetches", async (c) => {
      const broker = c.broker({ prefetch: 16 });
      await c.fill(broker, 200, 5);
      assert.equal((await c.drain(broker)).length, 200);
      assert.deepEqual(await c.drain(broker), []);
    }),
    contractCase(harness, "11: idleMs counts only while the consumer waits", async (c) => {
      const broker = c.broker({ prefetch: 1 });
      await c.fill(broker, 3);
      const seen: unknown[] = [];
      for await (const delivery of broker.subscribe(c.topic, { idleMs: 200 })) {
        await new Promise((resolve) => setTimeout(resolve, 300));
        seen.push(delivery.envelope.data);
        await delivery.ack();
      }
      assert.deepEqual(seen, [0, 1, 2]);
    }),
    contractCase(harness, "11: idleMs starts anew when something arrives", async (c) => {
      const broker = c.broker();
      const seen: unknown[] = [];
      const reading = (async () => {
        for await (const delivery of broker.subscribe(c.topic, { idleMs: 700 })) {
          seen.push(delivery.envelope.data);
          await delivery.ack();
          if (seen.length < 3) {
            setTimeout(() => void broker.publish(c.topic, { type: "n", data: seen.length }), 400);
          }
        }
      })();
      await broker.publish(c.topic, { type: "n", data: 0 });
      await reading;
      assert.deepEqual(seen, [0, 1, 2]);
    }),
    contractCase(
      harness,
      "12: breaking out loses nothing: handed out stays settleable, the rest goes to the next subscriber",
      async (c) => {
        const broker = c.broker();
        await c.fill(broker, 10, 10);
        const [one] = await c.take(broker, 1);
        const rest = await c.take(broker, 9);
        assert.deepEqual(rest.map((d) => d.envelope.data), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert.equal(await one!.ack({ confirm: true }), "settled");
        for (const delivery of rest) assert.equal(await delivery.ack({ confirm: true }), "settled");
      },
    ),
    contractCase(harness, "12: an aborted signal ends a waiting subscription at once", async (c) => {
      const broker = c.broker();
      const stop = new AbortController();
      const stream = broker.subscribe(c.topic, { signal: stop.signal })[Symbol.asyncIterator]();
      const waiting = stream.next();
      await eventually("it reads", () => broker.health().topics[0]?.state === "active");
      stop.abort();
      assert.deepEqual(await waiting, { done: true, value: undefined });
      assert.deepEqual(await stream.next(), { done: true, value: undefined });
    }),
    contractCase(harness, "12: two subscribers of one topic share it: each message goes to one of them", async (c) => {
      const broker = c.broker();
      await c.fill(broker, 100, 100);
      const seen: number[] = [];
      const stop = new AbortController();
      const read = async (): Promise<number> => {
        let count = 0;
        for await (const delivery of broker.subscribe(c.topic, { signal: stop.signal })) {
          seen.push(delivery.envelope.data as number);
          count++;
          await delivery.ack({ confirm: true });
          if (seen.length === 100) stop.abort();
        }
        return count;
      };
      const counts = await Promise.all([read(), read()]);
      assert.equal(counts[0]! + counts[1]!, 100);
      assert.equal(new Set(seen).size, 100);
      assert.ok(counts[0]! > 0 && counts[1]! > 0);
    }),
    contractCase(
      harness,
      "12: subscribe, break, subscribe twenty times delivers each event once (COR-11)",
      async (c) => {
        const broker = c.broker();
        for (let round = 0; round < 20; round++) {
          await broker.publish(c.topic, { type: "n", subject: "s", data: round });
          const [delivery] = await c.take(broker, 1);
          assert.equal(delivery!.envelope.data, round);
          assert.equal(delivery!.attempt, 0);
          await delivery!.ack();
        }
        assert.deepEqual(await c.drain(broker), []);
      },
    ),
    contractCase(harness, "12: bad subscribe options are refused by name", (c) => {
      const broker = c.broker();
      for (
        const [options, name] of [[{ prefetch: 0 }, "prefetch"], [{ idleMs: -1 }, "idleMs"], [
          { group: "" },
          "group",
        ]] as const
      ) {
        assert.throws(
          () => broker.subscribe(c.topic, options),
          (error) => isEdaError(error) && error.code === "invalid-option" && error.message.includes(name),
        );
      }
      return Promise.resolve();
    }),
  ];
}
