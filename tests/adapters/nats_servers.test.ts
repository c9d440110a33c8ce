import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { createServer } from "node:net";
import { createTransport } from "../../adapters/nats/transport.ts";
import { connect } from "../../adapters/connect.ts";
import { type EdaError, isEdaError } from "../../core/errors.ts";
import { fresh, onServer, test, until } from "../support/test.ts";
import { assertFirstInOrder, Collector, events, natsBroker } from "./nats_rig.ts";
import { bodies, bodiesOf, hold, Listener, natsAdmin, natsNames, openNats, publish, Reader } from "./nats_support.ts";

const code = (wanted: string, text = /./) => (error: unknown): boolean =>
  isEdaError(error) && error.code === wanted && text.test(error.message) &&
  !/127\.0\.0\.1|secret|nats:\/\//.test(`${error.message} ${String((error as EdaError).cause)}`);

/** Numbers not yet seen. */
const missing = (seen: readonly number[], count: number): number[] =>
  Array.from({ length: count }, (_, n) => n).filter((n) => !seen.includes(n));

for (const name of ["nats", "nats29", "nats215"]) {
  onServer(name)("killed and started again on its files, nothing is lost, nothing settled comes again, order stands", {
    timeoutMs: 60_000,
  }, async (start, context) => {
    const server = await start();
    const topic = fresh("t");
    const publisher = natsBroker(context, { url: server.url });
    const broker = natsBroker(context, { url: server.url, prefetch: 8 });
    const collector = new Collector(context, broker, undefined, topic);
    await publisher.publishAll(topic, events(0, 30));
    await collector.has(Array.from({ length: 30 }, (_, n) => n));
    await until(async () => {
      const admin = await natsAdmin(context, server.url);
      return await admin.inFlight(topic, "billing") === 0;
    }, { what: "all is settled" });
    await server.kill();
    await until(() => !broker.healthy, { what: "health says so" });
    const from = performance.now();
    await server.restart();
    await until(() => publisher.publishAll(topic, events(30, 60)).then(() => true, () => false), {
      what: "publishing works again",
      timeoutMs: 20_000,
    });
    await collector.has(Array.from({ length: 60 }, (_, n) => n));
    assert.ok(performance.now() - from < 15_000);
    assert.deepEqual(missing(collector.numbers, 60), []);
    assert.equal(collector.numbers.filter((n) => n < 30).length, 30, "what was settled did not come again");
    assertFirstInOrder(collector.numbers);
  });
}

const withNats = onServer("nats");

for (const ordered of [true, false]) {
  withNats(
    `a memory stream that a restart emptied is made again and read from its start (${
      ordered ? "ordered" : "unordered"
    })`,
    { timeoutMs: 60_000 },
    async (start, context) => {
      const server = await start();
      const topic = fresh("t");
      const own = { url: server.url, storage: "memory", ordered } as const;
      const publisher = natsBroker(context, own);
      const broker = natsBroker(context, own);
      const collector = new Collector(context, broker, undefined, topic);
      await publisher.publishAll(topic, events(0, 10));
      await collector.has(Array.from({ length: 10 }, (_, n) => n));
      await server.kill();
      await server.restart();
      await until(() => publisher.publishAll(topic, events(10, 20)).then(() => true, () => false), {
        what: "publishing works again",
        timeoutMs: 20_000,
      });
      await collector.has(Array.from({ length: 20 }, (_, n) => n));
      assert.equal(new Set(collector.numbers).size, 20);
    },
  );
}

