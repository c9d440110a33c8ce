import assert from "node:assert/strict";
import { InvalidOptionError, StoreConflictError, StoreFencedError } from "../../core/errors.ts";
import type { DeadLetter, Receipt, Unit } from "../../core/store/contract.ts";
import { MemoryStore } from "../../core/store/memory_store.ts";
import { test } from "../support/test.ts";
import { VirtualClock } from "../support/virtual_clock.ts";

const KEY = { consumer: "c", source: "/s", id: "1" };
const receipt = (at: number, more: Partial<Receipt> = {}): Receipt => ({ ...KEY, fingerprint: "f", at, ...more });

function letter(id: string, more: Partial<DeadLetter> = {}): DeadLetter {
  return {
    id,
    reason: "max_attempts",
    consumer: "c",
    topic: "t",
    firstFailedAt: 1,
    lastFailedAt: 2,
    failures: 1,
    errors: [],
    source: "/s",
    eventId: "1",
    redacted: "{}",
    body: "text",
    replays: 0,
    ...more,
  };
}

test("MemoryStore.transact stores everything of a unit together", async () => {
  const store = new MemoryStore();
  const answer = await store.transact({ receipt: KEY, snapshot: "k" }, (unit) => {
    assert.equal(unit.receipt, undefined);
    assert.equal(unit.snapshot, undefined);
    unit.addReceipt(receipt(5));
    unit.saveSnapshot("{}", "m", "1");
    unit.addOutbox("out", "text", "s");
    unit.setTimer({ id: "a", owner: "k", dueAt: 9, envelope: "x" });
    unit.addDeadLetter(letter("d"));
    return "answer";
  });
  assert.equal(answer, "answer");
  assert.deepEqual(await store.inbox.get(KEY), receipt(5));
  assert.deepEqual(await store.snapshots.get("k"), {
    key: "k",
    value: "{}",
    machine: "m",
    machineVersion: "1",
    version: 1,
  });
  assert.equal(await store.outbox.pending(), 1);
  assert.equal((await store.timers.due(9, 10)).length, 1);
  assert.equal((await store.deadLetters.list()).length, 1);
});

test("MemoryStore.transact stores nothing where the work fails, and passes on what it threw", async () => {
  const store = new MemoryStore();
  const boom = { odd: true };
  for (
    const fail of [() => Promise.reject(boom), () => {
      throw boom;
    }]
  ) {
    await assert.rejects(
      store.transact({ receipt: KEY, snapshot: "k" }, (unit) => {
        unit.addReceipt(receipt(5));
        unit.saveSnapshot("{}", "m", "1");
        unit.addOutbox("out", "text", "s");
        return fail();
      }),
      (error) => error === boom,
    );
  }
  assert.equal(await store.inbox.get(KEY), undefined);
  assert.equal(await store.snapshots.get("k"), undefined);
  assert.equal(await store.outbox.pending(), 0);
});

test("MemoryStore.transactNow answers without a promise where the work does", () => {
  const store = new MemoryStore();
  assert.equal(
    store.transactNow({ receipt: KEY }, (unit) => {
      unit.addReceipt(receipt(1));
      return 7;
    }),
    7,
  );
  assert.throws(() =>
    store.transactNow({}, () => {
      throw new RangeError("x");
    }), RangeError);
});

test("MemoryStore.transact stores nothing behind a fence that has aborted", async () => {
  const store = new MemoryStore();
  const fence = { aborted: false };
  const work = (unit: Unit) => {
    unit.addReceipt(receipt(1));
    fence.aborted = true;
  };
  await assert.rejects(store.transact({ receipt: KEY }, work, fence), StoreFencedError);
  assert.throws(() => store.transactNow({ receipt: KEY }, work, fence), StoreFencedError);
  assert.equal(await store.inbox.get(KEY), undefined);
});

