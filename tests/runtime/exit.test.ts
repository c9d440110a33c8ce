import assert from "node:assert/strict";
import { assertExits, fresh, onLeg, test } from "../support/test.ts";

const script = new URL("./children/exit.ts", import.meta.url);
const onRedis = onLeg("redis");

const CASES: readonly (readonly [string, string])[] = [
  ["publish", "connect, publish one, close"],
  ["consume", "publish and consume twenty, close"],
  ["idle", "close an idle subscription, within a second (RUN-10)"],
  ["held", "close with deliveries handed out, held back and waiting"],
];

/** A process that printed that its work is over ends within two seconds, without a warning. */
async function ends(args: readonly string[], withinMs = 2_000): Promise<void> {
  const { stderr } = await assertExits(script, args, {}, { withinMs });
  assert.ok(!/warning/i.test(stderr), stderr);
}

for (const [how, what] of CASES) {
  test(`memory: the process ends by itself after: ${what} (RUN-07)`, () => ends([how, "memory"]));
  for (const kind of ["redis-worker", "redis-inline"]) {
    onRedis(
      `${kind}: the process ends by itself after: ${what} (RUN-07)`,
      ({ url }) => ends([how, kind, url, fresh("t")]),
    );
  }
}

for (const kind of ["redis-worker", "redis-inline"]) {
  test(`${kind}: the process ends by itself after closing a broker whose server is not there (RUN-07)`, () =>
    ends(["refused", kind]));
  onRedis(
    `${kind}: with keepAlive: false it ends without close, 5 s after its last subscription (WRK-05)`,
    ({ url }) => ends(["let-go", kind, url, fresh("t")], 7_000),
  );
}
