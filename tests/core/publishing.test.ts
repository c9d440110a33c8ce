/** Publishing: every call settles, with an error that says whether the broker may have it, and rejections are somebody's. */
import assert from "node:assert/strict";
import { BrokerUnavailableError, isEdaError, type PublishBatchError } from "../../core/errors.ts";
import type { Schema } from "../../core/topics.ts";
import type { SendOutcome } from "../../core/transport.ts";
import { gate } from "./dispatch_rig.ts";
import { FakeSession, FakeTransportBroker, text } from "./fake_transport.ts";
import { test, within } from "../support/test.ts";
import { VirtualClock } from "../support/virtual_clock.ts";

/** A schema whose answer is the test's. */
function schema(validate: (value: unknown) => unknown): Schema {
  return { "~standard": { version: 1, vendor: "test", validate: validate as never } };
}

/** The code that a call rejects with. */
async function codeOf(call: Promise<unknown>): Promise<string> {
  const error = await within(1_000, "the call to settle", call.then(() => undefined, (thrown: unknown) => thrown));
  assert.ok(isEdaError(error), "it rejects with one of our errors");
  return error.code;
}

const refused = { issues: [{ message: "no" }] };

test("a refusal that comes while an earlier schema is still asked rejects its own call and nothing else", async () => {
  const clock = new VirtualClock();
  const slow = gate<unknown>();
  const topics = { t: { slow: schema(() => slow.promise), bad: schema(() => Promise.resolve(refused)) } };
  const broker = new FakeTransportBroker(clock, { topics });
  const first = broker.publish("t", { type: "slow", data: 1 });
  const second = codeOf(broker.publish("t", { type: "bad", data: 2 }));
  // An unhandled rejection would end this process meanwhile.
  await clock.flush();
  slow.open({ value: 1 });
  await first;
  assert.equal(await second, "schema-invalid");
  await broker.close();
});

test("a batch that is refused at once leaves no other rejection behind", async () => {
  const clock = new VirtualClock();
  const topics = { t: { bad: schema(() => Promise.resolve(refused)) } };
  const broker = new FakeTransportBroker(clock, { topics });
  const batch = [{ type: "bad" as const, data: 1 }, { type: "unknown" as "bad", data: 2 }];
  assert.equal(await codeOf(broker.publishAll("t", batch)), "invalid-option");
  await clock.flush();
  await broker.close();
});

test("a publish whose schema answers after close is refused unsent", async () => {
  const clock = new VirtualClock();
  const slow = gate<unknown>();
  const broker = new FakeTransportBroker(clock, { topics: { t: { slow: schema(() => slow.promise) } } });
  await broker.connect();
  const one = codeOf(broker.publish("t", { type: "slow", data: 1 }));
  const many = codeOf(broker.publishAll("t", [{ type: "slow", data: 2 }]));
  await broker.close();
  slow.open({ value: 1 });
  assert.deepEqual(await Promise.all([one, many]), ["closed", "closed"]);
  assert.deepEqual(broker.transport.calls("send"), []);
});

test("a publish whose schema answers while the session is down is refused unsent", async () => {
  const clock = new VirtualClock();
  const slow = gate<unknown>();
  const broker = new FakeTransportBroker(clock, { topics: { t: { slow: schema(() => slow.promise) } } });
  await broker.connect();
  const one = codeOf(broker.publish("t", { type: "slow", data: 1 }));
  broker.link.die();
  slow.open({ value: 1 });
  assert.equal(await one, "broker-unavailable");
  await broker.close();
});

test("messages of a batch that found no connection were not sent, and waited for one only once", async () => {
  const clock = new VirtualClock();
  const broker = new FakeTransportBroker(clock);
  await broker.connect();
  const { transport } = broker;
  transport.onSend = (_, messages) => {
    // The line ends behind the first chunk.
    transport.onOpen = () => new Promise(() => {});
    return Promise.resolve(messages.map((_, at) => at === 0 ? new BrokerUnavailableError("gone") : undefined));
  };
  const messages = Array.from({ length: 1_000 }, (_, n) => ({ type: "n", data: n }));
  const batch = broker.publishAll("t", messages).then(() => assert.fail("it fails"), (error: unknown) => error);
  await clock.advance(10_000);
  const error = await within(1_000, "the batch to settle", batch) as PublishBatchError;
  const codes = error.outcomes.map((outcome) => outcome.ok ? "ok" : outcome.error.code);
  assert.deepEqual(codes.slice(0, 2), ["broker-unavailable", "ok"]);
  assert.deepEqual(new Set(codes.slice(256)), new Set(["broker-unavailable"]));
  await broker.close();
});

test("a publish that lost its connection while it waited for its turn was not sent", async () => {
  const clock = new VirtualClock();
  const session = new FakeSession(clock);
  const { transport } = session;
  const first = gate<readonly SendOutcome[]>();
  transport.onSend = () => first.promise;
  session.call((call) => ({ k: "connect", call }));
  await clock.flush();
  const bodies = Array.from({ length: 300 }, () => text());
  const subjects = bodies.map(() => undefined);
  session.call((call) => ({ k: "publish", call, topic: "t", bodies, subjects, chained: true }));
  await clock.flush();
  const second = session.call((call) => ({
    k: "publish",
    call,
    topic: "t",
    bodies: [text()],
    subjects: ["s"],
    chained: false,
  }));
  transport.onOpen = () => new Promise(() => {});
  first.open(Array.from({ length: 256 }, (_, at) => at === 0 ? new BrokerUnavailableError("gone") : undefined));
  await clock.advance(60_000);
  const [answer] = session.heard("published").filter(({ call }) => call === second);
  assert.equal((answer?.errors?.[0]?.[1] as { code: string }).code, "broker-unavailable");
});

test("nothing is sent, and no connection made, once a session has closed its transport", async () => {
  const clock = new VirtualClock();
  const session = new FakeSession(clock);
  const { transport } = session;
  const opening = gate();
  transport.onOpen = () => opening.promise;
  const publish = session.call((call) => ({
    k: "publish",
    call,
    topic: "t",
    bodies: [text()],
    subjects: ["s"],
    chained: false,
  }));
  session.subscribe(1, "t");
  session.call((call) => ({ k: "close", call, drainMs: 0 }));
  await clock.flush();
  assert.deepEqual(transport.log, ["open ", "close "]);
  opening.open();
  await clock.advance(60_000);
  assert.deepEqual(transport.log, ["open ", "close ", "reset "]);
  const [answer] = session.heard("published");
  assert.equal(answer?.call, publish);
  assert.equal((answer?.errors?.[0]?.[1] as { code: string }).code, "closed");
});