withNats("a server that freezes is noticed; when it goes on, consuming goes on in order", {
  timeoutMs: 60_000,
}, async (start, context) => {
  const server = await start();
  const topic = fresh("t");
  const times = { callTimeoutMs: 1_000, connectTimeoutMs: 1_000, publishTimeoutMs: 1_000 };
  const publisher = natsBroker(context, { url: server.url, ...times });
  const broker = natsBroker(context, { url: server.url, ...times, ownerLeaseMs: 1_500 });
  const collector = new Collector(context, broker, undefined, topic);
  await publisher.publishAll(topic, events(0, 20));
  await collector.has(Array.from({ length: 20 }, (_, n) => n));
  server.pause();
  await until(() => !broker.healthy, { what: "health says so", timeoutMs: 15_000 });
  server.resume();
  await until(() => publisher.publishAll(topic, events(20, 40)).then(() => true, () => false), {
    what: "publishing works again",
    timeoutMs: 20_000,
  });
  await collector.has(Array.from({ length: 40 }, (_, n) => n));
  assertFirstInOrder(collector.numbers);
  await until(() => broker.healthy, { what: "health is well again" });
});

withNats("a server in lame duck mode lets us go; the next host takes over without loss", {
  timeoutMs: 60_000,
}, async (start, context) => {
  const old = await start({
    files: { "nats.conf": 'lame_duck_grace_period: "1s"\nlame_duck_duration: "30s"\n' },
    args: ["-c", "{dir}/nats.conf"],
  });
  const topic = fresh("t");
  const publisher = natsBroker(context, { url: old.url });
  const broker = natsBroker(context, { url: old.url });
  const collector = new Collector(context, broker, undefined, topic);
  await publisher.publishAll(topic, events(0, 20));
  await collector.has(Array.from({ length: 20 }, (_, n) => n));
  process.kill(old.pid, "SIGUSR2");
  await until(() => !broker.healthy, { what: "the server closes the connection", timeoutMs: 40_000 });
  await old.restart();
  await until(() => publisher.publishAll(topic, events(20, 40)).then(() => true, () => false), {
    what: "publishing works again",
    timeoutMs: 20_000,
  });
  await collector.has(Array.from({ length: 40 }, (_, n) => n));
  assertFirstInOrder(collector.numbers);
});

withNats("of several hosts one that answers is enough, at the start and later", {
  timeoutMs: 60_000,
}, async (start, context) => {
  const server = await start();
  const url = `nats://127.0.0.1:1,127.0.0.1:${server.port}`;
  const broker = await connect(url, { source: "/s", group: "g", logger: false, adapter: { storage: "memory" } });
  context.cleanup(() => broker.close());
  for (let round = 0; round < 5; round++) await broker.publish("orders", { type: "t", data: round });
  await server.restart();
  await until(() => broker.publish("orders", { type: "t" }).then(() => true, () => false), { timeoutMs: 20_000 });
});

withNats(
  "TLS: a server is trusted by its authority, and not without",
  { timeoutMs: 30_000 },
  async (start, context) => {
    const server = await start({ tls: true });
    const ca = readFileSync(join(server.dir, "ca.crt"), "utf8");
    const topic = fresh("t");
    const broker = natsBroker(context, { url: server.url, client: { tls: { ca } } });
    const collector = new Collector(context, broker, undefined, topic);
    await broker.publishAll(topic, events(0, 200));
    await collector.has(Array.from({ length: 200 }, (_, n) => n));
    const distrusting = natsBroker(context, { url: server.url });
    await assert.rejects(distrusting.connect(), code("broker-unavailable"));
  },
);

withNats("wrong credentials are named as such, in time, and never shown", async (start, context) => {
  const server = await start({
    files: { "nats.conf": 'jetstream: enabled\nauthorization { users: [{user: u, password: "se:cret"}] }' },
    args: ["-c", "{dir}/nats.conf"],
  });
  const right = server.url.replace("://", "://u:se%3Acret@");
  const broker = natsBroker(context, { url: right, isolation: "inline" });
  await broker.publish(fresh("t"), { type: "t" });
  for (const url of [server.url.replace("://", "://u:secret@"), server.url]) {
    const wrong = natsBroker(context, { url, isolation: "inline" });
    await assert.rejects(wrong.connect(), code("authentication-failed"));
    await assert.rejects(wrong.publish(fresh("t"), { type: "t" }), code("authentication-failed"));
  }
});

