/** The session: subscriptions begin, stall and end without stepping on each other, and nothing that was read is forgotten. */
import assert from "node:assert/strict";
import { BrokerUnavailableError, PartitionMismatchError } from "../../core/errors.ts";
import type { NativeOutcome, Raw } from "../../core/transport.ts";
import { gate } from "./dispatch_rig.ts";
import { FakeSession, FakeTransportBroker, raw } from "./fake_transport.ts";
import { test, within } from "../support/test.ts";
import { VirtualClock } from "../support/virtual_clock.ts";

const settled = (count: number): NativeOutcome[] => Array.from({ length: count }, () => "settled");

/** Lets virtual time pass while the host beats. */
async function beat(session: FakeSession, clock: VirtualClock, seconds: number): Promise<void> {
  for (let n = 0; n < seconds; n++) {
    session.tell({ k: "beat" });
    await clock.advance(1_000);
  }
}

test("a subscription does not begin before its predecessor of the same topic and group was left", async () => {
  const clock = new VirtualClock();
  const session = new FakeSession(clock);
  const { transport } = session;
  session.subscribe(1, "t");
  await clock.flush();
  transport.feed(raw("a"));
  await clock.flush();
  const leaving = gate();
  transport.onUnsubscribe = () => leaving.promise;
  session.call((call) => ({ k: "unsubscribe", call, sub: 1 }));
  const other = session.subscribe(2, "other");
  const next = session.subscribe(3, "t");
  await clock.advance(10);
  assert.ok(session.answer(other), "another topic need not wait");
  assert.equal(session.answer(next), undefined);
  const before = transport.log.length;
  assert.equal(transport.log.findLast((line) => line.includes(" t")), "unsubscribe t");
  leaving.open();
  await clock.flush();
  assert.deepEqual(transport.log.slice(before), ["fetch t 16"]);
  assert.ok(session.answer(next));
});

test("a subscription that was left before the first connection stood is not begun", async () => {
  const clock = new VirtualClock();
  const broker = new FakeTransportBroker(clock);
  const { transport } = broker;
  const opening = gate();
  transport.onOpen = () => opening.promise;
  const stop = new AbortController();
  const next = broker.subscribe("t", { signal: stop.signal }).next();
  await clock.flush();
  stop.abort();
  await next;
  await clock.advance(6_000);
  opening.open();
  await clock.advance(10);
  assert.deepEqual(transport.calls("fetch"), []);
  await broker.close();
});

test("a read that waited for the connection is not sent once its subscription has ended", async () => {
  const clock = new VirtualClock();
  const session = new FakeSession(clock, { connectTimeoutMs: 60_000, callTimeoutMs: 2_000 });
  const { transport } = session;
  session.subscribe(1, "t");
  await clock.flush();
  const opening = gate();
  transport.onOpen = () => opening.promise;
  transport.onFetch = () => Promise.reject(new BrokerUnavailableError("gone"));
  await clock.advance(2_500);
  transport.onFetch = (_, request) => transport.take(request);
  session.call((call) => ({ k: "unsubscribe", call, sub: 1 }));
  await clock.advance(10_000);
  const before = transport.log.length;
  assert.equal(transport.log.at(-1), "unsubscribe t");
  opening.open();
  await clock.advance(10);
  assert.deepEqual(transport.log.slice(before), []);
});

test("what a read brings after its deadline is handed out, for nobody else gets it", async () => {
  const clock = new VirtualClock();
  const session = new FakeSession(clock);
  const { transport } = session;
  const late = gate<readonly Raw[]>();
  transport.onFetch = () => late.promise;
  session.subscribe(1, "t");
  await clock.advance(12_000);
  assert.deepEqual(transport.calls("reset"), ["reset "]);
  transport.onFetch = (_, request) => transport.take(request);
  late.open([raw("a"), raw("expired", {}, { leaseMs: 5_000 })]);
  await clock.flush();
  const [delivered] = session.heard("deliver");
  assert.equal(delivered?.texts.length, 1, "what has no lease of its own any more is another's");
  session.tell({ k: "settle", sub: 1, acks: [0, 0] });
  await clock.flush();
  assert.deepEqual(transport.calls("ack"), ["ack t a"]);
});