test("MemoryStore.transact runs again on what it reads anew when another was first", async () => {
  const store = new MemoryStore();
  const seen: (number | undefined)[] = [];
  const count = async () =>
    await store.transact({ snapshot: "k" }, async (unit) => {
      const value = Number(unit.snapshot?.value ?? 0);
      seen.push(unit.snapshot?.version);
      await Promise.resolve();
      unit.saveSnapshot(String(value + 1), "m", "");
    });
  await Promise.all([count(), count(), count()]);
  const snapshot = await store.snapshots.get("k");
  assert.equal(snapshot!.value, "3");
  assert.equal(snapshot!.version, 3);
  assert.equal(seen.length, 6);
});

test("MemoryStore.transact gives up after 5 reruns", async () => {
  const store = new MemoryStore();
  let runs = 0;
  await assert.rejects(
    store.transact({ snapshot: "k" }, async (unit) => {
      runs++;
      await store.transact({ snapshot: "k" }, (other) => other.saveSnapshot("x", "m", ""));
      unit.saveSnapshot("y", "m", "");
    }),
    StoreConflictError,
  );
  assert.equal(runs, 6);
  assert.equal((await store.snapshots.get("k"))!.value, "x");
});

test("MemoryStore.transact notices that a snapshot was deleted and made anew", async () => {
  const store = new MemoryStore();
  await store.transact({ snapshot: "k" }, (unit) => unit.saveSnapshot("first", "m", ""));
  const seen: (string | undefined)[] = [];
  await store.transact({ snapshot: "k" }, async (unit) => {
    seen.push(unit.snapshot?.value);
    if (seen.length === 1) {
      await store.transact({ snapshot: "k" }, (other) => other.deleteSnapshot());
      await store.transact({ snapshot: "k" }, (other) => other.saveSnapshot("second", "m", ""));
    }
  });
  assert.deepEqual(seen, ["first", "second"]);
});

test("MemoryStore.transact guards what it read also where it writes nothing there", async () => {
  const store = new MemoryStore();
  let runs = 0;
  await store.transact({ receipt: KEY, snapshot: "k" }, async (unit) => {
    if (++runs === 1) await store.transact({ snapshot: "k" }, (other) => other.saveSnapshot("x", "m", ""));
    unit.addReceipt(receipt(1));
  });
  assert.equal(runs, 2);
});

test("MemoryStore.transact lets only one of two units write a receipt", async () => {
  const store = new MemoryStore();
  const seen: boolean[] = [];
  const handle = () =>
    store.transact({ receipt: KEY }, async (unit) => {
      seen.push(unit.receipt !== undefined);
      if (unit.receipt !== undefined) return "duplicate";
      await Promise.resolve();
      unit.addReceipt(receipt(1));
      return "first";
    });
  const answers = await Promise.all([handle(), handle()]);
  assert.deepEqual(answers.toSorted(), ["duplicate", "first"]);
  assert.deepEqual(seen, [false, false, true]);
});

test("MemoryStore.transact shows no receipt that has expired, and replaces it", async () => {
  const store = new MemoryStore();
  await store.transact({ receipt: KEY }, (unit) => unit.addReceipt(receipt(100)));
  await store.transact({ receipt: KEY, receiptsFrom: 100 }, (unit) => assert.notEqual(unit.receipt, undefined));
  await store.transact({ receipt: KEY, receiptsFrom: 101 }, (unit) => {
    assert.equal(unit.receipt, undefined);
    unit.addReceipt(receipt(200));
  });
  assert.equal((await store.inbox.get(KEY))!.at, 200);
});

test("MemoryStore.transact fires a timer once, whoever else tries", async () => {
  const store = new MemoryStore();
  const timer = { owner: "o", id: "t" };
  await store.transact({}, (unit) => unit.setTimer({ ...timer, dueAt: 1, topic: "out", envelope: "x" }));
  const fire = () =>
    store.transact({ timer }, async (unit) => {
      if (unit.timer === undefined) return false;
      await Promise.resolve();
      unit.deleteTimer(timer.owner, timer.id);
      return true;
    });
  assert.deepEqual((await Promise.all([fire(), fire()])).toSorted(), [false, true]);
});

