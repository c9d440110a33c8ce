import assert from "node:assert/strict";
import type { WorkerLike } from "../../workers/port.ts";
import { fresh, runtime, test, type TestContext, within } from "../support/test.ts";
import { fixture, type FixtureBrokerOptions } from "./fixtures/fixture_broker.ts";

const entry = new URL("./fixtures/fixture_worker.js", import.meta.url);

const WebWorker = (globalThis as { Worker?: new (url: string, options: { type: "module" }) => WorkerLike }).Worker;
const threads = (globalThis as unknown as {
  process: { getBuiltinModule(name: string): { Worker: new (url: URL) => WorkerLike } };
}).process.getBuiltinModule("node:worker_threads");

const web = WebWorker === undefined ? undefined : () => new WebWorker(entry.href, { type: "module" });
const node = () => new threads.Worker(entry);

/** Publishes and consumes through the worker, replaces it after a crash, and closes it. */
async function echo(context: TestContext, worker: FixtureBrokerOptions["worker"]): Promise<void> {
  const broker = fixture(context, { session: { beatMs: 200 }, ...(worker === undefined ? {} : { worker }) });
  const topic = fresh("t");
  const round = async (): Promise<unknown[]> => {
    const messages = Array.from({ length: 200 }, (_, n) => ({ type: "n", subject: "s", data: n }));
    await broker.publishAll(topic, messages);
    const seen: unknown[] = [];
    for await (const delivery of broker.subscribe(topic, { idleMs: 0 })) {
      seen.push(delivery.envelope.data);
      await delivery.ack();
    }
    return seen;
  };
  const numbers = Array.from({ length: 200 }, (_, n) => n);
  assert.deepEqual(await round(), numbers);
  await broker.publish("do-throw", { type: "n" }).catch(() => {});
  await within(10_000, "the replacement", broker.connect());
  assert.deepEqual(await round(), numbers);
  assert.deepEqual(await broker.close(), { released: 0, unconfirmed: 0, terminated: false });
}

const ways: readonly (readonly [string, FixtureBrokerOptions["worker"], boolean])[] = [
  ["the adapter's own file", undefined, true],
  ["worker: a URL", entry, true],
  ["worker: a factory of the global Worker", web, web !== undefined],
  ["worker: a factory of node:worker_threads", node, true],
];

for (const [name, worker, there] of ways) {
  const skip = there ? undefined : `${runtime} has no global Worker`;
  test(
    `${runtime}: publish, consume, crash, replace and close through ${name} (WRK-13)`,
    { skip },
    (context) => echo(context, worker),
  );
}
