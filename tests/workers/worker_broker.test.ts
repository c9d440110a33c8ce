import assert from "node:assert/strict";
import type { EdaError } from "../../core/errors.ts";
import { fresh, test, until } from "../support/test.ts";
import { fixture } from "./fixtures/fixture_broker.ts";

test("WorkerLink: publishes and consumes through a worker, and closes cooperatively", async (context) => {
  const broker = fixture(context);
  const topic = fresh("t");
  await broker.publishAll(
    topic,
    Array.from({ length: 1_000 }, (_, n) => ({ type: "n", subject: `s${n % 7}`, data: n })),
  );
  const seen: unknown[] = [];
  for await (const delivery of broker.subscribe(topic, { idleMs: 0 })) {
    seen.push(delivery.envelope.data);
    await delivery.ack();
  }
  assert.deepEqual(seen, Array.from({ length: 1_000 }, (_, n) => n));
  assert.deepEqual(await broker.close(), { released: 0, unconfirmed: 0, terminated: false });
});

for (const how of ["do-throw", "do-throw-in-timer", "do-reject", "do-close"]) {
  test(`WorkerLink: a worker that dies (${how}) rejects what was in flight, is replaced, and consumption goes on (WRK-04, WRK-08)`, async (context) => {
    const events: string[] = [];
    const broker = fixture(context, {
      onDisconnect: (error) => void events.push(error.code),
      onReconnect: () => void events.push("up"),
      session: { beatMs: 200 },
    });
    const topic = fresh("t");
    const stream = broker.subscribe(topic)[Symbol.asyncIterator]();
    await broker.publish(topic, { type: "n", data: 1 });
    const first = (await stream.next()).value!;
    assert.equal(first.envelope.data, 1);
    await assert.rejects(broker.publish(how, { type: "n" }), (error: EdaError) => {
      assert.equal(error.code, "outcome-unknown");
      assert.equal((error.cause as EdaError).code, "worker-crashed");
      return true;
    });
    assert.equal(first.signal.aborted, true);
    assert.equal(await first.ack(), "stale");
    await until(() => broker.publish(topic, { type: "n", data: 2 }).then(() => true, () => false), {
      timeoutMs: 10_000,
    });
    assert.equal((await stream.next()).value!.envelope.data, 2);
    await until(() => broker.healthy, { timeoutMs: 5_000 });
    assert.deepEqual(events, ["worker-crashed", "up"]);
    assert.equal(broker.health().counters["worker-restarts"], 1);
    await broker.close();
  });
}

test("WorkerLink: a worker that is only busy is not taken for dead (WRK-08)", async (context) => {
  const broker = fixture(context, { session: { beatMs: 500 } });
  await broker.publish("do-spin-1s", { type: "n" });
  assert.equal(broker.health().counters["worker-restarts"], undefined);
  await broker.close();
});

test("WorkerLink: a transport that cannot be built fails the first call with its reason", async (context) => {
  const broker = fixture(context, { failStart: "no such thing" });
  await assert.rejects(broker.connect(), (error: EdaError) => {
    assert.equal(error.code, "invalid-option");
    assert.match(String((error.cause as Error).message), /no such thing/);
    return true;
  });
  await broker.close();
});

test("WorkerLink: a worker file that is not there is an error that says what to try", async (context) => {
  const broker = fixture(context, { worker: new URL("./fixtures/nowhere.js", import.meta.url) });
  await assert.rejects(broker.connect(), (error: EdaError) => {
    assert.equal(error.code, "worker-start-failed");
    assert.match(error.message, /inline/);
    return true;
  });
  await broker.close();
});
