import assert from "node:assert/strict";
import { textOf } from "../../core/codec.ts";
import { InvalidOptionError } from "../../core/errors.ts";
import { MemoryStore } from "../../core/store/memory_store.ts";
import { test } from "../support/test.ts";
import { VirtualClock } from "../support/virtual_clock.ts";
import { Rig } from "./dispatch_rig.ts";
import { down, FaultyStore } from "./faulty_store.ts";

const text = (content: string) => new TextEncoder().encode(content);

/** Bodies that are no envelope. */
const CORRUPT: readonly (readonly [what: string, body: Uint8Array])[] = [
  ["nothing", text("")],
  ["half an object", text("{")],
  ["an array", text("[]")],
  ["null", text("null")],
  ["a string", text('"x"')],
  ["invalid UTF-8", new Uint8Array([0xff])],
  ["an empty id", text('{"specversion":"1.0","id":"","source":"/s","type":"t"}')],
  ["a tower of arrays", text("[".repeat(500_000))],
];

for (const [what, body] of CORRUPT) {
  test(`a message that is ${what} is recorded once with its exact bytes, and the event behind it is handled (COR-05)`, async () => {
    const rig = new Rig({ routes: { "n.step": () => {} } });
    const run = rig.run();
    await rig.clock.flush();
    await rig.broker.deliverBytes("t", body);
    rig.deliver("n.step", "s");
    await rig.untilEnded(1);
    const report = await rig.finish(run);
    assert.deepEqual(report.deadLettered, { corrupt: 1 });
    assert.equal(report.processed, 1);
    const [letter, ...others] = await rig.store.deadLetters.list();
    assert.equal(others.length, 0);
    assert.equal(letter!.reason, "corrupt");
    assert.equal(letter!.bytes, body.byteLength);
    assert.deepEqual(new Uint8Array(Buffer.from(letter!.bodyBase64!, "base64")), body);
    assert.match(letter!.errors[0]!.code!, /^envelope-/);
  });
}

test("a byte order mark before an envelope is no corruption (COR-05)", async () => {
  const rig = new Rig({ routes: { "n.step": () => {} } });
  const run = rig.run();
  await rig.clock.flush();
  await rig.broker.deliverBytes("t", text('\ufeff{"specversion":"1.0","id":"1","source":"/s","type":"n.step"}'));
  await rig.untilEnded(1);
  assert.equal((await rig.finish(run)).processed, 1);
});

test("a corrupt message stays at the broker while it cannot be recorded", async () => {
  const clock = new VirtualClock();
  const store = new FaultyStore({ clock });
  let faults = 3;
  const put = store.deadLetters.put.bind(store.deadLetters);
  store.deadLetters.put = (letter) => faults-- > 0 ? Promise.reject(down()) : put(letter);
  const rig = new Rig({ clock, store, routes: {} });
  const run = rig.run();
  await clock.flush();
  await rig.broker.deliverBytes("t", text("{"));
  await clock.advance(1_000);
  const report = await rig.finish(run);
  assert.deepEqual(report.deadLettered, { corrupt: 1 });
  assert.equal((await store.deadLetters.list()).length, 1);
});

test("a dead letter has the event as it came, what failed and when, with secrets masked (COR-17)", async () => {
  const rig = new Rig({
    maxAttempts: 2,
    consumer: "billing",
    routes: {
      "n.step": (envelope) => {
        const cause = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
        throw new TypeError(`no way for ${envelope.subject} at redis://user:hunter2@host:6379 ${"x".repeat(2_000)}`, {
          cause,
        });
      },
    },
  });
  const start = rig.clock.now();
  const literal =
    '{"specversion":"1.0","id":"e-1","source":"/s","type":"n.step","subject":"s","trace":"abc","data":{"password":"hunter2","n":9007199254740993,"f":1.0}}';
  rig.broker.deliverText("t", literal, "s");
  await rig.settle(1);
  const [letter] = await rig.store.deadLetters.list();
  const { id, errors, redacted, body, ...rest } = letter!;
  assert.match(id, /^[0-9a-f-]{36}$/);
  assert.deepEqual(rest, {
    reason: "max_attempts",
    consumer: "billing",
    topic: "t",
    firstFailedAt: start,
    lastFailedAt: start + 100,
    failures: 2,
    source: "/s",
    eventId: "e-1",
    type: "n.step",
    subject: "s",
    replays: 0,
  });
  assert.match(body!, /"n":9007199254740993,"f":1\.0/);
  assert.doesNotMatch(redacted, /hunter2/);
  assert.deepEqual(errors.map(({ name, code }) => ({ name, code })), [
    { name: "TypeError", code: undefined },
    { name: "Error", code: "ECONNREFUSED" },
  ]);
  assert.ok(errors[0]!.message.length <= 1_000);
  assert.doesNotMatch(errors[0]!.message, /hunter2/);
});

