import assert from "node:assert/strict";
import { isEdaError } from "../../core/errors.ts";
import { type ContractCase, contractCase, eventually, type Harness, severalOfOneSubject } from "./kit.ts";

/** Promises 2, 4, 6 and 7. */
export function settleCases(harness: Harness): ContractCase[] {
  return [
    contractCase(harness, "2: what nobody acked comes again to the next consumer", async (c) => {
      const first = c.broker();
      await c.fill(first, 5);
      const taken = await c.take(first, 3);
      assert.deepEqual(taken.map((d) => d.envelope.data), [0, 1, 2]);
      const report = await first.close();
      assert.ok(report.released >= 3);
      assert.deepEqual(await c.drain(c.broker(), { idleMs: harness.takeOverMs ?? 1_000 }), [0, 1, 2, 3, 4]);
    }, { skip: severalOfOneSubject(harness) }),
    contractCase(harness, "4: ack settles for good and is answered at once", async (c) => {
      const broker = c.broker();
      await c.fill(broker, 3);
      for (const delivery of await c.take(broker, 3)) assert.equal(await delivery.ack(), "accepted");
      const report = await broker.close();
      assert.equal(report.unconfirmed, 0);
      assert.deepEqual(await c.drain(c.broker()), []);
    }, { skip: severalOfOneSubject(harness) }),
    contractCase(harness, "4: ack with confirm waits for the broker", async (c) => {
      const broker = c.broker();
      await c.fill(broker, 1);
      const [delivery] = await c.take(broker, 1);
      assert.equal(await delivery!.ack({ confirm: true }), "settled");
      if (harness.inFlight !== undefined) assert.equal(await harness.inFlight(c.topic, c.group), 0);
    }),
    contractCase(harness, "4: the second settle of any kind is already, and does nothing", async (c) => {
      const broker = c.broker();
      await c.fill(broker, 2);
      const [one, two] = await c.take(broker, 2);
      assert.equal(await one!.ack(), "accepted");
      assert.equal(await one!.ack(), "already");
      assert.equal(await one!.retry(), "already");
      assert.equal(await one!.drop("twice"), "already");
      assert.equal(await two!.drop("given up"), "accepted");
      assert.equal(await broker.nack(two!), "already");
      assert.equal(await broker.ack(two!), "already");
      assert.deepEqual(await c.drain(broker), []);
    }, { skip: severalOfOneSubject(harness) }),
    contractCase(harness, "6: drop settles for good", async (c) => {
      const broker = c.broker();
      await c.fill(broker, 2);
      const [one, two] = await c.take(broker, 2);
      assert.equal(await one!.drop("poison", { confirm: true }), "settled");
      assert.equal(await broker.nack(two!, { requeue: false, confirm: true }), "settled");
      await broker.close();
      assert.deepEqual(await c.drain(c.broker()), []);
    }, { skip: severalOfOneSubject(harness) }),
    contractCase(
      harness,
      "4: a settle after the broker was closed is stale, and the message comes again",
      async (c) => {
        const broker = c.broker();
        await c.fill(broker, 1);
        const [delivery] = await c.take(broker, 1);
        assert.equal(delivery!.signal.aborted, false);
        await broker.close();
        assert.equal(delivery!.signal.aborted, true);
        assert.equal(await delivery!.ack(), "stale");
        assert.deepEqual(await c.drain(c.broker(), { idleMs: harness.takeOverMs ?? 1_000 }), [0]);
      },
    ),
    contractCase(harness, "7: attempt counts local retries, and a count on the wire is not trusted", async (c) => {
      const broker = c.broker();
      await broker.publish(c.topic, { type: "a", subject: "s", extensions: { xsmattempt: 1_000_000 }, data: 1 });
      const attempts: number[] = [];
      for await (const delivery of broker.subscribe(c.topic)) {
        attempts.push(delivery.attempt);
        assert.equal(delivery.envelope.extensions["xsmattempt"], undefined);
        if (attempts.length === 3) {
          await delivery.ack();
          break;
        }
        assert.equal(await delivery.retry(), "accepted");
      }
      assert.deepEqual(attempts, [0, 1, 2]);
    }),
    contractCase(
      harness,
      "7: attempt is above 0 after a consumer ended without settling, where the broker counts",
      async (c) => {
        const first = c.broker();
        await c.fill(first, 1);
        await c.take(first, 1);
        await first.close();
        const second = c.broker();
        const [delivery] = await c.take(second, 1);
        if (second.capabilities.deliveryCount === "exact" && !second.capabilities.uncountedRelease) {
          assert.ok(delivery!.attempt >= 1);
        }
        await delivery!.ack();
      },
    ),
    contractCase(harness, "4: thousands of acks in any order leave nothing unsettled", async (c) => {
      const broker = c.broker({ prefetch: 100 });
      await c.fill(broker, 1_000, 10);
      let held: import("../../core/contract.ts").Delivery[] = [];
      let seen = 0;
      for await (const delivery of broker.subscribe(c.topic)) {
        held.push(delivery);
        seen++;
        if (held.length === 50 || seen === 1_000) {
          for (const one of held.reverse()) void one.ack();
          held = [];
        }
        if (seen === 1_000) break;
      }
      if (harness.inFlight !== undefined) {
        await eventually("no message is in flight", async () => await harness.inFlight!(c.topic, c.group) === 0);
      }
      assert.equal((await broker.close()).unconfirmed, 0);
      assert.deepEqual(await c.drain(c.broker()), []);
    }, { skip: severalOfOneSubject(harness) }),
    contractCase(harness, "5: a retry delay above 60 s is refused by name and the delivery stays open", async (c) => {
      const broker = c.broker();
      await c.fill(broker, 1);
      const [delivery] = await c.take(broker, 1);
      await assert.rejects(
        delivery!.retry({ delayMs: 60_001 }),
        (error) => isEdaError(error) && error.code === "invalid-option" && error.message.includes("delayMs"),
      );
      assert.equal(await delivery!.ack(), "accepted");
    }),
  ];
}
