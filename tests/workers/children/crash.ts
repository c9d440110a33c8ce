// One broker's worker dies in the way that the argument says; another broker beside it must not notice.
import assert from "node:assert/strict";
import process from "node:process";
import type { EdaError } from "../../../core/errors.ts";
import { until } from "../../support/wait.ts";
import { FixtureBroker } from "../fixtures/fixture_broker.ts";

const how = process.argv[2]!;
const atLoad = how === "at-load";
const throwing = new URL("../fixtures/throwing_worker.js", import.meta.url);
const lost: string[] = [];
const broker = new FixtureBroker({
  session: { beatMs: 200 },
  onDisconnect: (error) => void lost.push(error.code),
  ...(atLoad ? { worker: throwing } : {}),
});
const other = new FixtureBroker({ onDisconnect: (error) => void lost.push(`other ${error.code}`) });
await other.publish("t", { type: "n", data: 1 });
const stream = other.subscribe("t")[Symbol.asyncIterator]();
const held = (await stream.next()).value!;

if (atLoad) {
  await assert.rejects(broker.connect(), (error: EdaError) => error.code === "worker-start-failed");
  await assert.rejects(broker.publish("t", { type: "n" }), (error: EdaError) => error.code === "worker-start-failed");
} else {
  await broker.publish("t", { type: "n", data: 1 });
  const mine = (await broker.subscribe("t")[Symbol.asyncIterator]().next()).value!;
  const failure = await broker.publish(how, { type: "n" }).then(() => undefined, (error: EdaError) => error);
  assert.equal(failure?.code, "outcome-unknown");
  assert.equal((failure?.cause as EdaError).code, "worker-crashed");
  assert.equal(await mine.ack(), "stale");
  await until(() => broker.publish("t", { type: "n" }).then(() => true, () => false));
  assert.equal(broker.health().counters["worker-restarts"], 1);
  assert.deepEqual(lost, ["worker-crashed"]);
}

assert.equal(held.signal.aborted, false);
assert.equal(await held.ack({ confirm: true }), "settled");
await other.publish("t", { type: "n", data: 2 });
assert.equal((await stream.next()).value!.envelope.data, 2);
assert.equal(other.health().counters["worker-restarts"], undefined);
await Promise.all([broker.close(), other.close()]);
console.log("done");
