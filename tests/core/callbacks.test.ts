/** What a caller gives us to call may throw, reject or be hostile: it is logged by name, and nothing else happens. */
import assert from "node:assert/strict";
import type { UndecodableRecord } from "../../core/contract.ts";
import { BrokerUnavailableError, isEdaError } from "../../core/errors.ts";
import type { Logger } from "../../core/logger.ts";
import { FakeTransportBroker, raw } from "./fake_transport.ts";
import { Rig } from "./dispatch_rig.ts";
import { test } from "../support/test.ts";
import { VirtualClock } from "../support/virtual_clock.ts";

/** A callback that is an async function and rejects. */
const rejects = (): Promise<never> => Promise.reject(new RangeError("secret"));

test("callbacks of a broker that reject are logged by their error's name", async () => {
  const clock = new VirtualClock();
  const said: string[] = [];
  const log = (message: string, fields: unknown) => void said.push(`${message} ${JSON.stringify(fields)}`);
  const logger: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: log as Logger["error"] };
  const broker = new FakeTransportBroker(clock, {
    logger,
    onDisconnect: rejects,
    onReconnect: rejects,
    onSettleError: rejects,
    onUndecodable: rejects,
  });
  const { transport } = broker;
  transport.feed(raw("a"), { body: "no envelope", native: "x", partition: 0, deliveries: 0 });
  const { value } = await broker.subscribe("t").next();
  transport.onSettle = (_, natives) => Promise.resolve(natives.map(() => "stale"));
  await value!.ack();
  await clock.flush();
  const { onSend } = transport;
  transport.onSend = () => Promise.reject(new BrokerUnavailableError("gone"));
  await assert.rejects(broker.publish("t", { type: "n" }));
  transport.onSend = onSend;
  await broker.publish("t", { type: "n" });
  await clock.flush();
  const of = (name: string) => `${name} threw {"error":"RangeError"}`;
  assert.deepEqual(said.sort(), ["onDisconnect", "onReconnect", "onSettleError", "onUndecodable"].map(of));
  await broker.close();
});

test("an onOutcome that rejects is logged by its error's name", async () => {
  const rig = new Rig({ routes: { n: () => {} }, onOutcome: rejects as () => void });
  rig.deliver("n", "s");
  await rig.settle(1);
  assert.deepEqual(rig.logs.filter(({ level }) => level === "error"), [
    { level: "error", message: "onOutcome threw", fields: { error: "RangeError" } },
  ]);
});

/** An error that throws whatever is read of it. */
function hostile(): Error {
  const error = new Error("hostile");
  for (const name of ["name", "message", "code", "retriable", "cause", "stack"]) {
    Object.defineProperty(error, name, {
      get: () => {
        throw new Error(`read ${name}`);
      },
    });
  }
  return error;
}

/** One that is not even to be looked at. */
function untouchable(): unknown {
  const refuse = (): never => {
    throw new Error("touched");
  };
  return new Proxy({}, { get: refuse, has: refuse, getPrototypeOf: refuse, ownKeys: refuse });
}

test("isEdaError answers for anything, and never throws", () => {
  assert.equal(isEdaError(hostile()), false);
  assert.equal(isEdaError(untouchable()), false);
});

for (const [what, make] of [["whose getters throw", hostile], ["that cannot be touched", untouchable]] as const) {
  test(`a handler that throws an error ${what} has failed like any other`, async () => {
    const rig = new Rig({
      maxAttempts: 2,
      routes: {
        now: () => {
          throw make();
        },
        later: () => Promise.reject(make()),
        good: () => {},
      },
    });
    for (const type of ["now", "later", "good"]) rig.deliver(type, type);
    await rig.settle(3);
    assert.deepEqual(rig.ended.map(({ envelope, outcome }) => `${envelope.type} ${outcome}`).sort(), [
      "good processed",
      "later dead_lettered:max_attempts",
      "now dead_lettered:max_attempts",
    ]);
  });
}

for (const keepCorruptBodies of [false, true]) {
  test(`the record of what a schema refused ${keepCorruptBodies ? "has" : "has not"} the body where keepCorruptBodies is ${keepCorruptBodies}`, async () => {
    const clock = new VirtualClock();
    const records: UndecodableRecord[] = [];
    const refuse = () => ({ issues: [{ message: "no" }] });
    const broker = new FakeTransportBroker(clock, {
      topics: { t: { n: { "~standard": { version: 1, vendor: "test", validate: refuse } } } },
      keepCorruptBodies,
      deadLetters: { recordUndecodable: (record) => void records.push(record) },
    });
    broker.transport.feed(raw("secret"));
    void broker.subscribe("t").next();
    await clock.flush();
    assert.equal(records.length, 1);
    assert.equal(records[0]!.body !== undefined, keepCorruptBodies);
    await broker.close();
  });
}
