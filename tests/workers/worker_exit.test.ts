import assert from "node:assert/strict";
import { assertExits, child, test } from "../support/test.ts";

const script = new URL("./children/end.ts", import.meta.url);

for (const isolation of ["worker", "inline"] as const) {
  const cases: readonly (readonly [string, string])[] = [
    ["close", "a closed broker"],
    ["close-idle-subscription", "closing an idle subscription, within a second (RUN-10)"],
    ["close-running-handler", "closing under a handler that still runs; its settles are stale (COR-10)"],
    ["close-while-starting", "closing while it starts"],
    ["failed-start", "a broker that could not start, also without close"],
    ["let-go", "the last call with keepAlive: false, also without close"],
    ...(isolation === "worker"
      ? [
        ["close-after-crash", "closing after the worker died"],
        ["let-go-after-crash", "a crash with nothing else in flight and keepAlive: false"],
      ] as const
      : []),
  ];
  for (const [how, what] of cases) {
    test(`${isolation}: the process ends by itself within a second of ${what} (WRK-05, RUN-07)`, async () => {
      const { stderr } = await assertExits(script, [how, isolation], {}, { withinMs: 1_000 });
      assert.ok(!/warning/i.test(stderr), stderr);
    });
  }
}

test(
  "a process that only waits for a worker's answer stays until it has it: 20 of 20 (WRK-06)",
  { timeoutMs: 90_000 },
  async () => {
    const runs = 20;
    let got = 0;
    const one = async (): Promise<void> => {
      const { code, stdout, stderr } = await child(script, ["close", "worker"]).done;
      assert.equal(code, 0, stderr);
      assert.match(stdout, /^result\ndone\n$/);
      got++;
    };
    for (let n = 0; n < runs; n += 2) await Promise.all([one(), one()]);
    assert.equal(got, runs);
  },
);

test("an event after five idle seconds is there within 200 ms (WRK-12)", { timeoutMs: 30_000 }, async () => {
  const { stdout } = await assertExits(new URL("./children/idle.ts", import.meta.url), [], {}, { withinMs: 1_000 });
  const tookMs = Number(/came after (\d+) ms/.exec(stdout)?.[1]);
  assert.ok(tookMs < 200, stdout);
});
