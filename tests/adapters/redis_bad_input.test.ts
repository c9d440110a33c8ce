import assert from "node:assert/strict";
import { createServer, type Server, type Socket } from "node:net";
import { RedisStreamsBroker, type RedisStreamsBrokerOptions } from "../../adapters/redis/mod.ts";
import type { EdaError, ErrorCode } from "../../core/errors.ts";
import { fresh, onLeg, onServer, test, type TestContext, within } from "../support/test.ts";
import { assertTyped, SECRET } from "./redis_bad_input_rig.ts";
import { admin } from "./redis_support.ts";

const onRedis = onLeg("redis");
const onOwn = onServer("redis");
const ISOLATIONS = ["worker", "inline"] as const;

function make(context: TestContext, options: RedisStreamsBrokerOptions): RedisStreamsBroker {
  const broker = new RedisStreamsBroker({ group: "g", source: "/bad", logger: false, prefix: fresh("t"), ...options });
  context.cleanup(() => broker.close({ drainMs: 500 }));
  return broker;
}

/** Every way in fails with the same typed error, within its time: nothing hangs, and no consumer spins. */
async function failsEverywhere(
  broker: RedisStreamsBroker,
  code: ErrorCode,
  says: RegExp,
  withinMs = 5_000,
): Promise<void> {
  const ways: Record<string, () => Promise<unknown>> = {
    connect: () => broker.connect(),
    publish: () => broker.publish("orders", { type: "n" }),
    publishAll: () =>
      broker.publishAll("orders", [{ type: "n" }]).catch((error) => {
        throw error.outcomes?.[0]?.error ?? error;
      }),
    subscribe: () => broker.subscribe("orders")[Symbol.asyncIterator]().next(),
  };
  for (const [name, run] of Object.entries(ways)) {
    const error = await within(withinMs, name, run().then(() => undefined, (error: unknown) => error));
    assert.notEqual(error, undefined, `${name} went through`);
    assertTyped(error, code, says);
  }
  await within(3_000, "close", broker.close());
}

test("an unknown option is refused by name, with the one that was probably meant and where options of the client go", () => {
  const cases: readonly (readonly [object, RegExp])[] = [
    [{ passwordd: SECRET }, /unknown option "passwordd".*options of ioredis go into client/],
    [{ urll: SECRET }, /unknown option "urll"; did you mean "url"\?/],
    [{ prefech: 1, sorce: SECRET }, /unknown options "prefech", "sorce"/],
    [{ retryStrategy: () => SECRET }, /unknown option "retryStrategy"/],
  ];
  for (const [options, says] of cases) {
    assert.throws(() => new RedisStreamsBroker(options), (error) => {
      assertTyped(error, "invalid-option", says);
      return true;
    });
  }
});

test("an option of the wrong type or out of range is refused by name when the broker is made, its value never shown", () => {
  const cases: readonly (readonly [string, unknown])[] = [
    ["url", 7],
    ["url", SECRET],
    ["url", `http://user:${SECRET}@${SECRET}`],
    ["prefix", ""],
    ["prefix", `${SECRET}\n`],
    ["ordered", SECRET],
    ["partitions", 0],
    ["partitions", 1.5],
    ["partitions", SECRET],
    ["minIdleMs", -1],
    ["blockMs", 3_000],
    ["ownerLeaseMs", NaN],
    ["retentionMs", 1],
    ["unsafeMaxLen", 0],
    ["consumer", ""],
    ["client", SECRET],
    ["client", { lazyConnect: SECRET }],
    ["client", { keyPrefix: SECRET }],
    ["group", 7],
    ["group", `${SECRET}\u0000`],
    ["source", 7],
    ["topics", SECRET],
    ["prefetch", 0],
    ["prefetch", SECRET],
    ["maxBytes", 1],
    ["publishTimeoutMs", 0],
    ["connectTimeoutMs", Infinity],
    ["callTimeoutMs", SECRET],
    ["deadLetters", { record: SECRET }],
    ["keepCorruptBodies", SECRET],
    ["logger", SECRET],
    ["onDisconnect", SECRET],
    ["onReconnect", {}],
    ["onSettleError", 1],
    ["onUndecodable", SECRET],
    ["clock", SECRET],
    ["isolation", SECRET],
    ["worker", SECRET],
    ["clientModule", SECRET],
    ["maxStallMs", 1],
    ["keepAlive", SECRET],
  ];
  for (const [name, value] of cases) {
    assert.throws(() => new RedisStreamsBroker({ [name]: value } as never), (error) => {
      assertTyped(error, "invalid-option", new RegExp(`^${name}\\b`));
      return true;
    }, name);
  }
  for (const options of [null, [], SECRET, 7]) {
    assert.throws(() => new RedisStreamsBroker(options as never), (error) => {
      assertTyped(error, "invalid-option", /options must be an object/);
      return true;
    });
  }
});

