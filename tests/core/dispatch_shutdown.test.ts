import assert from "node:assert/strict";
import process from "node:process";
import { shutdownSignal } from "../../core/dispatch/shutdown.ts";
import { child, test } from "../support/test.ts";

const script = new URL("./scripts/shutdown_service.ts", import.meta.url);

for (const [name, code] of [["SIGTERM", 143], ["SIGINT", 130]] as const) {
  test(`${name} ends the run, settles what is in flight, and the process ends by itself with 0 (RUN-08)`, async () => {
    const service = child(script, ["300", "5000"]);
    await service.output("started");
    service.kill(name);
    const { code, stdout, stderr, timedOut } = await service.done;
    assert.equal(timedOut, false);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /\{"processed":1,"released":0,"settled":1\}/);
  });

  test(`a second ${name} ends the process at once, with ${code} (RUN-08)`, async () => {
    const service = child(script, ["forever", "60000"]);
    await service.output("started");
    service.kill(name);
    // The first must have been taken in; there is nothing it prints.
    await new Promise((resolve) => setTimeout(resolve, 300));
    service.kill(name);
    const ended = await service.done;
    assert.equal(ended.timedOut, false);
    assert.equal(ended.code, code, ended.stderr);
    assert.ok(ended.ms < 15_000);
  });
}

test("what runs longer than the drain is given back before the process ends (RUN-08)", async () => {
  const service = child(script, ["forever", "100"]);
  await service.output("started");
  service.kill("SIGTERM");
  const { code, stdout, stderr } = await service.done;
  assert.equal(code, 0, stderr);
  assert.match(stdout, /\{"processed":0,"released":1,"settled":1\}/);
});

test("without shutdownSignal a signal ends the process as it always does (RUN-08)", async () => {
  const service = child(script, ["forever", "100", "none"]);
  await service.output("started");
  service.kill("SIGTERM");
  const { code, signal } = await service.done;
  assert.ok(signal === "SIGTERM" || code === 143, `${code} ${signal}`);
});

test("a disposed shutdownSignal leaves signals to others (RUN-08)", async () => {
  const service = child(script, ["0", "100", "dispose"]);
  await service.output("started");
  service.kill("SIGTERM");
  await service.output("disposed");
  service.kill("SIGTERM");
  const { code, signal } = await service.done;
  assert.ok(signal === "SIGTERM" || code === 143, `${code} ${signal}`);
});

test("shutdownSignal adds handlers only when called, and takes each away", () => {
  const count = () => process.listenerCount("SIGTERM") + process.listenerCount("SIGINT");
  const before = count();
  const both = shutdownSignal();
  const one = shutdownSignal({ signals: ["SIGTERM"] });
  assert.equal(count(), before + 3);
  both[Symbol.dispose]();
  one[Symbol.dispose]();
  assert.equal(count(), before);
  assert.equal(both.aborted, false);
});