withNats("rights for the subjects of one topic are enough; a right that is missing is named at once", {
  timeoutMs: 30_000,
}, async (start, context) => {
  const rights = [
    "orders.>",
    "$JS.API.STREAM.INFO.orders",
    "$JS.API.STREAM.CREATE.orders",
    "$JS.API.CONSUMER.*.orders.>",
    "$JS.API.CONSUMER.MSG.NEXT.orders.>",
    "$JS.API.CONSUMER.NAMES.orders",
    "$JS.ACK.orders.>",
    "$KV.xsm.>",
    "$JS.API.STREAM.INFO.KV_xsm",
    "$JS.API.STREAM.CREATE.KV_xsm",
    "$JS.API.STREAM.MSG.GET.KV_xsm",
  ].map((right) => `"${right}"`).join(", ");
  const server = await start({
    files: {
      "nats.conf": `jetstream: enabled\nauthorization { users: [
        {user: some, password: p, permissions: {publish: [${rights}], subscribe: ["_INBOX.>"]}},
        {user: few, password: p, permissions: {publish: ["orders.>", "$JS.API.STREAM.INFO.orders"], subscribe: ["_INBOX.>"]}},
        {user: none, password: p, permissions: {publish: ["orders.>"], subscribe: ["other.>"]}}] }`,
    },
    args: ["-c", "{dir}/nats.conf"],
  });
  const as = (user: string): string => server.url.replace("://", `://${user}:p@`);
  const some = await openNats(context, { url: as("some") });
  await publish(some.transport, "orders", ["m1"]);
  const reader = new Reader(some.transport, "orders", "billing");
  const raws = await reader.take(1);
  assert.deepEqual(await reader.ack(raws), ["settled"]);
  const from = performance.now();
  const few = await openNats(context, { url: as("few") });
  await assert.rejects(
    new Reader(few.transport, "orders", "billing").fetch(1_000),
    code("authentication-failed", /right/),
  );
  await publish(few.transport, "orders", ["m2"]);
  await assert.rejects(few.transport.send("other", [{ body: "m" }]), code("authentication-failed", /right/));
  const none = await openNats(context, { url: as("none") });
  await assert.rejects(none.transport.send("orders", [{ body: "m3" }]), code("authentication-failed", /right/));
  assert.ok(performance.now() - from < 4_000, "no deadline was waited for");
});

withNats("credentials that a restart made wrong are named as such", { timeoutMs: 30_000 }, async (start, context) => {
  const users = (password: string): string =>
    `jetstream: enabled\nauthorization { users: [{user: u, password: ${password}}] }`;
  const server = await start({ files: { "nats.conf": users("one") }, args: ["-c", "{dir}/nats.conf"] });
  const broker = natsBroker(context, { url: server.url.replace("://", "://u:one@"), isolation: "inline" });
  await broker.publish("orders", { type: "t" });
  await server.stop();
  await start({ port: server.port, files: { "nats.conf": users("two") }, args: ["-c", "{dir}/nats.conf"] });
  await until(() => broker.publish("orders", { type: "t" }).then(() => false, code("authentication-failed")), {
    what: "the credentials are refused",
  });
});

withNats("nobody there, a silent server and one that speaks otherwise are unavailable by their deadline", async (
  start,
  context,
) => {
  const server = await start();
  server.pause();
  context.cleanup(() => server.resume());
  const http = createServer((socket) => void socket.end("HTTP/1.1 200 OK\r\n\r\n").on("error", () => {}));
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  context.cleanup(() => new Promise<void>((resolve) => http.close(() => resolve())));
  const { port } = http.address() as { port: number };
  for (const url of ["nats://127.0.0.1:1", server.url, `nats://127.0.0.1:${port}`, "nats://no.such.host.invalid"]) {
    const transport = await createTransport({ url, connectTimeoutMs: 600 });
    const from = performance.now();
    await assert.rejects(transport.open(new Listener()), code("broker-unavailable"));
    assert.ok(performance.now() - from < 2_500);
    await transport.close();
  }
});