test("a host that beats again while its messages are given back gets them after that, in order", async () => {
  const clock = new VirtualClock();
  const session = new FakeSession(clock, { maxStallMs: 3_000 });
  const { transport } = session;
  session.subscribe(1, "t");
  await clock.flush();
  transport.feed(raw("a"));
  await clock.flush();
  const leaving = gate();
  transport.onUnsubscribe = () => leaving.promise;
  await clock.advance(4_000);
  assert.equal(transport.log.at(-1), "unsubscribe t");
  session.tell({ k: "beat" });
  await clock.advance(10);
  assert.equal(transport.log.at(-1), "unsubscribe t", "it waits for the end of it");
  leaving.open();
  transport.feed(raw("a", {}, { deliveries: 1 }));
  await clock.flush();
  assert.equal(session.heard("deliver").length, 2);
  session.tell({ k: "settle", sub: 1, acks: [1, 1] });
  await clock.flush();
  assert.equal(transport.log.at(-1), "ack t a");
});

test("a host that stalls again while its messages are still given back leaves no subscription that nobody can settle", async () => {
  const clock = new VirtualClock();
  const session = new FakeSession(clock, { maxStallMs: 2_000 });
  const { transport } = session;
  session.subscribe(1, "one");
  session.subscribe(2, "two");
  await clock.flush();
  const leaving = gate();
  transport.onUnsubscribe = (topic) => topic === "two" ? leaving.promise : Promise.resolve();
  await clock.advance(3_000);
  session.tell({ k: "beat" });
  await clock.advance(3_000);
  leaving.open();
  await beat(session, clock, 3);
  session.said.length = 0;
  transport.onFetch = (topic, request) => topic === "one" ? transport.take(request) : new Promise(() => {});
  transport.feed(raw("a"));
  await beat(session, clock, 3);
  const delivered = session.heard("deliver");
  assert.deepEqual(delivered.map(({ sub }) => sub), [1]);
  session.tell({ k: "settle", sub: 1, acks: [delivered[0]!.base, delivered[0]!.base] });
  await clock.flush();
  assert.deepEqual(transport.calls("ack"), ["ack one a"]);
});

test("a drain that a stall interrupted is not told that the topic is empty", async () => {
  const clock = new VirtualClock();
  const session = new FakeSession(clock, { maxStallMs: 3_000 });
  const { transport } = session;
  const reading = gate<readonly Raw[]>();
  transport.onFetch = () => reading.promise;
  session.subscribe(1, "t");
  await clock.flush();
  const before = session.call((call) => ({ k: "probe", call, sub: 1 }));
  await clock.advance(3_500);
  const during = session.call((call) => ({ k: "probe", call, sub: 1 }));
  await clock.flush();
  transport.onFetch = (_, request) => transport.take(request);
  transport.feed(raw("a"));
  reading.open([]);
  await beat(session, clock, 2);
  const said = session.said.filter(({ k }) => k === "answer" || k === "deliver");
  assert.deepEqual(said.slice(1).map((message) => message.k === "answer" ? message.call : message.k), [
    "deliver",
    before,
    during,
  ]);
});

test("a read that is refused for good ends the stream with its error", async () => {
  const clock = new VirtualClock();
  const broker = new FakeTransportBroker(clock);
  const { transport } = broker;
  transport.onFetch = () => Promise.reject(new PartitionMismatchError("3 are recorded, 2 are asked for"));
  const next = broker.subscribe("t").next();
  next.catch(() => {});
  await clock.advance(1_000);
  await assert.rejects(within(1_000, "the stream's end", next), { code: "partition-mismatch" });
  assert.deepEqual(transport.log, ["open ", "fetch t 256", "unsubscribe t"]);
  assert.deepEqual(broker.health().topics, []);
  await broker.close();
});

test("close with no time to drain still counts what the broker confirmed at once", async () => {
  const clock = new VirtualClock();
  const broker = new FakeTransportBroker(clock);
  broker.transport.feed(raw("a"));
  const { value } = await broker.subscribe("t").next();
  await value!.ack();
  assert.deepEqual(await broker.close({ drainMs: 0 }), { released: 0, unconfirmed: 0, terminated: false });
  assert.deepEqual(broker.transport.calls("ack"), ["ack t a"]);
});

