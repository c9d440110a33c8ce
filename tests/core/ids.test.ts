import assert from "node:assert/strict";
import { createIdSource } from "../../core/ids.ts";
import { test } from "../support/test.ts";

const SHAPE = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** The time in an id, milliseconds. */
function stampOf(id: string): number {
  return parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

test("createIdSource: ids have the layout of UUIDv7 and carry the clock's time", () => {
  const next = createIdSource({ now: () => 1_767_225_600_123 });
  const id = next();
  assert.match(id, SHAPE);
  assert.equal(stampOf(id), 1_767_225_600_123);
});

test("createIdSource: ids increase strictly within one millisecond", () => {
  const next = createIdSource({ now: () => 1_767_225_600_123 });
  const seen = new Set<string>();
  let last = "";
  for (let i = 0; i < 100_000; i++) {
    const id = next();
    assert.ok(id > last);
    seen.add(id);
    last = id;
  }
  assert.equal(seen.size, 100_000);
  assert.match(last, SHAPE);
});

test("createIdSource: ids increase when the clock jumps back, stands, has fractions or is no number", () => {
  const times = [5_000, 4_000, 1, 5_000, 5_000.4, 5_000.9, 5_001, NaN, -1, Infinity, 2 ** 60, 5_002];
  let at = 0;
  const next = createIdSource({ now: () => times[at++ % times.length] ?? 0 });
  let last = "";
  for (let i = 0; i < times.length; i++) {
    const id = next();
    assert.match(id, SHAPE);
    assert.ok(id > last, `call ${i}`);
    last = id;
  }
  assert.equal(stampOf(last), 5_002);
});

test("createIdSource: a clock that starts out of range still gives valid ids", () => {
  for (const now of [NaN, -5, 2 ** 48]) {
    const next = createIdSource({ now: () => now });
    const first = next();
    assert.match(first, SHAPE);
    assert.equal(stampOf(first), 0);
    assert.ok(next() > first);
  }
});

test("createIdSource: two sources of one clock never collide and stay in one order", () => {
  const clock = { now: () => 7 };
  const [a, b] = [createIdSource(clock), createIdSource(clock)];
  const ids = [a(), b(), a(), b(), b(), a()];
  assert.deepEqual([...ids].sort(), ids);
  assert.equal(new Set(ids).size, ids.length);
});

test("createIdSource: two clocks at the same time give different ids", () => {
  const [a, b] = [createIdSource({ now: () => 7 }), createIdSource({ now: () => 7 })];
  assert.notEqual(a(), b());
});
