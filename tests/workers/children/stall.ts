// The host is silent for longer than maxStallMs: because it computes, or because the whole process was stopped.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import process from "node:process";
import { until } from "../../support/wait.ts";
import { FixtureBroker } from "../fixtures/fixture_broker.ts";

const how = process.argv[2];
const settleErrors: string[] = [];
const broker = new FixtureBroker({
  session: { beatMs: 100, maxStallMs: 600 },
  onSettleError: ({ why }) => void settleErrors.push(why),
});
const stream = broker.subscribe("t")[Symbol.asyncIterator]();
await broker.publish("t", { type: "n", subject: "s", data: 1 });
const first = (await stream.next()).value!;

if (how === "block") {
  const end = performance.now() + 1_500;
  while (performance.now() < end);
  await until(() => first.signal.aborted);
  assert.equal(await first.ack(), "stale");
} else {
  // Somebody else has to wake us up again.
  const waker = spawn("/bin/sh", ["-c", `sleep 1.5; kill -CONT ${process.pid}`], { stdio: "ignore" });
  await new Promise((resolve) => waker.once("spawn", resolve));
  process.kill(process.pid, "SIGSTOP");
  await new Promise((resolve) => setTimeout(resolve, 400));
  assert.equal(first.signal.aborted, false);
  assert.equal(await first.ack({ confirm: true }), "settled");
  await broker.publish("t", { type: "n", subject: "s", data: 1 });
}

const again = (await stream.next()).value!;
assert.equal(again.envelope.data, 1);
assert.equal(await again.ack({ confirm: true }), "settled");
await broker.publish("t", { type: "n", subject: "s", data: 2 });
const next = (await stream.next()).value!;
assert.equal(next.envelope.data, 2);
assert.equal(await next.ack({ confirm: true }), "settled");
assert.equal(broker.health().topics[0]?.state, "active");
assert.deepEqual(settleErrors, []);
await broker.close();
console.log("done");