test("a dead letter without its body holds no data and cannot be replayed", async () => {
  const rig = new Rig({ keepBodies: false, routes: {} });
  rig.deliver("n.step", "s", { data: { total: 1 } });
  await rig.settle(1);
  const [letter] = await rig.store.deadLetters.list();
  assert.equal(letter!.body, undefined);
  await assert.rejects(rig.app.replay(letter!.id), InvalidOptionError);
});

test("a replay handles the event exactly as it came, and settles its letter (COR-17)", async () => {
  let healed = false;
  const seen: string[] = [];
  const rig = new Rig({
    maxAttempts: 1,
    routes: {
      "n.step": (envelope) => {
        seen.push(textOf(envelope));
        if (!healed) throw new Error("not yet");
      },
    },
  });
  const sent = rig.deliver("n.step", "s", { data: { total: 1 }, extensions: { tenant: "a" } });
  await rig.settle(1);
  healed = true;
  const [letter] = await rig.store.deadLetters.list();
  assert.equal(await rig.app.replay(letter!.id), "processed");
  assert.deepEqual(seen, [textOf(sent), textOf(sent)]);
  assert.deepEqual(await rig.store.deadLetters.list(), []);
  const [settled] = await rig.store.deadLetters.list({ includeResolved: true });
  assert.equal(settled!.replays, 1);
  assert.equal(settled!.resolvedAt, rig.clock.now());
  rig.broker.deliver("t", sent);
  await rig.settle(2);
  assert.equal(rig.told.at(-1), "duplicate", "the replay left a receipt");
  assert.equal(await rig.app.replay(letter!.id), "duplicate", "replaying again changes nothing");
});

test("a replay that fails brings its letter up to date and adds none", async () => {
  const rig = new Rig({
    maxAttempts: 3,
    routes: {
      "n.step": () => {
        throw new Error("never");
      },
    },
  });
  const sent = rig.deliver("n.step", "s");
  await rig.settle(1);
  const [before] = await rig.store.deadLetters.list();
  await rig.clock.advance(1_000);
  assert.equal(await rig.app.replay(before!.id), "dead_lettered:max_attempts");
  const letters = await rig.store.deadLetters.list();
  assert.equal(letters.length, 1);
  assert.deepEqual({ ...letters[0]!, errors: [] }, {
    ...before!,
    errors: [],
    failures: 4,
    replays: 1,
    lastFailedAt: rig.clock.now(),
  });
  rig.broker.deliver("t", sent);
  await rig.settle(2);
  assert.equal(rig.told.at(-1), "duplicate", "a redelivery does not run what is in the dead letters");
});

test("a replay takes away only the receipt that is its letter's own", async () => {
  let runs = 0;
  const rig = new Rig({ routes: { "n.step": () => void runs++ } });
  rig.deliver("n.step", "s", { id: "e", data: 1 });
  rig.deliver("n.step", "s", { id: "e", data: 2 });
  await rig.settle(2);
  const [letter] = await rig.store.deadLetters.list();
  assert.equal(letter!.reason, "idempotency_mismatch");
  assert.equal(await rig.app.replay(letter!.id), "dead_lettered:idempotency_mismatch");
  assert.equal(runs, 1);
  assert.equal((await rig.store.deadLetters.list()).length, 1);
});

test("a replay is refused for an unknown letter, a corrupt message, and another consumer's event", async () => {
  const store = new MemoryStore();
  const rig = new Rig({ store, consumer: "one", routes: {} });
  await assert.rejects(rig.app.replay("nope"), InvalidOptionError);
  rig.deliver("n.step", "s");
  const run = rig.run();
  await rig.untilEnded(1);
  await rig.broker.deliverBytes("t", text("{"));
  await rig.finish(run);
  const [event, corrupt] = await store.deadLetters.list();
  await assert.rejects(rig.app.replay(corrupt!.id), InvalidOptionError);
  const other = new Rig({ store, consumer: "two", routes: {} });
  await assert.rejects(other.app.replay(event!.id), InvalidOptionError);
});
