import assert from "node:assert/strict";
import { sessionOptions } from "../../core/broker_options.ts";
import { Session } from "../../core/session/session.ts";
import type { Raw } from "../../core/transport.ts";
import { test } from "../support/test.ts";
import { VirtualClock } from "../support/virtual_clock.ts";
import { FakeSession, FakeTransport, FakeTransportBroker, raw } from "./fake_transport.ts";

/** A session whose host's clock began `aheadMs` later than its own. */
async function subscribed(aheadMs: number, prefetch = 16): Promise<{ session: FakeSession; clock: VirtualClock }> {
  const clock = new VirtualClock();
  await clock.advance(10_000);
  const session = new FakeSession(clock);
  const at = clock.monotonic() - aheadMs;
  session.call((call) => ({ k: "subscribe", call, sub: 1, topic: "t", group: "g", prefetch, at }));
  await clock.flush();
  return { session, clock };
}

const untils = (session: FakeSession): number[] => session.heard("lease").map(({ until }) => until);

test("a session tells its host on the host's clock until when what it holds is good", async () => {
  const { session } = await subscribed(4_000);
  session.transport.events.owned("t", "g", 0, 1, 25_000);
  assert.deepEqual(untils(session), [21_000]);
  session.transport.events.owned("t", "g", 0, 1, 30_000);
  assert.deepEqual(untils(session), [21_000, 26_000]);
});

test("a session learns the difference of the clocks from the fastest message, never from a slow one", async () => {
  const { session, clock } = await subscribed(4_000);
  // This one took two seconds to arrive.
  session.tell({ k: "beat", at: clock.monotonic() - 6_000 });
  session.transport.events.owned("t", "g", 0, 1, 25_000);
  session.tell({ k: "beat", at: clock.monotonic() - 3_500 });
  session.transport.events.owned("t", "g", 0, 1, 26_000);
  assert.deepEqual(untils(session), [21_000, 22_500]);
});

test("of several partitions the first to end counts, and one that is lost counts no more", async () => {
  const { session, clock } = await subscribed(0);
  const { events } = session.transport;
  events.owned("t", "g", 0, 1, 25_000);
  events.owned("t", "g", 1, 1, 24_000);
  events.owned("t", "g", 0, 1, 30_000);
  session.transport.feed(raw("a", {}, { partition: 1 }));
  await clock.flush();
  events.revoked("t", "g", 1, "taken");
  events.revoked("t", "g", 0, "taken");
  assert.deepEqual(untils(session), [25_000, 24_000, 30_000, Infinity]);
  const order = session.said.map(({ k }) => k);
  assert.ok(order.indexOf("lost") < order.lastIndexOf("lease"), "first the messages are lost, then the rest is good");
});

test("a host that does not tell its clock hears nothing of leases", async () => {
  const clock = new VirtualClock();
  const session = new FakeSession(clock);
  session.subscribe(1, "t");
  await clock.flush();
  session.transport.events.owned("t", "g", 0, 1, 25_000);
  assert.deepEqual(untils(session), []);
});

test("nothing is handed out past the lease until the session speaks again", async () => {
  const clock = new VirtualClock();
  const broker = new FakeTransportBroker(clock);
  const stream = broker.subscribe("t")[Symbol.asyncIterator]();
  const first = stream.next();
  await clock.flush();
  const { events } = broker.transport;
  events.owned("t", "g", 0, 1, 1_000);
  broker.transport.feed(raw("a"), raw("b"), raw("c"));
  assert.equal((await first).value!.envelope.data, "a");
  // Time passes as in a process that was frozen: nobody has told the host anything.
  await clock.advance(1_500);
  let second: unknown;
  const waiting = stream.next().then(({ value }) => second = value!.envelope.data);
  await clock.flush();
  assert.equal(second, undefined);
  events.owned("t", "g", 0, 1, 5_000);
  await waiting;
  assert.equal(second, "b");
  await clock.advance(4_000);
  let third: unknown;
  void stream.next().then(({ value }) => third = value?.envelope.data);
  await clock.flush();
  events.revoked("t", "g", 0, "the lease ran out");
  events.owned("t", "g", 0, 2, 20_000);
  await clock.flush();
  assert.equal(third, undefined, "what was lost meanwhile is not handed out");
  broker.transport.feed(raw("d"));
  await clock.flush();
  assert.equal(third, "d");
  const closing = broker.close();
  await clock.advance(100);
  await closing;
});

test("what was read in an epoch that is over when it comes is dropped", async () => {
  const { session, clock } = await subscribed(0);
  const { transport } = session;
  const answers: ((raws: readonly Raw[]) => void)[] = [];
  transport.onFetch = () => new Promise((resolve) => void answers.push(resolve));
  transport.events.owned("t", "g", 0, 1, 25_000);
  transport.events.owned("t", "g", 1, 7, 25_000);
  session.call((call) => ({ k: "probe", call, sub: 1 }));
  await clock.flush();
  transport.events.revoked("t", "g", 0, "the lease ran out");
  transport.events.owned("t", "g", 0, 2, 40_000);
  const old = raw("old", {}, { partition: 0, epoch: 1 });
  const again = raw("again", {}, { partition: 0, epoch: 2 });
  answers[0]!([old, again, raw("other", {}, { partition: 1, epoch: 7 })]);
  await clock.flush();
  const texts = session.heard("deliver").flatMap((message) => message.texts);
  assert.deepEqual(texts.map((text) => JSON.parse(text).data), ["again", "other"]);
});

test("a settle past the lease is stale, and the message goes back in case it is still ours", async () => {
  const { session, clock } = await subscribed(0);
  session.transport.events.owned("t", "g", 0, 1, 11_000);
  session.transport.feed(raw("a"), raw("b"));
  await clock.advance(1_500);
  const call = session.call((call) => ({ k: "settle", call, sub: 1, acks: [0, 0] }));
  await clock.flush();
  assert.equal(session.answer(call)!.value, "stale");
  assert.deepEqual(session.transport.calls("ack"), []);
  assert.deepEqual(session.transport.calls("release"), ["release t a"]);
});

test("the same where a host on the same thread asks for itself", async () => {
  const clock = new VirtualClock();
  const transport = new FakeTransport(clock);
  const session = new Session(transport, clock, sessionOptions({}), () => {});
  session.receive({ k: "subscribe", call: 1, sub: 1, topic: "t", group: "g", prefetch: 16, at: clock.monotonic() });
  await clock.flush();
  transport.events.owned("t", "g", 0, 1, 1_000);
  transport.feed(raw("a"));
  await clock.flush();
  assert.equal(session.expired(1, 0), false);
  await clock.advance(1_500);
  assert.equal(session.expired(1, 0), true);
  await clock.flush();
  assert.equal(session.expired(1, 0), true);
  assert.deepEqual(transport.calls("release"), ["release t a"]);
});
