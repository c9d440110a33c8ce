import assert from "node:assert/strict";
import type { EdaError } from "../../core/errors.ts";
import { fresh, test, within } from "../support/test.ts";
import { VirtualClock } from "../support/virtual_clock.ts";
import { fixture, FixtureBroker, type FixtureBrokerOptions } from "./fixtures/fixture_broker.ts";

const here = (name: string): URL => new URL(`./fixtures/${name}`, import.meta.url);

/** The first call's error. */
async function startError(options: FixtureBrokerOptions): Promise<EdaError> {
  const broker = new FixtureBroker(options);
  const failing = broker.connect().then(() => undefined, (error: EdaError) => error);
  const error = await within(10_000, "the start to fail", failing);
  assert.notEqual(error, undefined, "it started");
  const publish = await broker.publish("t", { type: "n" }).then(() => undefined, (e: EdaError) => e.code);
  assert.equal(publish, error!.code, "a publish fails in the same way");
  await broker.close();
  return error!;
}

test("a worker file that throws while it loads is an error that says what to try, with the cause", async () => {
  const error = await startError({ worker: here("throwing_worker.js") });
  assert.equal(error.code, "worker-start-failed");
  assert.match(error.message, /worker option.*inline/s);
  assert.match(String((error.cause as Error).message), /thrown while the module loads|Script error|error/i);
});

test("a worker of another version of this package is refused by name", async () => {
  const error = await startError({ worker: here("foreign_worker.js") });
  assert.equal(error.code, "worker-start-failed");
  assert.match(String((error.cause as Error).message), /protocol version/);
});

test("a worker that never says that it is ready is given up when its time is over", async (context) => {
  const clock = new VirtualClock();
  const broker = fixture(context, { worker: here("silent_worker.js"), clock });
  const failing = broker.connect().then(() => undefined, (e: EdaError) => e);
  await clock.advance(19_000);
  let given = false;
  void failing.then(() => given = true);
  await clock.flush();
  assert.equal(given, false);
  await clock.advance(1_001);
  const error = await within(5_000, "the start to fail", failing);
  assert.equal(error?.code, "worker-start-failed");
  assert.match(String((error?.cause as Error).message), /within 20 s/);
  await broker.close();
});

test("a worker factory that answers a promise, nothing or something else is refused by name", async () => {
  for (const made of [Promise.resolve({}), undefined, 7, {}]) {
    const error = await startError({ worker: () => made });
    assert.equal(error.code, "invalid-option");
    assert.match(error.message, /^worker must be/);
  }
  const error = await startError({
    worker: () => {
      throw new Error("no workers today");
    },
  });
  assert.equal(error.code, "worker-start-failed");
  assert.match(String((error.cause as Error).message), /no workers today/);
});

test("a failed start may be followed by one that succeeds", async (context) => {
  let calls = 0;
  const broker = fixture(context, {
    worker: () => {
      if (++calls === 1) throw new Error("not yet");
      return start(here("fixture_worker.js"));
    },
  });
  await assert.rejects(broker.connect(), (error: EdaError) => error.code === "worker-start-failed");
  await broker.connect();
  await broker.close();
});

test("a replacement that cannot be started is tried again, later each time", async (context) => {
  let calls = 0;
  const broker = fixture(context, {
    session: { beatMs: 200 },
    worker: () => {
      calls++;
      if (calls === 2) throw new Error("not yet");
      return start(here(calls === 3 ? "throwing_worker.js" : "fixture_worker.js"));
    },
  });
  await broker.connect();
  await broker.publish("do-throw", { type: "n" }).catch(() => {});
  await within(10_000, "the replacement", broker.connect());
  assert.equal(calls, 4);
  await broker.close();
});

for (const isolation of ["worker", "inline"] as const) {
  test(`${isolation}: clientModule adds options that hold functions to those given`, async (context) => {
    const broker = fixture(context, { isolation, client: { db: 1 }, clientModule: here("client_module.ts") });
    const told = await broker.publish("do-tell-client", { type: "n" }).then(() => undefined, (e: EdaError) => e);
    assert.deepEqual(told?.details, { names: "db make token", made: "made by a function" });
    await broker.close();
  });

  test(`${isolation}: a clientModule without clientOptions(), that is not there, throws or answers no object is a typed error`, async () => {
    for (
      const [file, code, text] of [
        ["client_module_without.ts", "invalid-option", /clientModule must export a function clientOptions/],
        ["client_module_nowhere.ts", "invalid-option", /clientModule/],
        ["client_module_throws.ts", "invalid-option", /clientModule/],
        ["client_module_text.ts", "invalid-option", /clientOptions\(\) of clientModule must answer an object/],
      ] as const
    ) {
      const error = await startError({ isolation, clientModule: here(file) });
      assert.equal(error.code, code, file);
      assert.match(error.message, text, file);
      assert.ok(!JSON.stringify(error).includes("hunter2") && !error.message.includes("hunter2"));
    }
  });
}