test("timer writes of a unit take effect in the order made", async () => {
  const store = new MemoryStore();
  await store.transact({}, (unit) => {
    unit.deleteTimer("o", "t");
    unit.setTimer({ owner: "o", id: "t", dueAt: 5, envelope: "x" });
    unit.setTimer({ owner: "o", id: "u", dueAt: 6, envelope: "x" });
    unit.deleteTimer("o", "u");
  });
  assert.deepEqual((await store.timers.due(10, 10)).map(({ id }) => id), ["t"]);
});

test("timers come earliest first, and are told apart by owner and id", async () => {
  const store = new MemoryStore();
  await store.transact({}, (unit) => {
    for (const [owner, id, dueAt] of [["a", "b1", 30], ["ab", "1", 10], ["a", "x", 20], ["a", "y", 20]] as const) {
      unit.setTimer({ owner, id, dueAt, envelope: "x" });
    }
    unit.setTimer({ owner: "a", id: "x", dueAt: 40, envelope: "later" });
  });
  assert.equal(await store.timers.next(), 10);
  assert.deepEqual((await store.timers.due(30, 10)).map(({ id }) => id), ["1", "y", "b1"]);
  assert.deepEqual((await store.timers.due(99, 2)).map(({ id }) => id), ["1", "y"]);
  await store.transact({}, (unit) => unit.deleteTimer("a", "y"));
  assert.deepEqual((await store.timers.due(99, 9)).map(({ id }) => id), ["1", "b1", "x"]);
});

test("a unit writes a snapshot only under its own key", async () => {
  const store = new MemoryStore();
  await assert.rejects(store.transact({}, (unit) => unit.saveSnapshot("x", "m", "")), TypeError);
});

test("the inbox keeps at least its newest receipts and at most twice as many, a consumer", async () => {
  const store = new MemoryStore({ maxReceipts: 100 });
  const key = (n: number) => ({ consumer: "c", source: "/s", id: String(n) });
  for (let n = 0; n < 1_000; n++) {
    store.transactNow({ receipt: key(n) }, (unit) => unit.addReceipt({ ...receipt(n), ...key(n) }));
  }
  let kept = 0;
  for (let n = 0; n < 1_000; n++) if (await store.inbox.get(key(n))) kept++;
  for (let n = 901; n < 1_000; n++) assert.notEqual(await store.inbox.get(key(n)), undefined, String(n));
  assert.ok(kept <= 200, `${kept} kept`);
});

test("the inbox removes what is older than asked for, and refuses a moment that is none", async () => {
  const store = new MemoryStore();
  for (let n = 0; n < 10; n++) {
    const key = { consumer: "c", source: "/s", id: String(n) };
    await store.transact({ receipt: key }, (unit) => unit.addReceipt({ ...receipt(n), ...key }));
  }
  assert.equal(await store.inbox.purge(4), 4);
  for (const moment of [NaN, -1, Infinity]) await assert.rejects(store.inbox.purge(moment), InvalidOptionError);
  assert.equal(await store.inbox.purge(4), 0);
});

test("failure counts go up one by one, keep their first moment, and can be cleared and purged", async () => {
  const store = new MemoryStore();
  assert.deepEqual(await store.failures.bump(KEY, 10), { failures: 1, firstFailedAt: 10 });
  assert.deepEqual(await store.failures.bump(KEY, 20), { failures: 2, firstFailedAt: 10 });
  await store.transact({}, (unit) => unit.clearFailures(KEY));
  assert.equal(await store.failures.get(KEY), undefined);
  await store.failures.bump(KEY, 30);
  assert.equal(await store.failures.purge(30), 0);
  assert.equal(await store.failures.purge(31), 1);
});

