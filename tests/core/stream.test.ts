/** Readers of a subscription: every `next()` settles, nothing is lost or overtaken, whatever ends them and when. */
import assert from "node:assert/strict";
import { defineTopics, type Schema } from "../../core/topics.ts";
import { gate } from "./dispatch_rig.ts";
import { FakeTransportBroker, raw } from "./fake_transport.ts";
import { test, within } from "../support/test.ts";
import { VirtualClock } from "../support/virtual_clock.ts";

/** A schema that answers when the test says, once per value. */
function slowSchema() {
  const asked: { readonly value: unknown; pass(): void; refuse(): void }[] = [];
  const schema: Schema = {
    "~standard": {
      version: 1,
      vendor: "test",
      validate: (value) => {
        const answer = gate<{ value: unknown } | { issues: { message: string }[] }>();
        asked.push({
          value,
          pass: () => answer.open({ value }),
          refuse: () => answer.open({ issues: [{ message: "no" }] }),
        });
        return answer.promise as never;
      },
    },
  };
  return { asked, topics: defineTopics({ t: { n: schema } }) };
}

test("a stream that ends while a schema is asked answers the reader that waits, and loses nothing", async () => {
  const clock = new VirtualClock();
  const { asked, topics } = slowSchema();
  const broker = new FakeTransportBroker(clock, { topics });
  broker.transport.feed(raw(1));
  const stop = new AbortController();
  const next = broker.subscribe("t", { signal: stop.signal })[Symbol.asyncIterator]().next();
  await clock.flush();
  assert.equal(asked.length, 1);
  stop.abort();
  asked[0]!.pass();
  assert.deepEqual(await within(1_000, "the reader's answer", next), { done: true, value: undefined });
  const again = broker.subscribe("t")[Symbol.asyncIterator]().next();
  await clock.flush();
  asked[1]!.pass();
  const { value } = await within(1_000, "the next reader's delivery", again);
  assert.equal(value!.envelope.data, 1);
  await broker.close();
});

test("what a reader left while schemas were asked goes to the next one in order, whichever schema answers first", async () => {
  const clock = new VirtualClock();
  const { asked, topics } = slowSchema();
  const broker = new FakeTransportBroker(clock, { topics });
  broker.transport.feed(raw(1, { subject: "s" }), raw(2, { subject: "s" }));
  const first = broker.subscribe("t");
  const nexts = [first.next(), first.next()];
  await clock.flush();
  assert.deepEqual(asked.map(({ value }) => value), [1, 2]);
  void first.return!();
  asked[1]!.pass();
  const second = broker.subscribe("t");
  const taken = [second.next(), second.next()];
  await clock.flush();
  asked[0]!.pass();
  await clock.flush();
  for (const { pass } of asked) pass();
  await Promise.all(nexts);
  const values = await within(1_000, "both deliveries", Promise.all(taken));
  assert.deepEqual(values.map(({ value }) => value!.envelope.data), [1, 2]);
  await broker.close();
});

test("two waiting reads of one stream are both served by one batch, also where schemas answer late", async () => {
  const clock = new VirtualClock();
  const { asked, topics } = slowSchema();
  const broker = new FakeTransportBroker(clock, { topics });
  const stream = broker.subscribe("t");
  const nexts = [stream.next(), stream.next()];
  await clock.flush();
  broker.transport.feed(raw(1), raw(2));
  await clock.flush();
  assert.equal(asked.length, 2, "the second one is asked about as well");
  for (const { pass } of asked) pass();
  const values = await within(1_000, "both deliveries", Promise.all(nexts));
  assert.deepEqual(values.map(({ value }) => value!.envelope.data), [1, 2]);
  await broker.close();
});

test("idleMs ends every read that waits, also one that waited while another was served", async () => {
  const clock = new VirtualClock();
  const broker = new FakeTransportBroker(clock);
  const stream = broker.subscribe("t", { idleMs: 1_000 });
  const nexts = [stream.next(), stream.next()];
  await clock.advance(10);
  broker.transport.feed(raw(1));
  await clock.advance(10);
  assert.equal((await nexts[0]!).value!.envelope.data, 1);
  await clock.advance(5_000);
  assert.deepEqual(await within(1_000, "the end", nexts[1]!), { done: true, value: undefined });
  await broker.close();
});

test("a stream that is never read holds nothing: its subscription is left 5 s after the last one that was", async () => {
  const clock = new VirtualClock();
  const broker = new FakeTransportBroker(clock);
  broker.subscribe("t");
  const read = broker.subscribe("t");
  const next = read.next();
  await clock.flush();
  broker.transport.feed(raw(1));
  await (await next).value!.ack();
  void read.return!();
  await clock.advance(6_000);
  assert.deepEqual(broker.transport.calls("unsubscribe"), ["unsubscribe t"]);
  await broker.close();
});

test("a stream made before its subscription was left subscribes anew when it is read", async () => {
  const clock = new VirtualClock();
  const broker = new FakeTransportBroker(clock);
  const late = broker.subscribe("t");
  const early = broker.subscribe("t");
  const next = early.next();
  await clock.flush();
  void early.return!();
  await next;
  await clock.advance(6_000);
  broker.transport.feed(raw(1));
  const read = late.next();
  await clock.advance(10);
  assert.equal((await within(1_000, "the delivery", read)).value!.envelope.data, 1);
  await broker.close();
});

test("a stream that is never read leaves no listener on its signal", () => {
  let listeners = 0;
  const signal = new AbortController().signal;
  const { addEventListener } = signal;
  signal.addEventListener = function (this: AbortSignal, ...args: Parameters<typeof addEventListener>) {
    listeners++;
    return addEventListener.apply(this, args);
  } as typeof addEventListener;
  new FakeTransportBroker(new VirtualClock()).subscribe("t", { signal });
  assert.equal(listeners, 0);
});

test("a retried delivery comes before a later one of its subject that was retried before it", async () => {
  const clock = new VirtualClock();
  const broker = new FakeTransportBroker(clock);
  broker.transport.feed(raw(1, { subject: "s" }), raw(2, { subject: "s" }));
  const stream = broker.subscribe("t");
  const [one, two] = [await stream.next(), await stream.next()];
  await two.value!.retry();
  await one.value!.retry();
  const again = [await stream.next(), await stream.next()];
  assert.deepEqual(again.map(({ value }) => value!.envelope.data), [1, 2]);
  await broker.close();
});