test("calls without a group, with a bad name or number are refused by name and leave the broker as it was", async (context) => {
  const broker = make(context, { url: "redis://127.0.0.1:1" });
  const groupless = new RedisStreamsBroker({ url: "redis://127.0.0.1:1" });
  assert.throws(() => groupless.subscribe("orders"), (error) => {
    assertTyped(error, "invalid-option", /^group is missing: name the consumer group/);
    return true;
  });
  await groupless.close();
  for (
    const [topic, options, says] of [
      ["", {}, /^topic/],
      [`${SECRET}\n`, {}, /^topic/],
      ["orders", { group: "" }, /^group/],
      ["orders", { prefetch: 0 }, /^prefetch/],
      ["orders", { prefetch: 10_001 }, /^prefetch/],
      ["orders", { idleMs: -1 }, /^idleMs/],
      ["orders", { idleMs: SECRET }, /^idleMs/],
    ] as const
  ) {
    assert.throws(() => broker.subscribe(topic, options as never), (error) => {
      assertTyped(error, "invalid-option", says);
      return true;
    });
  }
  for (const drainMs of [-1, NaN, SECRET, 600_001]) {
    const error = await broker.close({ drainMs: drainMs as never }).then(() => undefined, (error: unknown) => error);
    assertTyped(error, "invalid-option", /^drainMs/);
  }
  assert.equal(broker.health().status, "idle", "none of it reached for the server");
});

