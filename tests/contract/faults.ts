import assert from "node:assert/strict";
import { isEdaError } from "../../core/errors.ts";
import { asTheyCame, type ContractCase, contractCase, eventually, type Harness, hold } from "./kit.ts";

/** Promises 13, 14 and 15: what happens when the line or the server fails. */
export function faultCases(harness: Harness): ContractCase[] {
  const skip = harness.faults === undefined ? "no faults can be made between this broker and its callers" : undefined;
  const faults = harness.faults!;
  return [
    contractCase(
      harness,
      "14: consumption resumes within 2 s after an outage; nothing is lost, order is kept",
      async (c) => {
        const events: string[] = [];
        const broker = c.faultyBroker({
          onDisconnect: () => void events.push("down"),
          onReconnect: () => void events.push("up"),
        });
        const publisher = c.broker();
        const seen: number[] = [];
        const stop = new AbortController();
        const reading = (async () => {
          for await (const delivery of broker.subscribe(c.topic, { signal: stop.signal })) {
            const n = delivery.envelope.data as number;
            if (!seen.includes(n)) seen.push(n);
            void delivery.ack();
          }
        })();
        await c.fill(publisher, 20);
        await eventually("the first are read", () => seen.length === 20);
        await faults.down();
        await eventually("health says so", () => !broker.healthy, 15_000);
        for (let n = 20; n < 40; n++) await publisher.publish(c.topic, { type: "n", subject: "s0", data: n });
        await faults.up();
        const start = performance.now();
        await eventually("the rest are read", () => seen.length === 40, 20_000);
        const tookMs = performance.now() - start;
        assert.ok(tookMs < 2_500, `resumed after ${Math.round(tookMs)} ms`);
        assert.deepEqual(asTheyCame(harness, seen), Array.from({ length: 40 }, (_, n) => n));
        await eventually("health is well again", () => broker.healthy);
        assert.deepEqual(events, ["down", "up"]);
        stop.abort();
        await reading;
      },
      { skip, timeoutMs: 60_000 },
    ),
    contractCase(harness, "14: five cuts in a row, an event after each: all are handled (RED-05)", async (c) => {
      const broker = c.faultyBroker();
      const publisher = c.broker();
      const seen: number[] = [];
      const stop = new AbortController();
      const reading = (async () => {
        for await (const delivery of broker.subscribe(c.topic, { signal: stop.signal })) {
          seen.push(delivery.envelope.data as number);
          await delivery.ack();
        }
      })();
      await c.fill(publisher, 1);
      await eventually("the first is read", () => seen.length === 1);
      for (let n = 1; n <= 5; n++) {
        await faults.cut();
        await publisher.publish(c.topic, { type: "n", subject: "s0", data: n });
        await eventually(`event ${n} is read`, () => seen.includes(n), 5_000);
      }
      assert.deepEqual([...new Set(seen)], [0, 1, 2, 3, 4, 5]);
      stop.abort();
      await reading;
    }, { skip, timeoutMs: 60_000 }),
    contractCase(
      harness,
      "15: a silent line is replaced; publish settles by its deadline and consumption goes on (RED-06)",
      async (c) => {
        const broker = c.faultyBroker({ publishTimeoutMs: 1_500, callTimeoutMs: 1_500, connectTimeoutMs: 1_500 });
        const publisher = c.broker();
        const seen: number[] = [];
        const stop = new AbortController();
        const reading = (async () => {
          for await (const delivery of broker.subscribe(c.topic, { signal: stop.signal })) {
            seen.push(delivery.envelope.data as number);
            void delivery.ack();
          }
        })();
        await broker.publish(c.topic, { type: "n", subject: "s0", data: 0 });
        await eventually("the first is read", () => seen.length === 1);
        await faults.blackHole();
        const start = performance.now();
        await assert.rejects(
          broker.publish(c.topic, { type: "n", subject: "other", data: -1 }),
          (error) => isEdaError(error) && (error.code === "outcome-unknown" || error.code === "broker-unavailable"),
        );
        assert.ok(performance.now() - start < 4_000, "the deadline held");
        await eventually("health says so", () => !broker.healthy, 10_000);
        await faults.up();
        await publisher.publish(c.topic, { type: "n", subject: "s0", data: 1 });
        await eventually("the next is read", () => seen.includes(1), 15_000);
        stop.abort();
        await reading;
      },
      { skip, timeoutMs: 60_000 },
    ),
    contractCase(
      harness,
      "1: publishing while the broker is away rejects at once, unsent, and works again after",
      async (c) => {
        const broker = c.faultyBroker({ publishTimeoutMs: 3_000, connectTimeoutMs: 2_000 });
        await broker.publish(c.topic, { type: "n", subject: "s", data: 0 });
        await faults.down();
        await eventually("a publish is refused as not sent", async () => {
          try {
            await broker.publish(c.topic, { type: "n", subject: "s", data: 99 });
            return false;
          } catch (error) {
            assert.ok(isEdaError(error) && error.retriable);
            return error.code === "broker-unavailable";
          }
        });
        await faults.up();
        await eventually("publishing works again", async () => {
          try {
            await broker.publish(c.topic, { type: "n", subject: "s", data: 1 });
            return true;
          } catch {
            return false;
          }
        });
        const seen = await c.drain(c.broker()) as number[];
        assert.deepEqual([...new Set(seen)].filter((n) => n !== 99), [0, 1]);
      },
      { skip, timeoutMs: 60_000 },
    ),
    contractCase(harness, "4: an ack that the outage caught is brought to the broker when it is back", async (c) => {
      const broker = c.faultyBroker();
      await c.fill(broker, 3, 3);
      const held = await c.take(broker, 3);
      await faults.down();
      for (const delivery of held) assert.equal(await delivery.ack(), "accepted");
      await hold(300);
      await faults.up();
      await eventually("no message is in flight", async () => await harness.inFlight!(c.topic, c.group) === 0, 15_000);
      assert.equal((await broker.close()).unconfirmed, 0);
    }, {
      skip: skip ??
        (harness.connectionBound === true
          ? "the server gives messages to others when the connection is lost"
          : harness.inFlight === undefined
          ? "the harness cannot see what is in flight"
          : undefined),
      timeoutMs: 60_000,
    }),
    contractCase(
      harness,
      "4: an ack that the outage caught is stale where messages go with the connection, and they come again",
      async (c) => {
        const broker = c.faultyBroker();
        await c.fill(broker, 3, 3);
        const held = await c.take(broker, 3);
        await faults.down();
        await eventually("they are lost", () => held.every((delivery) => delivery.signal.aborted), 15_000);
        for (const delivery of held) assert.equal(await delivery.ack(), "stale");
        await faults.up();
        assert.deepEqual(new Set(await c.drain(c.broker(), { idleMs: 6_000 })), new Set([0, 1, 2]));
        assert.equal((await broker.close()).unconfirmed, 0);
      },
      {
        skip: skip ?? (harness.connectionBound === true ? undefined : "leases outlast the connection"),
        timeoutMs: 60_000,
      },
    ),
    contractCase(harness, "13: connecting to nothing fails by its deadline and names what is wrong", async (c) => {
      const broker = c.faultyBroker({ connectTimeoutMs: 1_000 });
      await faults.down();
      await assert.rejects(broker.connect(), (error) => isEdaError(error) && error.code === "broker-unavailable");
      await assert.rejects(c.take(broker, 1), (error) => isEdaError(error) && error.code === "broker-unavailable");
      await faults.up();
      await eventually("it connects now", () => broker.connect().then(() => true, () => false));
    }, { skip, timeoutMs: 30_000 }),
  ];
}
