/** How subscriptions end and begin again: nothing that was acked comes again, nothing is kept that nobody reads. */
import assert from "node:assert/strict";
import { BrokerUnavailableError } from "../../core/errors.ts";
import { gate } from "./dispatch_rig.ts";
import { FakeTransportBroker, raw } from "./fake_transport.ts";
import { test } from "../support/test.ts";
import { VirtualClock } from "../support/virtual_clock.ts";

test("an ack that close was under way for, and that was accepted, reaches the broker", async () => {
  const clock = new VirtualClock();
  const broker = new FakeTransportBroker(clock);
  broker.transport.feed(raw("a"), raw("b"));
  const stream = broker.subscribe("t");
  const [a, b] = [await stream.next(), await stream.next()];
  const closing = broker.close();
  assert.equal(await a.value!.ack(), "accepted");
  assert.equal(await b.value!.ack(), "stale", "close has given it back by now");
  const report = await closing;
  assert.deepEqual(broker.transport.calls("ack"), ["ack t a"]);
  assert.deepEqual(broker.transport.calls("release"), ["release t b"]);
  assert.deepEqual(report, { released: 1, unconfirmed: 0, terminated: false });
});

test("a subscription that only a lost delivery kept is left, not begun again for nobody", async () => {
  const clock = new VirtualClock();
  const broker = new FakeTransportBroker(clock);
  broker.transport.feed(raw("a"));
  const stream = broker.subscribe("t");
  const { value } = await stream.next();
  void stream.return!();
  broker.link.die();
  assert.equal(value!.signal.aborted, true);
  await broker.link.rise();
  await clock.advance(10_000);
  assert.deepEqual(broker.health().topics, []);
  await broker.close();
});

test("a subscription is left 5 s after its reader, also where a schema was asked when the reader left", async () => {
  const clock = new VirtualClock();
  const schema = {
    "~standard": { version: 1, vendor: "test", validate: () => new Promise<never>(() => {}) },
  } as const;
  const broker = new FakeTransportBroker(clock, { topics: { t: { n: schema } } });
  broker.transport.feed(raw("a"));
  const stream = broker.subscribe("t");
  const next = stream.next();
  await clock.flush();
  void stream.return!();
  await next;
  await clock.advance(6_000);
  assert.deepEqual(broker.transport.calls("release"), ["release t a"]);
  assert.deepEqual(broker.transport.calls("unsubscribe"), ["unsubscribe t"]);
  await broker.close();
});

test("a subscription that was left while its session started is not begun", async () => {
  const clock = new VirtualClock();
  const broker = new FakeTransportBroker(clock);
  const { link, transport } = broker;
  const starting = gate();
  const start = link.start.bind(link);
  link.start = async (sink) => {
    await starting.promise;
    await start(sink);
  };
  const stop = new AbortController();
  const next = broker.subscribe("t", { signal: stop.signal }).next();
  await clock.flush();
  stop.abort();
  await next;
  await clock.advance(6_000);
  starting.open();
  await clock.advance(1_000);
  assert.deepEqual(transport.calls("fetch"), []);
  assert.deepEqual(broker.health().topics, []);
  await broker.close();
});

test("a subscription that was left while a new session could not connect is not begun", async () => {
  const clock = new VirtualClock();
  const broker = new FakeTransportBroker(clock);
  const { link, transport } = broker;
  const stream = broker.subscribe("t");
  const next = stream.next();
  await clock.flush();
  link.die();
  transport.onOpen = () => Promise.reject(new BrokerUnavailableError("gone"));
  await link.rise();
  await clock.advance(1_000);
  void stream.return!();
  await next;
  await clock.advance(6_000);
  assert.deepEqual(broker.health().topics, []);
  transport.onOpen = () => Promise.resolve();
  transport.log.length = 0;
  await clock.advance(10_000);
  assert.deepEqual(transport.log, []);
  await broker.close();
});
