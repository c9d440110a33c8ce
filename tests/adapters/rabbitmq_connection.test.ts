import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { RabbitMqBroker } from "../../adapters/rabbitmq/mod.ts";
import { createTransport } from "../../adapters/rabbitmq/transport.ts";
import type { EdaError } from "../../core/errors.ts";
import { onLeg, onServer, startProxy, test, type TestContext, until, within } from "../support/test.ts";
import { dataOf, evaluate, event, names, openTransport, publishNumbers, rawClient } from "./rabbitmq_support.ts";
import { Listener, Reader } from "./transport_support.ts";

/** A server that answers every connection with `greet`; counts them. */
async function fakeServer(
  context: TestContext,
  greet: (socket: Socket) => void,
): Promise<{ url: string; open: () => number }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    socket.resume();
    greet(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.cleanup(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return { url: `amqp://127.0.0.1:${(server.address() as { port: number }).port}`, open: () => sockets.size };
}

/** Opens a transport that cannot be opened; answers why. */
async function whyNot(context: TestContext, options: Parameters<typeof createTransport>[0]): Promise<EdaError> {
  const transport = await createTransport(options);
  context.cleanup(() => transport.close());
  try {
    await transport.open(new Listener());
  } catch (error) {
    return error as EdaError;
  }
  throw new Error("The transport could be opened");
}

/** All that an error says, its causes included. */
function said(error: unknown): string {
  const { message, cause, details } = error as EdaError & { readonly cause?: unknown };
  return `${message} ${JSON.stringify(details ?? {})} ${cause === undefined ? "" : said(cause)}`;
}

test("rabbitmq: a server that speaks nonsense, closes or says nothing is unavailable, and no socket stays (AMQ-12, AMQ-13)", async (context) => {
  for (
    const greet of [
      (socket: Socket) => void socket.write(new Uint8Array([9, 8, 7, 6, 5, 4, 3, 2])),
      (socket: Socket) => void socket.end(),
      (socket: Socket) => void socket.destroy(),
      () => {},
    ]
  ) {
    const server = await fakeServer(context, greet);
    const transport = await createTransport({ url: server.url, connectTimeoutMs: 300 });
    for (let round = 0; round < 3; round++) {
      await assert.rejects(
        within(2_000, "the deadline", transport.open(new Listener())),
        (error: EdaError) => error.code === "broker-unavailable",
      );
    }
    await until(() => server.open() === 0, { what: "the sockets to be closed" });
    await transport.close();
  }
});

test("rabbitmq: nobody there is unavailable, and neither error nor cause says where", async (context) => {
  const error = await whyNot(context, { url: "amqp://secretuser:secretpw@127.0.0.1:1/secretvhost" });
  assert.equal(error.code, "broker-unavailable");
  assert.ok(!/secret|127\.0\.0\.1/.test(said(error)), said(error));
});

onLeg("rabbitmq")(
  "handshakes that come too late leave no connection behind (AMQ-13)",
  { timeoutMs: 40_000 },
  async (leg, context) => {
    const proxy = await startProxy({ port: Number(new URL(leg.url).port) });
    context.cleanup(() => proxy.close());
    await proxy.delay(1_500);
    const transport = await createTransport({ url: proxy.url(leg.url), connectTimeoutMs: 700 });
    context.cleanup(() => transport.close());
    const listener = new Listener();
    for (let round = 0; round < 3; round++) await assert.rejects(transport.open(listener));
    await proxy.heal();
    await until(() => transport.open(listener).then(() => true, () => false));
    await until(async () => (await proxy.counts()).open === 1, { what: "one connection" });
  },
);

onLeg("rabbitmq")(
  "wrong password, wrong virtual host: named as what they are, without a secret",
  async (leg, context) => {
    const { host } = new URL(leg.url);
    const password = await whyNot(context, { url: `amqp://guest:secret-password@${host}` });
    assert.equal(password.code, "authentication-failed");
    assert.match(password.message, /user name or password/);
    const vhost = await whyNot(context, { url: `amqp://${host}/secret-vhost` });
    assert.equal(vhost.code, "authentication-failed");
    assert.match(vhost.message, /virtual host/);
    assert.ok(!/secret|guest/.test(said(password) + said(vhost)));
  },
);

onServer("rabbitmq")("a user without rights is told which; with create: false, reading rights are enough", {
  timeoutMs: 60_000,
}, async (start, context) => {
  const server = await start();
  const { topic, group } = names();
  const maker = await openTransport(context, { url: server.url });
  await new Reader(maker.transport, topic, group).fetch();
  await publishNumbers(maker.transport, topic, 1, 1);
  await maker.transport.close();
  await evaluate(
    server,
    'rabbit_auth_backend_internal:add_user(<<"reader">>, <<"pw">>, <<"test">>), ' +
      'rabbit_auth_backend_internal:set_permissions(<<"reader">>, <<"/">>, <<"^$">>, <<"^$">>, <<".*">>, <<"test">>).',
  );
  const url = server.url.replace("amqp://", "amqp://reader:pw@");
  const one = await openTransport(context, { url });
  const denied = (error: EdaError): boolean =>
    error.code === "authentication-failed" && error.message.includes("create: false") && !/reader|pw/.test(said(error));
  await assert.rejects(new Reader(one.transport, topic, group).fetch(), denied);
  await assert.rejects(one.transport.send(topic, [event(1)]), denied);
  const two = await openTransport(context, { url, create: false });
  const reader = new Reader(two.transport, topic, group);
  const raws = await reader.take(1);
  assert.deepEqual(await reader.ack(raws), ["settled"]);
  const [refused] = await two.transport.send(topic, [event(1)]);
  assert.equal((refused as EdaError).code, "authentication-failed");
});

onServer("rabbitmq")(
  "partitions without the plugin are refused by its name",
  { timeoutMs: 60_000 },
  async (start, context) => {
    const server = await start({ files: { enabled_plugins: "[].\n" } });
    const { topic, group } = names();
    const { transport } = await openTransport(context, { url: server.url, partitions: 4 });
    await assert.rejects(
      new Reader(transport, topic, group).fetch(),
      (error: EdaError) =>
        error.code === "server-unsupported" && error.message.includes("rabbitmq_consistent_hash_exchange"),
    );
    const plain = await openTransport(context, { url: server.url });
    await publishNumbers(plain.transport, names().topic, 1, 1);
  },
);

onLeg("rabbitmq")("names that AMQP does not take are refused before anything is sent", async (leg, context) => {
  const { transport } = await openTransport(context, { url: leg.url });
  for (const topic of ["ü".repeat(200), "a::b", "amq.topic"]) {
    await assert.rejects(transport.send(topic, [event(1)]), (error: EdaError) => error.code === "invalid-option");
  }
  const odd = "a b/%#*.é😀";
  await publishNumbers(transport, odd, 1, 1);
  const reader = new Reader(transport, odd, "group with spaces");
  assert.equal((await reader.take(1)).length >= 1, true);
  const raw = await rawClient(context, leg.url);
  await raw.channel((channel) => channel.deleteQueue(odd));
  await raw.channel((channel) => channel.deleteExchange(odd));
  for (const record of ["partitions", "group"]) {
    await raw.channel((channel) => channel.deleteExchange(`${odd}::${record}`));
  }
});

onLeg("rabbitmq")("after close nothing connects any more, and closing twice is fine (AMQ-14)", async (leg, context) => {
  const { topic, group } = names();
  const proxy = await startProxy({ port: Number(new URL(leg.url).port) });
  context.cleanup(() => proxy.close());
  const signals: string[] = [];
  const broker = new RabbitMqBroker({
    url: proxy.url(leg.url),
    group,
    source: "/t",
    isolation: "inline",
    logger: false,
    onDisconnect: () => void signals.push("disconnect"),
  });
  await broker.publish(topic, { type: "n", data: 1 });
  const stream = broker.subscribe(topic)[Symbol.asyncIterator]();
  await (await stream.next()).value!.ack({ confirm: true });
  const waiting = stream.next();
  await Promise.all([broker.close(), broker.close()]);
  assert.deepEqual(await waiting, { done: true, value: undefined });
  await until(async () => (await proxy.counts()).open === 0);
  const { accepted } = await proxy.counts();
  assert.equal(accepted, 2, "one for publishing, one for the rest");
  // Longer than any backoff of ours at this point.
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  assert.equal((await proxy.counts()).accepted, accepted);
  assert.deepEqual(signals, []);
});

onLeg("rabbitmq")(
  "a silent network: within two heartbeats and five seconds after it ends the queue has its consumer again (AMQ-16)",
  { timeoutMs: 60_000 },
  async (leg, context) => {
    const { topic, group } = names();
    const proxy = await startProxy({ port: Number(new URL(leg.url).port) });
    context.cleanup(() => proxy.close());
    const broker = new RabbitMqBroker({
      url: proxy.url(leg.url),
      group,
      source: "/t",
      heartbeatMs: 2_000,
      connectTimeoutMs: 1_000,
      isolation: "inline",
      logger: false,
    });
    context.cleanup(() => broker.close());
    const seen: unknown[] = [];
    const reading = (async () => {
      for await (const delivery of broker.subscribe(topic)) {
        seen.push(delivery.envelope.data);
        await delivery.ack();
      }
    })();
    await broker.publish(topic, { type: "n", data: 0 });
    await until(() => seen.length === 1);
    await proxy.blackHole();
    await until(() => !broker.healthy, { timeoutMs: 15_000, what: "the heartbeat to be missed" });
    const direct = await openTransport(context, { url: leg.url });
    await publishNumbers(direct.transport, topic, 1, 1);
    await proxy.heal();
    await until(() => seen.includes(1), { timeoutMs: 7_000, what: "the event published meanwhile" });
    const raw = await rawClient(context, leg.url);
    await until(async () => (await raw.channel((channel) => channel.checkQueue(topic))).consumerCount === 1, {
      timeoutMs: 15_000,
      what: "one consumer",
    });
    await broker.close();
    await reading;
  },
);

const sizes = [1, 100, 4_096, 131_072, 300_000];

async function bytesArrive(context: TestContext, options: Parameters<typeof createTransport>[0]): Promise<void> {
  const { topic, group } = names();
  const { transport } = await openTransport(context, options);
  const sent = Array.from(
    { length: 100 },
    (_, n) => event("é".repeat(1) + "x".repeat(sizes[n % sizes.length]! + n), `s${n}`),
  );
  const failed = (await transport.send(topic, sent)).filter((outcome) => outcome !== undefined);
  assert.deepEqual(failed, []);
  const reader = new Reader(transport, topic, group);
  const raws = await reader.take(100);
  const bodies = new Set(raws.map(({ body }) => new TextDecoder().decode(body as Uint8Array)));
  assert.deepEqual(bodies, new Set(sent.map(({ body }) => body)));
  assert.deepEqual(await reader.ack(raws), raws.map(() => "settled"));
}

onLeg("rabbitmq")("100 events of 1 B to 300 kB arrive byte by byte over amqp (RUN-04)", async (leg, context) => {
  await bytesArrive(context, { url: leg.url });
});

for (const name of ["rabbitmq", "rabbitmq310"]) {
  onServer(name)("100 events of 1 B to 300 kB arrive byte by byte over amqps; a wrong authority is refused (RUN-04)", {
    timeoutMs: 60_000,
  }, async (start, context) => {
    const server = await start({ tls: true });
    const ca = readFileSync(join(server.dir, "ca.crt"), "utf8");
    await bytesArrive(context, { url: server.url, client: { ca } });
    const error = await whyNot(context, { url: server.url });
    assert.equal(error.code, "broker-unavailable");
  });
}

onLeg("rabbitmq")(
  "what a silent connection held is lost to it before another has it, ordered and not",
  { timeoutMs: 60_000 },
  async (leg, context) => {
    for (const ordered of [true, false]) {
      const { topic, group } = names();
      const proxy = await startProxy({ port: Number(new URL(leg.url).port) });
      context.cleanup(() => proxy.close());
      const options = { heartbeatMs: 1_000, ordered };
      const one = await openTransport(context, { url: proxy.url(leg.url), ...options });
      await publishNumbers(one.transport, topic, 1, 3);
      const first = new Reader(one.transport, topic, group);
      const held = await first.take(3);
      const readAt = performance.now();
      // Longer than a hold that nobody confirms.
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      if (ordered) assert.ok(one.listener.count("owned") > 2, "it is told anew while the server answers");
      else assert.deepEqual(await first.extend(held), held.map(() => "settled"));
      await proxy.blackHole();
      const cutAt = performance.now();
      const two = await openTransport(context, { url: leg.url, ...options });
      const second = new Reader(two.transport, topic, group);
      assert.deepEqual(dataOf(await second.take(3, 20_000)), [1, 2, 3]);
      const takenAt = performance.now();
      const until = ordered
        ? Math.max(...one.listener.told.filter(({ kind }) => kind === "owned").map(({ leaseUntil }) => leaseUntil!))
        : cutAt + held[0]!.leaseMs!;
      assert.ok(until < takenAt, `held until ${until - readAt}, another's from ${takenAt - readAt}`);
      await proxy.heal();
    }
  },
);