test("worker, clientModule, isolation and keepAlive of the wrong type are refused by name, their values never shown", () => {
  for (
    const [name, value] of [
      ["worker", "hunter2.js"],
      ["worker", { hunter2: true }],
      ["clientModule", "hunter2.js"],
      ["clientModule", 7],
      ["isolation", "hunter2"],
      ["keepAlive", "hunter2"],
      ["maxStallMs", "hunter2"],
      ["maxStallMs", 0],
    ] as const
  ) {
    assert.throws(() => new FixtureBroker({ [name]: value } as never), (error: EdaError) => {
      assert.equal(error.code, "invalid-option", name);
      assert.ok(error.message.startsWith(name), error.message);
      assert.ok(!String(error.stack).includes("hunter2"), "the value is not shown");
      return true;
    });
  }
});

test("options that cannot be sent to a worker are refused by name before one is started (WRK-11)", () => {
  class Provider {
    readonly token = "hunter2";
    read(): string {
      return this.token;
    }
  }
  const controller = new AbortController();
  for (
    const [name, value] of [
      ["function", () => "hunter2"],
      ["nested", { deep: { very: () => {} } }],
      ["signal", controller.signal],
      ["promise", Promise.resolve("hunter2")],
      ["symbol", Symbol("hunter2")],
      ["instance", new Provider()],
      ["list", [1, new Provider()]],
    ] as const
  ) {
    let started = 0;
    const make = () => new FixtureBroker({ client: { plain: 1, [name]: value }, worker: () => void started++ });
    assert.throws(make, (error: EdaError) => {
      assert.equal(error.code, "invalid-option", name);
      assert.ok(error.message.startsWith(`client.${name} cannot be sent to a worker`), error.message);
      assert.match(error.message, /clientModule.*inline/s);
      assert.ok(!error.message.includes("hunter2"));
      return true;
    });
    assert.equal(started, 0);
  }
});

test("what does cross as it is, is not refused: dates, bytes, maps, plain objects, big numbers", async (context) => {
  const client = { date: new Date(0), bytes: new Uint8Array(2), map: new Map([[1, { a: [1n] }]]), none: null };
  const broker = fixture(context, { client });
  const told = await broker.publish("do-tell-client", { type: "n" }).then(() => undefined, (e: EdaError) => e);
  assert.equal(told?.details["names"], "bytes date map none");
  await broker.close();
});

test("inline, options that hold functions and live objects are passed on as they are", async (context) => {
  const broker = fixture(context, { isolation: "inline", client: { make: () => "live" } });
  const told = await broker.publish("do-tell-client", { type: "n" }).then(() => undefined, (e: EdaError) => e);
  assert.equal(told?.details["made"], "live");
  await broker.close();
});

test("an adapter's error with a circular cause, functions and a BigInt arrives typed, and nobody waits for ever (WRK-11)", async (context) => {
  const broker = fixture(context);
  const calls = broker.publish("do-fail-oddly", { type: "n" }).then(() => undefined, (e: EdaError) => e);
  const error = await within(5_000, "the answer", calls);
  assert.equal(error?.code, "publish-refused");
  assert.equal((error?.cause as { code?: string }).code, "E_BELOW");
  await broker.close();
});

test("something an adapter says that cannot leave its worker is counted, and the worker lives on (WRK-11)", async (context) => {
  const broker = fixture(context);
  await broker.publish("do-signal-oddly", { type: "n" });
  await broker.publish(fresh("t"), { type: "n" });
  assert.equal(broker.health().counters["not-cloneable"], 1);
  assert.equal(broker.health().counters["worker-restarts"], undefined);
  await broker.close();
});

/** A worker of the kind that this runtime has. */
function start(url: URL): unknown {
  const { Worker } = globalThis as { Worker?: new (url: string, options: { type: "module" }) => unknown };
  if (Worker !== undefined) return new Worker(url.href, { type: "module" });
  const { process } = globalThis as unknown as {
    process: { getBuiltinModule(name: string): { Worker: new (url: URL) => unknown } };
  };
  return new (process.getBuiltinModule("node:worker_threads").Worker)(url);
}
