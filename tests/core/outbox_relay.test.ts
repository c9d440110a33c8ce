import assert from "node:assert/strict";
import { textOf } from "../../core/codec.ts";
import type { Envelope } from "../../core/envelope.ts";
import {
  BrokerUnavailableError,
  EnvelopeTooLargeError,
  InvalidOptionError,
  OutcomeUnknownError,
  PublishRefusedError,
} from "../../core/errors.ts";
import { silentLogger } from "../../core/logger.ts";
import { Relay, type RelayOptions } from "../../core/outbox/relay.ts";
import { MemoryStore } from "../../core/store/memory_store.ts";
import { FakeBroker } from "../support/fake_broker.ts";
import { test } from "../support/test.ts";
import { VirtualClock } from "../support/virtual_clock.ts";
import { gate } from "./dispatch_rig.ts";
import { down } from "./faulty_store.ts";

function rig(options: Partial<RelayOptions> = {}) {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock, source: "/s" });
  const broker = new FakeBroker({ clock });
  const stop = new AbortController();
  let names = 0;
  const relay = (more: Partial<RelayOptions> = {}) =>
    new Relay({ outbox: store.outbox, broker, clock, log: silentLogger, owner: `r${names++}`, ...options, ...more });
  const add = (subject: string | undefined, data: unknown, topic = "t") =>
    store.outbox.add(undefined, topic, { type: "n.row", data, ...(subject === undefined ? {} : { subject }) });
  const sent = (subject?: string) =>
    broker.published.filter(({ envelope }) => subject === undefined || envelope.subject === subject)
      .map(({ envelope }) => envelope.data);
  return { clock, store, broker, stop, relay, add, sent };
}

test("Relay publishes rows in order per subject, exactly as they were written, and removes them", async () => {
  const { store, broker, relay, add, stop } = rig();
  const rows: Envelope[] = [];
  for (let n = 0; n < 50; n++) rows.push(await add(`s${n % 3}`, n));
  await relay({ batch: 7 }).flush(stop.signal);
  assert.equal(await store.outbox.pending(), 0);
  for (const subject of ["s0", "s1", "s2"]) {
    const of = (all: readonly { readonly subject?: string }[]) => all.filter((one) => one.subject === subject);
    const published = of(broker.published.map(({ envelope }) => envelope)) as Envelope[];
    assert.deepEqual(published.map(textOf), (of(rows) as Envelope[]).map(textOf));
  }
});

test("Relay never re-serialises data (CE-05)", async () => {
  const { store, broker, relay, stop } = rig();
  const text =
    '{"specversion":"1.0","id":"1","source":"/s","type":"n.row","subject":"a","data":[9007199254740993,1.0,1e2,-0,1E400]}';
  store.transactNow({}, (unit) => unit.addOutbox("t", text, "a"));
  await relay().flush(stop.signal);
  assert.equal(broker.published[0]!.text, text);
});

test("Relay stops a subject at a row that is refused, parks it, and publishes the others", async () => {
  const { clock, store, broker, relay, add, sent, stop } = rig();
  for (const [subject, data] of [["a", 1], ["a", 2], ["b", 1], ["a", 3], ["b", 2]] as const) await add(subject, data);
  broker.publishFault = ({ subject, data }) =>
    subject === "a" && data === 2 ? new PublishRefusedError("no") : undefined;
  const parked: number[] = [];
  const run = relay({ onParked: (count) => void parked.push(count) }).run(stop.signal);
  await clock.advance(60_000);
  assert.deepEqual(sent("a"), [1]);
  assert.deepEqual(sent("b"), [1, 2]);
  assert.deepEqual(parked, [1]);
  const [row] = await store.outbox.parked();
  assert.equal(row!.error, "PublishRefusedError (publish-refused)");
  assert.equal(row!.attempts, 1);
  broker.publishFault = () => undefined;
  await store.outbox.unpark([row!.seq], "retry");
  await clock.advance(60_000);
  assert.deepEqual(sent("a"), [1, 2, 3]);
  stop.abort();
  await run;
});

test("Relay parks a row that is no envelope and goes on with the others", async () => {
  const { store, relay, add, sent, stop } = rig();
  store.transactNow({}, (unit) => unit.addOutbox("t", "{", "a"));
  await add("b", 1);
  await relay().flush(stop.signal);
  assert.deepEqual(sent(), [1]);
  assert.equal((await store.outbox.parked()).length, 1);
});

test("an absent downstream costs no attempt, is not hammered, and everything goes out in order once it is back", async () => {
  const { clock, store, broker, relay, add, sent, stop } = rig();
  for (let n = 0; n < 30; n++) await add(`s${n % 3}`, n);
  let tries = 0;
  broker.publishFault = () => {
    tries++;
    return new BrokerUnavailableError("away");
  };
  const one = relay();
  const run = one.run(stop.signal);
  await clock.advance(300_000);
  assert.ok(tries < 60, `${tries} messages tried in 5 minutes`);
  assert.equal(one.state, "open");
  assert.equal(await store.outbox.pending(), 30);
  broker.publishFault = () => undefined;
  await clock.advance(60_000);
  assert.equal(one.state, "closed");
  for (const s of [0, 1, 2]) assert.deepEqual(sent(`s${s}`), [...Array(10).keys()].map((n) => n * 3 + s));
  stop.abort();
  await run;
  assert.equal(clock.armed, 0);
});