/** A session with one message that is no envelope, whose lease is 600 ms. */
async function withUndecodable(): Promise<{ clock: VirtualClock; session: FakeSession }> {
  const clock = new VirtualClock();
  const session = new FakeSession(clock);
  session.subscribe(1, "t");
  await clock.flush();
  session.transport.feed({ body: "no envelope", native: "x", partition: 0, deliveries: 0, leaseMs: 600 });
  await clock.flush();
  assert.equal(session.heard("undecodable").length, 1);
  return { clock, session };
}

test("an undecodable message that waits for its record keeps its lease", async () => {
  const { clock, session } = await withUndecodable();
  await clock.advance(5_000);
  assert.ok(session.transport.calls("extend").length > 5);
  session.tell({ k: "recorded", sub: 1, id: 0, ok: true });
  await clock.flush();
  assert.deepEqual(session.transport.calls("drop"), ["drop t x"]);
});

test("an undecodable message that is another's by now is not settled", async () => {
  const { clock, session } = await withUndecodable();
  session.transport.onSettle = (kind, natives) =>
    Promise.resolve(kind === "extend" ? natives.map(() => "stale") : settled(natives.length));
  await clock.advance(1_000);
  session.tell({ k: "recorded", sub: 1, id: 0, ok: true });
  await clock.flush();
  assert.deepEqual(session.transport.calls("drop"), []);
});

test("an undecodable message whose lease ran out is not settled", async () => {
  const { clock, session } = await withUndecodable();
  session.transport.onSettle = () => new Promise(() => {});
  await clock.advance(2_000);
  session.transport.onSettle = (_, natives) => Promise.resolve(settled(natives.length));
  session.tell({ k: "recorded", sub: 1, id: 0, ok: true });
  await clock.flush();
  assert.deepEqual(session.transport.calls("drop"), []);
});

test("a window full of messages whose leases were lost is filled again", async () => {
  const clock = new VirtualClock();
  const session = new FakeSession(clock);
  const { transport } = session;
  session.subscribe(1, "t", 2);
  await clock.flush();
  transport.feed(raw("a", {}, { leaseMs: 600 }), raw("b", {}, { leaseMs: 600 }));
  await clock.flush();
  transport.onSettle = (_, natives) => Promise.resolve(natives.map(() => "stale"));
  transport.feed(raw("c"));
  await clock.advance(2_000);
  assert.deepEqual(session.heard("lost").map(({ ids }) => ids), [[0, 1]]);
  assert.deepEqual(session.heard("deliver").map(({ base }) => base), [0, 2]);
});

test("nothing is sent for a message whose own lease ran out", async () => {
  const clock = new VirtualClock();
  const session = new FakeSession(clock);
  const { transport } = session;
  session.subscribe(1, "t");
  await clock.flush();
  transport.feed(raw("a", {}, { leaseMs: 600 }));
  await clock.flush();
  const before = transport.log.length;
  // As after a freeze: time is over, and no timer has run.
  const { monotonic } = clock;
  clock.monotonic = () => monotonic.call(clock) + 1_000;
  session.tell({ k: "settle", sub: 1, acks: [0, 0] });
  await clock.flush();
  assert.deepEqual(transport.log.slice(before), []);
  assert.equal(session.heard("settle-failed").length, 1);
});

test("one who holds most of the window, and waits for the rest, gets it", async () => {
  const clock = new VirtualClock();
  const session = new FakeSession(clock);
  const { transport } = session;
  session.subscribe(1, "t", 16);
  await clock.flush();
  transport.feed(...Array.from({ length: 14 }, (_, at) => raw(`a${at}`)));
  await clock.flush();
  assert.deepEqual(transport.calls("fetch"), ["fetch t 16"], "less than a quarter is free: acks may bring more");
  transport.feed(raw("b"), raw("c"), raw("d"));
  await clock.advance(100);
  assert.deepEqual(transport.calls("fetch"), ["fetch t 16", "fetch t 2"]);
  const counts = session.heard("deliver").map(({ texts }) => texts.length);
  assert.deepEqual(counts, [14, 2], "the seventeenth stays at the broker");
});