test("nats: a server that is too old is refused, with the version found and the version needed", async (context) => {
  const info = { server_id: "x", version: "2.8.4", proto: 1, max_payload: 1_048_576, headers: true, jetstream: true };
  const old = createServer((socket) => {
    socket.on("error", () => {});
    socket.write(`INFO ${JSON.stringify(info)}\r\n`);
    socket.on("data", (bytes) => String(bytes).includes("PING") && socket.write("PONG\r\n"));
  });
  await new Promise<void>((resolve) => old.listen(0, "127.0.0.1", resolve));
  context.cleanup(() => new Promise<void>((resolve) => old.close(() => resolve())));
  const { port } = old.address() as { port: number };
  const transport = await createTransport({ url: `nats://127.0.0.1:${port}` });
  context.cleanup(() => transport.close());
  await assert.rejects(transport.open(new Listener()), code("server-unsupported", /2\.8\.4.*2\.9/));
});

withNats("a server whose JetStream is off is named", async (start, context) => {
  const { stop, port } = await bare(start);
  context.cleanup(stop);
  const transport = await createTransport({ url: `nats://127.0.0.1:${port}` });
  context.cleanup(() => transport.close());
  await assert.rejects(transport.open(new Listener()), code("server-unsupported", /JetStream is not enabled/));
});

/** A server in front of which JetStream is hidden: a fake that greets as one without it, and answers as one. */
async function bare(_start: unknown): Promise<{ port: number; stop: () => Promise<void> }> {
  const info = { server_id: "x", version: "2.10.0", proto: 1, max_payload: 1_048_576, headers: true };
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.write(`INFO ${JSON.stringify(info)}\r\n`);
    let text = "";
    socket.on("data", (bytes) => {
      text += String(bytes);
      if (text.includes("PING")) {
        text = text.replaceAll("PING\r\n", "");
        socket.write("PONG\r\n");
      }
      const asked = /PUB \$JS\.API\.INFO (\S+) 0\r\n/.exec(text);
      if (asked === null) return;
      text = "";
      const status = "NATS/1.0 503\r\n\r\n";
      socket.write(`HMSG ${asked[1]} 1 ${status.length} ${status.length}\r\n${status}\r\n`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return { port, stop: () => new Promise((resolve) => server.close(() => resolve())) };
}

withNats("closing while connecting takes no time, and leaves no socket", async (start, context) => {
  const server = await start();
  server.pause();
  context.cleanup(() => server.resume());
  for (const end of ["close", "reset"] as const) {
    const transport = await createTransport({ url: server.url, connectTimeoutMs: 20_000 });
    const opening = transport.open(new Listener());
    const refused = assert.rejects(opening, code("broker-unavailable"));
    await hold(200);
    const from = performance.now();
    transport[end]("a test");
    await refused;
    assert.ok(performance.now() - from < 300);
    await transport.close();
  }
});

withNats("a reset destroys the connection at once, also of a server that is silent", async (start, context) => {
  const server = await start();
  const n = natsNames();
  const { transport, listener } = await openNats(context, { url: server.url });
  const reader = new Reader(transport, n.topic, n.group);
  await publish(transport, n.topic, bodies(1, 2), "a");
  await reader.take(1, 5_000, 1);
  server.pause();
  const waiting = reader.fetch(5_000);
  const sending = transport.send(n.topic, [{ body: "m9" }]);
  const from = performance.now();
  transport.reset("a test");
  const [got, sent] = await Promise.allSettled([waiting, sending]);
  assert.ok(performance.now() - from < 300);
  assert.ok(got.status === "rejected" || bodiesOf(got.value).length <= 1);
  assert.equal(sent.status === "fulfilled" && (sent.value[0] as EdaError).code, "outcome-unknown");
  server.resume();
  await transport.open(listener);
});