test("dead letters are listed by id, in pages, without the resolved ones", async () => {
  const store = new MemoryStore();
  for (const id of ["c", "a", "b", "d"]) await store.deadLetters.put(letter(id));
  await store.deadLetters.resolve("b", 77);
  const ids = async (options?: Parameters<typeof store.deadLetters.list>[0]) =>
    (await store.deadLetters.list(options)).map(({ id }) => id);
  assert.deepEqual(await ids(), ["a", "c", "d"]);
  assert.deepEqual(await ids({ includeResolved: true }), ["a", "b", "c", "d"]);
  assert.deepEqual(await ids({ limit: 2 }), ["a", "c"]);
  assert.deepEqual(await ids({ limit: 2, after: "c" }), ["d"]);
  for (const limit of [0, -1, 1.5, NaN, 10_001]) await assert.rejects(ids({ limit }), InvalidOptionError);
});

test("dead letters older than a moment are removed, and no moment that is none removes any", async () => {
  const store = new MemoryStore();
  await store.deadLetters.put(letter("old", { lastFailedAt: 10 }));
  await store.deadLetters.put(letter("new", { lastFailedAt: 20 }));
  for (const moment of [NaN, -1]) await assert.rejects(store.deadLetters.purge(moment), InvalidOptionError);
  assert.equal(await store.deadLetters.purge(20), 1);
  assert.deepEqual((await store.deadLetters.list()).map(({ id }) => id), ["new"]);
});

test("dead letters stay bounded: resolved ones go first, then the oldest, and that is counted", async () => {
  const store = new MemoryStore({ maxDeadLetters: 20 });
  for (let n = 0; n < 20; n++) await store.deadLetters.put(letter(`l${String(n).padStart(3, "0")}`));
  await store.deadLetters.resolve("l010", 1);
  await store.deadLetters.resolve("l011", 1);
  await store.deadLetters.put(letter("l020"));
  assert.equal(store.forgottenDeadLetters, 0);
  assert.notEqual(await store.deadLetters.get("l000"), undefined);
  assert.equal(await store.deadLetters.get("l010"), undefined);
  for (let n = 21; n < 60; n++) await store.deadLetters.put(letter(`l${String(n).padStart(3, "0")}`));
  const left = await store.deadLetters.list({ includeResolved: true });
  assert.ok(left.length <= 20);
  assert.equal(left.at(-1)!.id, "l059");
  assert.equal(store.forgottenDeadLetters, 60 - 2 - left.length);
});

test("beginReplay counts, and takes away failures and the receipt that is the letter's own", async () => {
  const store = new MemoryStore();
  await store.deadLetters.put(letter("mine"));
  await store.deadLetters.put(letter("other"));
  await store.failures.bump(KEY, 1);
  await store.transact({ receipt: KEY }, (unit) => unit.addReceipt(receipt(1, { deadLetter: "mine" })));
  await store.deadLetters.beginReplay("other");
  assert.notEqual(await store.inbox.get(KEY), undefined);
  assert.deepEqual(await store.deadLetters.beginReplay("mine"), { envelope: "text", topic: "t", replay: 1 });
  assert.equal(await store.inbox.get(KEY), undefined);
  assert.equal(await store.failures.get(KEY), undefined);
  assert.equal((await store.deadLetters.beginReplay("mine")).replay, 2);
});

test("MemoryStore refuses every call once it is closed, and lets waits end", async () => {
  const store = new MemoryStore({ clock: new VirtualClock() });
  const waiting = store.outbox.wait(60_000, new AbortController().signal);
  await store.close();
  await store.close();
  await waiting;
  const calls = [
    () => store.transact({}, () => {}),
    () => store.inbox.get(KEY),
    () => store.outbox.claim("o", 1, 1),
    () => store.outbox.pending(),
    () => store.deadLetters.list(),
    () => store.failures.get(KEY),
    () => store.timers.due(1, 1),
    () => store.snapshots.get("k"),
  ];
  for (const call of calls) await assert.rejects(call(), { code: "closed" }, String(call));
});

test("MemoryStore names a wrong option", () => {
  assert.throws(() => new MemoryStore({ maxReceipts: 0 }), /maxReceipts/);
  assert.throws(() => new MemoryStore({ maxRecipts: 5 } as never), /maxRecipts/);
});
