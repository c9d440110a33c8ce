import assert from "node:assert/strict";
import { Backoff, pause, systemClock, withDeadline } from "../../core/clock.ts";
import { countedSignal } from "../support/counted_signal.ts";
import { assertExits, test } from "../support/test.ts";
import { VirtualClock } from "../support/virtual_clock.ts";

test("timers fire at once for delays below 0 and NaN, never early for long ones, and no runtime warns (RUN-06)", async () => {
  const { stdout, stderr } = await assertExits(new URL("./children/timers.ts", import.meta.url));
  assert.equal(stdout, "now -1, now -1099511627776, now -Infinity, now NaN, now 0\ndone\n");
  assert.equal(stderr, "");
});

test("a delay over 2^31 - 1 ms is waited for in steps that add up to it (RUN-06)", () => {
  const scope = globalThis as unknown as { setTimeout: (run: () => void, ms: number) => unknown };
  const real = scope.setTimeout;
  const steps: { ms: number; run: () => void }[] = [];
  scope.setTimeout = (run, ms) => {
    steps.push({ ms, run });
    return 0;
  };
  try {
    const days30 = 30 * 86_400_000;
    let fired = false;
    systemClock.timer(days30, () => fired = true);
    let waited = 0;
    for (let step = steps.shift(); step !== undefined; step = steps.shift()) {
      assert.ok(step.ms > 0 && step.ms <= 2 ** 31 - 1, `a step of ${step.ms}`);
      assert.equal(fired, false);
      waited += step.ms;
      step.run();
    }
    assert.equal(waited, days30);
    assert.equal(fired, true);
  } finally {
    scope.setTimeout = real;
  }
});

test("a pause ends with its time or its signal, and leaves no listener and no timer either way", async () => {
  const clock = new VirtualClock();
  const { signal, listeners, abort } = countedSignal();
  const over = pause(clock, 1_000, signal);
  await clock.advance(1_000);
  assert.equal(await over, true);
  assert.equal(listeners(), 0);
  const cut = pause(clock, 1_000, signal);
  abort();
  assert.equal(await cut, false);
  assert.equal(clock.armed, 0);
  assert.equal(await pause(clock, 1_000, signal), false);
  assert.equal(clock.armed, 0);
});

test("a deadline leaves no timer behind, whichever comes first", async () => {
  const clock = new VirtualClock();
  const late = (): Error => new Error("late");
  assert.equal(await withDeadline(clock, 1_000, Promise.resolve(1), late), 1);
  await assert.rejects(withDeadline(clock, 1_000, Promise.reject(new Error("failed")), late), /failed/);
  const pending = assert.rejects(withDeadline(clock, 1_000, new Promise(() => {}), late), /late/);
  await clock.advance(1_000);
  await pending;
  assert.equal(clock.armed, 0);
});

test("backoff grows to its ceiling with half jitter, and starts anew after a reset", () => {
  const clock = new VirtualClock();
  const backoff = new Backoff(clock, 100, 1_000);
  const waits = (random: number): number[] => {
    clock.randomness = random;
    backoff.reset();
    return Array.from({ length: 6 }, () => backoff.next());
  };
  assert.deepEqual(waits(0), [50, 100, 200, 400, 500, 500]);
  assert.deepEqual(waits(0.999999), [100, 200, 400, 800, 1_000, 1_000]);
  assert.equal(backoff.failures, 6);
});
