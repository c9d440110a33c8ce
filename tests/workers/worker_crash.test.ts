import assert from "node:assert/strict";
import { assertExits, test } from "../support/test.ts";

const script = new URL("./children/crash.ts", import.meta.url);

for (const how of ["do-throw", "do-throw-in-timer", "do-reject", "at-load"]) {
  test(`a worker that throws (${how}) costs its own broker alone; process and other brokers go on (WRK-04)`, async () => {
    const { code } = await assertExits(script, [how]);
    assert.equal(code, 0);
  });
}
