import assert from "node:assert/strict";
import type { EdaError } from "../../core/errors.ts";
import { fresh, test, until, within } from "../support/test.ts";
import { fixture } from "./fixtures/fixture_broker.ts";

const ISOLATIONS = ["worker", "inline"] as const;

/** Settles each; answers `ok` or the error's code. Fails when one stays pending. */
async function outcomes(calls: readonly Promise<unknown>[], ms = 3_000): Promise<string[]> {
  const settled = await within(ms, "every call to settle", Promise.allSettled(calls));
  return settled.map((one) => one.status === "fulfilled" ? "ok" : String((one.reason as EdaError).code));
}

for (const isolation of ISOLATIONS) {
  test(`${isolation}: every call after close is refused with the same error, none throws or hangs (WRK-03)`, async (context) => {
    const broker = fixture(context, { isolation });
    const topic = fresh("t");
    await broker.publish(topic, { type: "n", data: 1 });
    const stream = broker.subscribe(topic)[Symbol.asyncIterator]();
    const delivery = (await stream.next()).value!;
    await broker.close();
    const calls: Promise<unknown>[] = [];
    for (let n = 0; n < 3; n++) calls.push(broker.publish(topic, { type: "n" }));
    calls.push(broker.publishAll(topic, [{ type: "n" }]), broker.connect());
    assert.deepEqual(await outcomes(calls), ["closed", "closed", "closed", "closed", "closed"]);
    assert.equal(await delivery.ack(), "stale");
    assert.equal(await delivery.retry(), "stale");
    assert.deepEqual(await stream.next(), { done: true, value: undefined });
  });

  test(`${isolation}: closing while it still starts settles every call that waits, and leaves nothing running`, async (context) => {
    const broker = fixture(context, { isolation, slowStartMs: 300 });
    const topic = fresh("t");
    const next = broker.subscribe(topic)[Symbol.asyncIterator]().next();
    const settling = outcomes([
      broker.publish(topic, { type: "n" }),
      broker.publishAll(topic, [{ type: "n" }, { type: "n" }]),
      broker.connect(),
    ]);
    const start = performance.now();
    const report = await within(3_000, "close", broker.close());
    assert.ok(performance.now() - start < 2_500, "close did not wait for the start");
    assert.deepEqual(report, { released: 0, unconfirmed: 0, terminated: false });
    assert.deepEqual(await settling, ["closed", "closed", "closed"]);
    assert.deepEqual(await within(1_000, "the subscription", next), { done: true, value: undefined });
    assert.deepEqual(await outcomes([broker.publish(topic, { type: "n" })]), ["closed"]);
  });

  test(`${isolation}: an aborted signal ends a subscription at once, also while it still starts`, async (context) => {
    const broker = fixture(context, { isolation, slowStartMs: 700 });
    const connecting = outcomes([broker.connect()]);
    const stop = new AbortController();
    const stream = broker.subscribe(fresh("t"), { signal: stop.signal })[Symbol.asyncIterator]();
    const waiting = [stream.next(), stream.next()];
    const start = performance.now();
    stop.abort();
    const done = { done: true, value: undefined };
    assert.deepEqual(await Promise.all(waiting), [done, done]);
    assert.ok(performance.now() - start < 500, "it did not wait for the start");
    assert.deepEqual(await connecting, ["ok"]);
    await broker.close();
  });

  test(`${isolation}: 1,000 interleaved publishes and settles are all answered, each its own (WRK-09)`, async (context) => {
    const broker = fixture(context, { isolation, prefetch: 50 });
    const topic = fresh("t");
    const total = 1_000;
    const settled: Promise<string>[] = [];
    const seen: number[] = [];
    const reading = (async () => {
      for await (const delivery of broker.subscribe(topic)) {
        seen.push(delivery.envelope.data as number);
        settled.push(delivery.ack({ confirm: true }));
        if (seen.length === total) break;
      }
    })();
    const published: Promise<unknown>[] = [];
    for (let n = 0; n < total; n++) {
      published.push(broker.publish(topic, { type: "n", subject: `s${n % 9}`, data: n }).then(({ data }) => data));
      if (n % 3 === 0) await Promise.resolve();
      if (n % 100 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    }
    const numbers = Array.from({ length: total }, (_, n) => n);
    assert.deepEqual(await within(15_000, "all publishes", Promise.all(published)), numbers);
    await within(15_000, "all deliveries", reading);
    assert.deepEqual(seen, numbers);
    const answers = await within(15_000, "all settles", Promise.all(settled));
    assert.equal(answers.filter((answer) => answer === "settled").length, total);
    assert.equal((await broker.close()).unconfirmed, 0);
  });
}

for (const isolation of ISOLATIONS) {
  for (const [topic, code] of [["cannot-read", "partition-mismatch"], ["may-not-read", "authentication-failed"]]) {
    test(`${isolation}: a topic that can never be read (${code}) ends its reader with the reason, and nothing else`, async (context) => {
      const broker = fixture(context, { isolation, session: { beatMs: 200 } });
      const other = fresh("t");
      await broker.publish(other, { type: "n", data: 1 });
      const stream = broker.subscribe(other)[Symbol.asyncIterator]();
      const held = (await stream.next()).value!;
      const reading = broker.subscribe(topic!)[Symbol.asyncIterator]().next();
      assert.deepEqual(await outcomes([reading]), [code]);
      await broker.publish(other, { type: "n", data: 2 });
      assert.equal(held.signal.aborted, false);
      assert.equal(await held.ack({ confirm: true }), "settled");
      assert.equal((await stream.next()).value!.envelope.data, 2);
      assert.equal(broker.health().counters["worker-restarts"], undefined);
    });
  }
}

test("worker: calls while a dead worker is replaced are refused as not sent, or wait for the new one (WRK-03)", async (context) => {
  const broker = fixture(context, { session: { beatMs: 200 } });
  const topic = fresh("t");
  await broker.publish(topic, { type: "n" });
  const died = broker.publish("do-close", { type: "n" }).catch((error: EdaError) => error.code);
  assert.equal(await within(5_000, "the death to be noticed", died), "outcome-unknown");
  const publishes = Array.from({ length: 3 }, () => broker.publish(topic, { type: "n" }));
  assert.deepEqual(await outcomes(publishes), ["broker-unavailable", "broker-unavailable", "broker-unavailable"]);
  assert.deepEqual(await outcomes([broker.connect()], 5_000), ["ok"]);
  assert.deepEqual(await outcomes([broker.publish(topic, { type: "n" })]), ["ok"]);
  await broker.close();
});

test("worker: closing while a dead worker is replaced settles at once what waits for the new one", async (context) => {
  const broker = fixture(context, { session: { beatMs: 100 } });
  await broker.connect();
  await broker.publish("do-close", { type: "n" }).catch(() => {});
  const connecting = outcomes([broker.connect()]);
  await within(1_500, "close", broker.close());
  assert.deepEqual(await connecting, ["closed"]);
});

test("worker: one that ended by itself does not hold up closing, nor closing twice (WRK-07)", async (context) => {
  const broker = fixture(context);
  await broker.connect();
  const lost = broker.publish("do-close", { type: "n" }).catch((error: EdaError) => error.code);
  await new Promise((resolve) => setTimeout(resolve, 100));
  const start = performance.now();
  const reports = await Promise.all([broker.close({ drainMs: 2_000 }), broker.close()]);
  assert.ok(performance.now() - start < 3_000, `it took ${Math.round(performance.now() - start)} ms`);
  assert.deepEqual(reports[0], reports[1]);
  assert.deepEqual(await broker.close(), reports[0]);
  assert.equal(await lost, "outcome-unknown");
});

test("worker: a silent death is noticed within three beats (WRK-08)", async (context) => {
  const broker = fixture(context, { session: { beatMs: 400 } });
  await broker.connect();
  const start = performance.now();
  await broker.publish("do-close", { type: "n" }).catch(() => {});
  const tookMs = performance.now() - start;
  assert.ok(tookMs < 3 * 400 + 200, `noticed after ${Math.round(tookMs)} ms`);
  await until(() => broker.healthy === false);
  await broker.close();
});
