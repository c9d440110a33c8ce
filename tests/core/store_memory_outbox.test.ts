import assert from "node:assert/strict";
import { textOf } from "../../core/codec.ts";
import { MemoryStore } from "../../core/store/memory_store.ts";
import { test } from "../support/test.ts";
import { VirtualClock } from "../support/virtual_clock.ts";

const LEASE = 30_000;

function outboxOf(rows: readonly (readonly [topic: string, subject: string | undefined])[]) {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock });
  store.transactNow({}, (unit) => {
    for (const [topic, subject] of rows) unit.addOutbox(topic, `${topic}/${subject}`, subject);
  });
  const seqs = async (owner: string, limit = 100, leaseMs = LEASE) =>
    (await store.outbox.claim(owner, limit, leaseMs)).map(({ seq }) => seq);
  return { clock, store, outbox: store.outbox, seqs };
}

test("claim takes each subject's rows from the lowest on, and none that another holds", async () => {
  const { outbox, seqs } = outboxOf([["t", "a"], ["t", "a"], ["t", "b"], ["u", "a"], ["t", undefined], ["t", "a"]]);
  assert.deepEqual(await seqs("one", 2), [1, 2]);
  assert.deepEqual(await seqs("two"), [3, 4, 5]);
  assert.deepEqual(await seqs("three"), []);
  assert.equal(await outbox.settle("one", [1, 2]), 2);
  assert.deepEqual(await seqs("three"), [6]);
});

test("a claim that stops within a subject leaves the rest of it to nobody until it is settled", async () => {
  const { outbox, seqs } = outboxOf([["t", "a"], ["t", "a"], ["t", "a"]]);
  assert.deepEqual(await seqs("one", 1), [1]);
  assert.deepEqual(await seqs("two"), []);
  await outbox.settle("one", [1]);
  assert.deepEqual(await seqs("two"), [2, 3]);
});

test("rows given back are claimed again from the lowest on", async () => {
  const { outbox, seqs } = outboxOf([["t", "a"], ["t", "a"], ["t", "a"]]);
  await seqs("one");
  await outbox.settle("one", [1]);
  await outbox.release("one", [3, 2]);
  assert.deepEqual(await seqs("two"), [2, 3]);
  assert.equal(await outbox.pending(), 2);
});

test("a lease ends by itself; then its owner can settle nothing that another has", async () => {
  const { clock, outbox, seqs } = outboxOf([["t", "a"], ["t", "b"]]);
  await seqs("one");
  await clock.advance(LEASE - 1);
  assert.deepEqual(await seqs("two"), []);
  await clock.advance(1);
  assert.deepEqual(await seqs("two"), [1, 2]);
  assert.equal(await outbox.settle("one", [1, 2]), 0);
  await outbox.release("one", [1], { error: "x", park: true });
  assert.equal(await outbox.settle("two", [1, 2]), 2);
  assert.equal(await outbox.pending(), 0);
});

test("a renewed lease holds from then on", async () => {
  const { clock, outbox, seqs } = outboxOf([["t", "a"]]);
  await seqs("one");
  await clock.advance(LEASE - 1);
  assert.equal(await outbox.renew("one", [1], LEASE), 1);
  assert.equal(await outbox.renew("two", [1], LEASE), 0);
  await clock.advance(LEASE - 1);
  assert.deepEqual(await seqs("two"), []);
});

test("a row set aside blocks its subject for that time and no other", async () => {
  const { clock, outbox, seqs } = outboxOf([["t", "a"], ["t", "a"], ["t", "b"]]);
  await seqs("one", 2);
  await outbox.release("one", [2]);
  await outbox.release("one", [1], { error: "E", park: false, delayMs: 500, counted: false });
  assert.deepEqual(await seqs("two"), [3]);
  await clock.advance(499);
  assert.deepEqual(await seqs("two"), []);
  await clock.advance(1);
  const rows = await outbox.claim("two", 10, LEASE);
  assert.deepEqual(rows.map(({ seq, attempts }) => [seq, attempts]), [[1, 0], [2, 0]]);
});

test("a parked row blocks its subject until it is unparked or discarded", async () => {
  const { outbox, seqs } = outboxOf([["t", "a"], ["t", "a"], ["t", "b"], ["t", "b"]]);
  await seqs("one");
  for (const head of [1, 3]) {
    await outbox.release("one", [head + 1]);
    await outbox.release("one", [head], { error: "PublishRefusedError", park: true });
  }
  assert.deepEqual(await seqs("two"), []);
  const parked = await outbox.parked();
  assert.deepEqual(parked.map(({ seq, attempts, error }) => [seq, attempts, error]), [
    [1, 1, "PublishRefusedError"],
    [3, 1, "PublishRefusedError"],
  ]);
  assert.equal(await outbox.unpark([1, 2], "retry"), 1);
  assert.deepEqual(await seqs("two"), [1, 2]);
  assert.equal(await outbox.unpark([3], "discard"), 1);
  assert.deepEqual(await seqs("two"), [4]);
  assert.equal(await outbox.pending(), 3);
});

test("wait ends when a row comes, when one becomes claimable, in time, and with its signal", async () => {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock, source: "/s" });
  const stop = new AbortController();
  const waits = async (run: () => unknown): Promise<number> => {
    const before = clock.monotonic();
    let over = false;
    const wait = store.outbox.wait(10_000, stop.signal).then(() => {
      over = true;
    });
    await clock.flush();
    assert.equal(over, false);
    await run();
    await clock.advanceUntil(() => over);
    await wait;
    return clock.monotonic() - before;
  };
  assert.equal(await waits(() => {}), 10_000);
  assert.equal(await waits(() => store.outbox.add(undefined, "t", { type: "n.a", subject: "a" })), 0);
  await store.outbox.wait(10_000, stop.signal);
  await store.outbox.claim("one", 1, 3_000);
  assert.equal(await waits(() => {}), 3_000);
  await store.outbox.claim("one", 1, 30_000);
  assert.equal(await waits(() => store.outbox.release("one", [1], { error: "x", park: false, delayMs: 700 })), 700);
  await store.outbox.claim("one", 1, 30_000);
  assert.equal(await waits(() => stop.abort()), 0);
  assert.equal(clock.armed, 0);
});

test("add outside a unit stores the exact text of an envelope, or makes one", async () => {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock, source: "/s" });
  const made = await store.outbox.add(undefined, "t", { type: "n.a", subject: "a", data: 1 });
  const same = await store.outbox.add(undefined, "u", made);
  assert.equal(same, made);
  const rows = await store.outbox.claim("one", 10, LEASE);
  assert.deepEqual(rows.map(({ envelope }) => envelope), [textOf(made), textOf(made)]);
});

test("a long outbox is claimed to its end at a steady cost", async () => {
  const { outbox, store } = outboxOf([]);
  store.transactNow({}, (unit) => {
    for (let n = 0; n < 20_000; n++) unit.addOutbox("t", String(n), `s${n % 5_000}`);
  });
  const seen: string[] = [];
  const last = new Map<string, number>();
  for (
    let rows = await outbox.claim("one", 500, LEASE);
    rows.length > 0;
    rows = await outbox.claim("one", 500, LEASE)
  ) {
    for (const { envelope, subject } of rows) {
      assert.ok(Number(envelope) > (last.get(subject!) ?? -1));
      last.set(subject!, Number(envelope));
      seen.push(envelope);
    }
    await outbox.settle("one", rows.map(({ seq }) => seq));
  }
  assert.equal(new Set(seen).size, 20_000);
  assert.equal(await outbox.pending(), 0);
});