for (const isolation of ISOLATIONS) {
  test(
    `${isolation}: a URL that ioredis cannot use is a typed error that does not quote it`,
    { timeoutMs: 60_000 },
    async (context) => {
      for (
        const url of [
          `redis://user:${SECRET}@127.0.0.1:99999/`,
          `redis://:${SECRET}@`,
          `redis://${SECRET}:${SECRET}:${SECRET}/x`,
          `redis://%zz:${SECRET}@127.0.0.1:1`,
          `rediss://[${SECRET}`,
          `redis://127.0.0.1:1/${SECRET}`,
        ]
      ) {
        const broker = make(context, { isolation, url, connectTimeoutMs: 1_000, callTimeoutMs: 1_000 });
        const failing = broker.connect().then(() => undefined, (error: EdaError) => error);
        const error = await within(4_000, "connect", failing);
        assert.ok(error?.code === "invalid-option" || error?.code === "broker-unavailable", String(error?.code));
        assertTyped(error, error.code, /url|not connected/);
        await broker.close();
      }
    },
  );

  test(`${isolation}: no server at the address: unavailable at once, retriable, and nothing goes on behind it (RUN-01)`, async (context) => {
    const broker = make(context, { isolation, url: `redis://user:${SECRET}@127.0.0.1:1` });
    const start = performance.now();
    await failsEverywhere(broker, "broker-unavailable", /Redis is not connected/);
    assert.ok(performance.now() - start < 5_000);
  });

  test(
    `${isolation}: a host that does not resolve: unavailable, its name not shown`,
    { timeoutMs: 60_000 },
    async (context) => {
      const broker = make(context, {
        isolation,
        url: `redis://user:${SECRET}@${SECRET}.invalid:6379`,
        connectTimeoutMs: 3_000,
      });
      await failsEverywhere(broker, "broker-unavailable", /Redis is not connected|did not settle/, 4_000);
    },
  );

  test(`${isolation}: a server that accepts and never answers: unavailable by the deadline, for every call (RUN-01)`, {
    timeoutMs: 60_000,
  }, async (context) => {
    const { url } = await listen(context, () => {});
    const broker = make(context, { isolation, url, connectTimeoutMs: 800 });
    // The first call starts the worker too, which takes its own time.
    await assert.rejects(broker.connect());
    for (const call of [() => broker.connect(), () => broker.publish("orders", { type: "n" })]) {
      const start = performance.now();
      const error = await call().then(() => undefined, (error: unknown) => error);
      const tookMs = performance.now() - start;
      assertTyped(error, "broker-unavailable", /Redis is not connected|did not settle/);
      assert.ok(tookMs < 800 + 500, `it took ${Math.round(tookMs)} ms: ${String(error)}`);
    }
    await within(2_000, "close", broker.close());
  });

  test(
    `${isolation}: something that is no Redis, and a Redis that is too old, are told apart by their errors (RED-13)`,
    { timeoutMs: 60_000 },
    async (context) => {
      const web = await listen(context, (socket) => {
        socket.on("data", () => socket.end(`HTTP/1.1 400 Bad Request\r\nX: ${SECRET}\r\n\r\n`));
      });
      const broker = make(context, { isolation, url: web.url, connectTimeoutMs: 1_500 });
      await failsEverywhere(broker, "broker-unavailable", /Redis is not connected|did not settle|refused/);

      let commands = 0;
      const old = await listen(context, (socket) => {
        const text = "# Server\r\nredis_version:5.0.14\r\n";
        socket.on("data", (data) => {
          for (const [, name] of String(data).matchAll(/\r\n(AUTH|INFO|CLIENT|SCRIPT)(?=\r\n)/gi)) {
            commands++;
            const answers: Record<string, string> = { AUTH: "+OK\r\n", INFO: `$${text.length}\r\n${text}\r\n` };
            socket.write(answers[name!.toUpperCase()] ?? "-ERR syntax error\r\n");
          }
        });
      });
      const late = make(context, { isolation, url: old.url, connectTimeoutMs: 1_500 });
      await failsEverywhere(late, "server-unsupported", /Redis 5\.0\.14; 6\.2 or later is needed/);
      const after = commands;
      await new Promise((resolve) => setTimeout(resolve, 500));
      assert.equal(commands, after, "nothing is tried again behind the caller's back");
    },
  );

  test(`${isolation}: a worker that cannot start, and a client module that is none, name the option`, async (context) => {
    if (isolation === "worker") {
      const nowhere = new URL(`./${SECRET}.js`, import.meta.url);
      const broker = make(context, { url: `redis://:${SECRET}@127.0.0.1:1`, worker: nowhere });
      const error = await broker.connect().then(() => undefined, (error: EdaError) => error);
      assert.equal(error?.code, "worker-start-failed");
      assert.match(String(error?.message), /worker option.*inline/s);
      assert.ok(!String(error?.message).includes(SECRET));
    }
    const broker = make(context, {
      isolation,
      url: "redis://127.0.0.1:1",
      clientModule: new URL("./redis_support.ts", import.meta.url),
    });
    await failsEverywhere(broker, "invalid-option", /clientModule must export a function clientOptions/);
  });

  onOwn(`${isolation}: a wrong password and an unknown user are refused as such, once, by every call`, {
    timeoutMs: 60_000,
  }, async (start, context) => {
    const server = await start({ args: ["--requirepass", "right"] });
    const client = await admin(context, server.url, { password: "right" });
    const failures = async (): Promise<number> => {
      const info = String(await client.call("INFO", "stats"));
      return Number(/acl_access_denied_auth:(\d+)/.exec(info)?.[1] ?? 0);
    };
    const address = server.url.slice("redis://".length);
    const urls = [`redis://:${SECRET}@${address}`, `redis://nobody:${SECRET}@${address}`, server.url];
    for (const url of urls) {
      const before = await failures();
      const broker = make(context, { isolation, url });
      await failsEverywhere(broker, "authentication-failed", /Redis refused the user name or password/);
      const tried = await failures() - before;
      assert.ok(tried <= 8, `${tried} tries for 4 calls`);
      await new Promise((resolve) => setTimeout(resolve, 300));
      assert.ok(await failures() - before <= tried, "it goes on trying");
    }
    const given = make(context, { isolation, url: server.url, client: { password: SECRET } });
    await failsEverywhere(given, "authentication-failed", /Redis refused the user name or password/);
    const right = make(context, { isolation, url: server.url, client: { password: "right" } });
    await right.publish("orders", { type: "n" });
  });

  onOwn(`${isolation}: a user without permissions is told which command it may not run; with them it works`, {
    timeoutMs: 60_000,
  }, async (start, context) => {
    const server = await start();
    const client = await admin(context, server.url);
    await client.call("ACL", "SETUSER", "limited", "on", `>${SECRET}`, "~other:*", "~{other:*", "+@all");
    const url = server.url.replace("redis://", `redis://limited:${SECRET}@`);
    const broker = make(context, { isolation, url });
    await broker.connect();
    const ways: Record<string, () => Promise<unknown>> = {
      publish: () => broker.publish("orders", { type: "n" }),
      subscribe: () => broker.subscribe("orders")[Symbol.asyncIterator]().next(),
    };
    for (const [name, run] of Object.entries(ways)) {
      const error = await within(5_000, name, run().then(() => undefined, (error: unknown) => error));
      assertTyped(error, "authentication-failed", /lacks a right|may not run|refused/);
    }
    const allowed = make(context, { isolation, url, prefix: "other:x" });
    await allowed.publish("orders", { type: "n", data: 1 });
    for await (const delivery of allowed.subscribe("orders", { idleMs: 0 })) {
      assert.equal(await delivery.ack({ confirm: true }), "settled");
    }
  });

  onOwn(`${isolation}: rights for the keys of one topic are enough for that topic`, {
    timeoutMs: 60_000,
  }, async (start, context) => {
    const server = await start();
    const client = await admin(context, server.url);
    const keys = ["~xsm:stream:orders", "~{xsm:stream:orders}:*"];
    await client.call("ACL", "SETUSER", "narrow", "on", `>${SECRET}`, ...keys, "+@all");
    const url = server.url.replace("redis://", `redis://narrow:${SECRET}@`);
    const broker = make(context, { isolation, url, prefix: "xsm" });
    await broker.publish("orders", { type: "n", data: 1 });
    for await (const delivery of broker.subscribe("orders", { idleMs: 0 })) {
      assert.equal(await delivery.ack({ confirm: true }), "settled");
    }
  });

  onRedis(
    `${isolation}: an envelope that is too large or malformed is refused unsent, and health stays well`,
    async ({ url }, context) => {
      const prefix = fresh("t");
      const broker = make(context, { isolation, url, prefix, maxBytes: 2_000 });
      const client = await admin(context, url);
      await broker.connect();
      const cases: readonly (readonly [unknown, ErrorCode, RegExp])[] = [
        [{ type: "n", data: SECRET.repeat(500) }, "envelope-too-large", /maxBytes/],
        [{ type: "" }, "envelope-invalid", /type/],
        [{ type: "n", id: 7 }, "envelope-invalid", /id/],
        [{ type: "n", source: "" }, "envelope-invalid", /source/],
        [{ type: "n", time: SECRET }, "envelope-invalid", /time/],
        [{ type: "n", [SECRET.toUpperCase()]: SECRET }, "envelope-invalid", /./],
        [null, "envelope-invalid", /./],
        [7, "envelope-invalid", /./],
      ];
      for (const [message, code, says] of cases) {
        const error = await broker.publish("orders", message as never).then(() => undefined, (error: unknown) => error);
        assert.notEqual(error, undefined);
        assert.equal((error as EdaError).code, code);
        assert.match((error as EdaError).message, says);
        assert.ok(!(error as EdaError).message.includes(SECRET), (error as EdaError).message);
      }
      assert.equal(await client.call("XLEN", `${prefix}:stream:orders`), 0);
      assert.equal(broker.healthy, true);
      await broker.publish("orders", { type: "n" });
      assert.equal(await client.call("XLEN", `${prefix}:stream:orders`), 1);
    },
  );
}

/** A server that does with each connection what `talk` says. */
async function listen(context: TestContext, talk: (socket: Socket) => void): Promise<{ url: string }> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    talk(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.cleanup(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return { url: `redis://:${SECRET}@127.0.0.1:${(server.address() as { port: number }).port}` };
}
