import assert from "node:assert/strict";
import { assertExits, fresh, onLeg, test } from "../support/test.ts";

const script = new URL("./children/signals.ts", import.meta.url);

/** The script checks the listeners; nothing may have been warned of, here or in its worker. */
async function gathersNone(args: readonly string[]): Promise<void> {
  const { stderr } = await assertExits(script, args, {}, { timeoutMs: 100_000 });
  assert.equal(stderr, "");
}

test("memory: 10,000 events and 1,000 idle polls leave no listener on their signal (COR-20)", () =>
  gathersNone(["memory"]));

for (const kind of ["redis-worker", "redis-inline"]) {
  onLeg("redis")(
    `${kind}: 10,000 events, 1,000 idle polls and 50 reconnects leave no listener on their signal, and no warning (COR-20)`,
    { timeoutMs: 120_000 },
    ({ url }) => gathersNone([kind, url, fresh("t")]),
  );
}