test("a row of unknown outcome is sent again as the same event", async () => {
  const { clock, broker, relay, add, stop } = rig();
  await add("a", 1);
  await add("a", 2);
  let faults = 1;
  broker.publishFault = () => faults-- > 0 ? new OutcomeUnknownError("no answer") : undefined;
  const run = relay().run(stop.signal);
  await clock.advance(60_000);
  stop.abort();
  await run;
  assert.deepEqual(broker.published.map(({ envelope }) => envelope.data), [1, 1, 2]);
  assert.equal(broker.published[0]!.text, broker.published[1]!.text);
});

test("several relays over one outbox send each row once and keep the order per subject", async () => {
  const { clock, broker, relay, add, sent, store } = rig();
  for (let n = 0; n < 400; n++) await add(`s${n % 10}`, n);
  broker.beforeConfirm = () => new Promise((resolve) => clock.turn(resolve));
  const stops = [0, 1, 2, 3].map(() => new AbortController());
  const runs = stops.map((stop) => relay({ batch: 7 }).run(stop.signal));
  await clock.advance(10_000);
  for (const stop of stops) stop.abort();
  await Promise.all(runs);
  assert.equal(broker.published.length, 400);
  assert.equal(await store.outbox.pending(), 0);
  for (let s = 0; s < 10; s++) assert.deepEqual(sent(`s${s}`), [...Array(40).keys()].map((n) => n * 10 + s));
});

test("a row is removed only after its own confirmation", async () => {
  const { clock, store, broker, relay, add, stop } = rig();
  const open = gate();
  broker.beforeConfirm = () => open.promise;
  await add("a", 1);
  const run = relay().run(stop.signal);
  await clock.advance(20_000);
  assert.equal(broker.published.length, 1);
  assert.equal(await store.outbox.pending(), 1);
  open.open();
  await clock.flush();
  assert.equal(await store.outbox.pending(), 0);
  stop.abort();
  await run;
});

test("a relay keeps its lease while the downstream is slow, so that no other sends the same rows", async () => {
  const { clock, broker, relay, add, stop } = rig();
  const open = gate();
  broker.beforeConfirm = () => open.promise;
  await add("a", 1);
  const runs = [relay().run(stop.signal), relay().run(stop.signal)];
  await clock.advance(200_000);
  assert.equal(broker.published.length, 1);
  open.open();
  await clock.advance(1_000);
  assert.equal(broker.published.length, 1);
  stop.abort();
  await Promise.all(runs);
});

test("a relay that dies leaves its rows to others once its lease has ended", async () => {
  const { clock, store, relay, add, sent, stop } = rig();
  await add("a", 1);
  await store.outbox.claim("dead relay", 10, 30_000);
  const run = relay().run(stop.signal);
  await clock.advance(29_999);
  assert.deepEqual(sent(), []);
  await clock.advance(1);
  assert.deepEqual(sent(), [1]);
  stop.abort();
  await run;
});

test("a relay tells the outbox what was sent as soon as it can, and sends nothing twice meanwhile", async () => {
  const { clock, store, broker, relay, add, stop } = rig();
  await add("a", 1);
  let faults = 5;
  const settle = store.outbox.settle.bind(store.outbox);
  store.outbox.settle = (owner, seqs) => faults-- > 0 ? Promise.reject(down()) : settle(owner, seqs);
  const run = relay().run(stop.signal);
  await clock.advance(60_000);
  stop.abort();
  await run;
  assert.equal(broker.published.length, 1);
  assert.equal(await store.outbox.pending(), 0);
});

test("a relay survives an outbox that cannot be read", async () => {
  const { clock, store, broker, relay, add, stop } = rig();
  await add("a", 1);
  let faults = 4;
  const claim = store.outbox.claim.bind(store.outbox);
  store.outbox.claim = (...args) => faults-- > 0 ? Promise.reject(down()) : claim(...args);
  const run = relay().run(stop.signal);
  await clock.advance(60_000);
  stop.abort();
  await run;
  assert.equal(broker.published.length, 1);
});

test("a row added while a relay waits goes out at once", async () => {
  const { clock, relay, add, sent, stop } = rig();
  const run = relay({ pollMs: 60_000 }).run(stop.signal);
  await clock.advance(1_000);
  await add("a", 1);
  await clock.flush();
  assert.deepEqual(sent(), [1]);
  stop.abort();
  await run;
});

for (
  const [what, refusal] of [
    ["is too large for the downstream", new EnvelopeTooLargeError("too large")],
    ["is of a type that the downstream does not declare", new InvalidOptionError("not declared")],
  ] as const
) {
  test(`a row that ${what} is parked alone, though the whole batch was refused for it`, async () => {
    const { clock, store, broker, relay, add, sent, stop } = rig();
    for (const [subject, data] of [["a", 1], ["b", 1], ["c", 1], ["b", 2], ["a", 2], ["d", 1]] as const) {
      await add(subject, data);
    }
    const publishAll = broker.publishAll.bind(broker);
    broker.publishAll = (topic, messages) => {
      // As brokers do: all are checked before any is sent.
      const bad = messages.some((message) => message.subject === "b" && message.data === 1);
      return bad ? Promise.reject(refusal) : publishAll(topic, messages as never);
    };
    const run = relay().run(stop.signal);
    await clock.advance(1_000);
    assert.deepEqual(sent().sort(), [1, 1, 1, 2]);
    assert.deepEqual(sent("a"), [1, 2]);
    assert.deepEqual((await store.outbox.parked()).map(({ subject, seq }) => `${subject} ${seq}`), ["b 2"]);
    assert.equal(await store.outbox.pending(), 2);
    stop.abort();
    await clock.advance(60_000);
    await run;
  });
}
