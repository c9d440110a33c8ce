/**
 * Known bug classes of SQS clients, and what only this broker does, as users meet it: through the broker.
 *
 * @module
 */
import assert from "node:assert/strict";
import { createServer } from "node:net";
import { connect } from "../../adapters/connect.ts";
import { SqsBroker } from "../../adapters/sqs/mod.ts";
import type { Delivery } from "../../core/contract.ts";
import { isEdaError } from "../../core/errors.ts";
import { fresh, test, type TestContext, until, within } from "../support/test.ts";
import type { SqsEndpoint } from "../support/sqs/endpoint.ts";
import { SqsClient } from "./sqs_client.ts";
import { EMULATED } from "./sqs_harness.ts";
import { makeBroker, numberOf, startEndpoint } from "./sqs_rig.ts";

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Reads a topic until the test ends. */
function read(
  context: TestContext,
  broker: SqsBroker,
  topic: string,
  handle: (delivery: Delivery, n: number) => unknown = (delivery) => delivery.ack({ confirm: true }),
): { readonly n: number; readonly attempt: number; readonly at: number }[] {
  const got: { n: number; attempt: number; at: number }[] = [];
  const stop = new AbortController();
  const reading = (async () => {
    for await (const delivery of broker.subscribe(topic, { signal: stop.signal })) {
      const n = delivery.envelope.data as number;
      got.push({ n, attempt: delivery.attempt, at: performance.now() });
      await handle(delivery, n);
    }
  })();
  reading.catch(() => {});
  context.cleanup(async () => {
    stop.abort();
    await reading;
  });
  return got;
}

const events = (count: number, subjects = 1) =>
  Array.from({ length: count }, (_, n) => ({ type: "n", subject: `s${n % subjects}`, data: n }));

const queueOf = (endpoint: SqsEndpoint, topic: string) => endpoint.queues.get(`${topic}.fifo`)!;

test("ten messages prefetched, handled one by one for longer than their visibility timeout, are each handled once (SQS-08)", async (context) => {
  const endpoint = await startEndpoint(context);
  const topic = fresh("t");
  const broker = makeBroker(context, endpoint.url, { prefetch: 10 });
  await broker.publishAll(topic, events(10, 10));
  const got = read(context, broker, topic, async (delivery) => {
    await pause(400);
    await delivery.ack();
  });
  const rival = read(context, makeBroker(context, endpoint.url), topic);
  await until(() => got.length + rival.length >= 10 && queueOf(endpoint, topic).all.length === 0, {
    timeoutMs: 15_000,
  });
  assert.deepEqual([...got, ...rival].map(({ n }) => n).sort(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  assert.ok([...got, ...rival].every(({ attempt }) => attempt === 0));
  assert.ok(endpoint.callsOf("ChangeMessageVisibilityBatch").length > 2, "leases were extended");
});

test("a retry delay longer than the visibility timeout brings one next attempt, after the delay (COR-14)", async (context) => {
  const endpoint = await startEndpoint(context);
  const topic = fresh("t");
  const brokers = [makeBroker(context, endpoint.url), makeBroker(context, endpoint.url)];
  await brokers[0]!.publish(topic, { type: "n", subject: "s", data: 0 });
  const handle = (delivery: Delivery) => delivery.attempt === 0 ? delivery.retry({ delayMs: 3_000 }) : delivery.ack();
  const got = brokers.map((broker) => read(context, broker, topic, handle));
  await until(() => queueOf(endpoint, topic).all.length === 0, { timeoutMs: 10_000 });
  const all = got.flat();
  assert.deepEqual(all.map(({ attempt }) => attempt), [0, 1]);
  assert.ok(all[1]!.at - all[0]!.at >= 2_995);
  // Deferred by its visibility, not by a copy (SQS-11).
  assert.equal(endpoint.callsOf("SendMessageBatch").length, 1);
});

test("a handler that fails for a while uses up none of the receives that a redrive policy counts (SQS-12)", async (context) => {
  const endpoint = await startEndpoint(context);
  const topic = fresh("t");
  const broker = makeBroker(context, endpoint.url);
  await broker.publish(topic, { type: "n", subject: "s", data: 0 });
  const got = read(
    context,
    broker,
    topic,
    (delivery) => delivery.attempt < 4 ? delivery.retry({ delayMs: 100 * 2 ** delivery.attempt }) : undefined,
  );
  await until(() => got.length === 5);
  assert.equal(queueOf(endpoint, topic).all[0]!.receives, 1);
});

test("no visibility is changed once the delete was sent, however slow the calls are (SQS-07)", async (context) => {
  const endpoint = await startEndpoint(context);
  endpoint.hook = async ({ action }) => {
    if (action === "ChangeMessageVisibilityBatch" || action === "DeleteMessageBatch") await pause(300);
    return undefined;
  };
  const topic = fresh("t");
  const broker = makeBroker(context, endpoint.url);
  await broker.publishAll(topic, events(3, 3));
  const got = read(context, broker, topic, async (delivery, n) => {
    await pause(500 + 100 * n);
    await delivery.ack({ confirm: true });
  });
  await until(() => queueOf(endpoint, topic).all.length === 0, { timeoutMs: 15_000 });
  assert.equal(got.length, 3);
  const deleted = new Set<string>();
  for (const { action, input } of endpoint.calls) {
    for (const { ReceiptHandle } of input.Entries ?? []) {
      if (action === "DeleteMessageBatch") deleted.add(ReceiptHandle!);
      else if (action === "ChangeMessageVisibilityBatch") assert.ok(!deleted.has(ReceiptHandle!));
    }
  }
  assert.equal(deleted.size, 3);
  assert.ok(endpoint.callsOf("ChangeMessageVisibilityBatch").length > 0, "there was something to extend");
});

test("a message whose delete failed until its receipt ran out is deleted by its new receipt, not handled again (SQS-06)", async (context) => {
  const endpoint = await startEndpoint(context);
  const topic = fresh("t");
  const failures: number[] = [];
  const broker = makeBroker(context, endpoint.url, { onSettleError: ({ count }) => void failures.push(count) });
  let failing = true;
  endpoint.hook = ({ action }) =>
    failing && action === "DeleteMessageBatch" ? { status: 500, type: "InternalFailure" } : undefined;
  await broker.publishAll(topic, events(2, 1));
  const got = read(context, broker, topic, (delivery) => delivery.ack());
  await until(() => failures.length > 0, { what: "the settle to be given up" });
  failing = false;
  await until(() => queueOf(endpoint, topic).all.length === 0, { timeoutMs: 15_000 });
  assert.deepEqual(got.map(({ n }) => n), [0, 1]);
  const receipts = endpoint.callsOf("DeleteMessageBatch").flatMap(({ input }) =>
    input.Entries!.map((e) => e.ReceiptHandle)
  );
  assert.ok(new Set(receipts).size >= 3, "a later receipt was used");
  assert.ok((broker.health().counters["deleted-again"] ?? 0) > 0);
});

test("subscribe, leave, subscribe: one read at a time, and nothing is handled after close (SQS-10)", async (context) => {
  const endpoint = await startEndpoint(context);
  const topic = fresh("t");
  const broker = makeBroker(context, endpoint.url);
  for (let round = 0; round < 5; round++) {
    const stop = new AbortController();
    const reading = (async () => {
      for await (const _ of broker.subscribe(topic, { signal: stop.signal }));
    })();
    const before = endpoint.callsOf("ReceiveMessage").length;
    if (round === 0) await until(() => endpoint.callsOf("ReceiveMessage").length > before);
    stop.abort();
    await reading;
  }
  assert.equal(endpoint.mostReceiving, 1);
  const got = read(context, broker, topic);
  await within(2_000, "closing", broker.close());
  await makeBroker(context, endpoint.url).publish(topic, { type: "n", data: 0 });
  await until(() => endpoint.receiving === 0);
  assert.deepEqual([got.length, queueOf(endpoint, topic).visible], [0, 1]);
});

test("what is published is read by a consumer that has waited for long, by the same read", async (context) => {
  const endpoint = await startEndpoint(context);
  const topic = fresh("t");
  const broker = makeBroker(context, endpoint.url, { visibilityTimeoutMs: 20_000, waitMs: 10_000 });
  const got = read(context, broker, topic);
  await until(() => endpoint.receiving === 1);
  await pause(2_500);
  await broker.publish(topic, { type: "n", data: 7 });
  await until(() => got.length === 1, { timeoutMs: 1_000 });
  // That one, and the one after it.
  assert.ok(endpoint.callsOf("ReceiveMessage").length <= 3);
});

test("a queue that is deleted is made anew, and consumption goes on", async (context) => {
  const endpoint = await startEndpoint(context);
  const topic = fresh("t");
  const broker = makeBroker(context, endpoint.url);
  const got = read(context, broker, topic);
  await broker.publish(topic, { type: "n", data: 0 });
  await until(() => got.length === 1);
  endpoint.queues.clear();
  await until(async () => {
    await broker.publish(topic, { type: "n", data: 1 });
    return got.some(({ n }) => n === 1);
  }, { everyMs: 200 });
  assert.ok((broker.health().counters["queue-lost"] ?? 0) > 0);
});

test("a settle on a queue that is gone is stale, and says nothing against the server", async (context) => {
  const endpoint = await startEndpoint(context);
  const topic = fresh("t");
  const told: unknown[] = [];
  const broker = makeBroker(context, endpoint.url, { onDisconnect: (error) => void told.push(error) });
  await broker.publish(topic, { type: "n", subject: "s", data: 0 });
  const { value: delivery } = await broker.subscribe(topic).next();
  endpoint.queues.clear();
  assert.equal(await delivery!.ack({ confirm: true }), "stale");
  assert.deepEqual(told, []);
});

test("a standard queue that is there is not passed over where ordered is unset; the error says what to do", async (context) => {
  const endpoint = await startEndpoint(context);
  const topic = fresh("t");
  await new SqsClient(endpoint.url).queue(topic);
  await assert.rejects(
    makeBroker(context, endpoint.url).publish(topic, { type: "n" }),
    (error) => isEdaError(error) && error.code === "invalid-option" && /ordered: false/.test(error.message),
  );
  await makeBroker(context, endpoint.url, { ordered: false }).publish(topic, { type: "n" });
  await makeBroker(context, endpoint.url, { ordered: true }).publish(topic, { type: "n" });
  assert.deepEqual([...endpoint.queues.keys()], [topic, `${topic}.fifo`]);
});

test("with create false a missing queue is refused, for publishing and for consuming, and none is made", async (context) => {
  const endpoint = await startEndpoint(context);
  const topic = fresh("t");
  const broker = makeBroker(context, endpoint.url, { create: false });
  const refused = (error: unknown) => isEdaError(error) && !error.retriable && /create/.test(error.message);
  await assert.rejects(broker.publish(topic, { type: "n" }), refused);
  await assert.rejects(broker.subscribe(topic).next(), refused);
  assert.equal(endpoint.queues.size, 0);
  assert.notEqual(broker.health().status, "unhealthy");
});

test("a queue of ours keeps messages for 14 days and has no redrive policy", async (context) => {
  const endpoint = await startEndpoint(context);
  const topic = fresh("t");
  await makeBroker(context, endpoint.url).publish(topic, { type: "n" });
  const { MessageRetentionPeriod, RedrivePolicy, FifoQueue } = queueOf(endpoint, topic).attributes;
  assert.deepEqual([MessageRetentionPeriod, RedrivePolicy, FifoQueue], ["1209600", undefined, "true"]);
});

test("a redrive policy and a short retention of somebody else's queue are named in health", async (context) => {
  const endpoint = await startEndpoint(context);
  const topic = fresh("t");
  const RedrivePolicy = JSON.stringify({
    deadLetterTargetArn: "arn:aws:sqs:us-east-1:000000000000:dead",
    maxReceiveCount: 3,
  });
  const attributes = { RedrivePolicy, MessageRetentionPeriod: "345600" };
  await new SqsClient(endpoint.url).queue(`${topic}.fifo`, attributes);
  const warned: unknown[] = [];
  const logger = {
    debug: () => {},
    info: () => {},
    error: () => {},
    warn: (...all: unknown[]) => void warned.push(all),
  };
  const broker = makeBroker(context, endpoint.url, { logger });
  await broker.publish(topic, { type: "n" });
  const { counters } = broker.health();
  assert.deepEqual([counters["redrive-policy"], counters["short-retention"]], [1, 1]);
  assert.match(JSON.stringify(warned), /redrive-policy.*3/);
  assert.doesNotMatch(JSON.stringify(warned), /arn:|:\/\//);
});

test("queues maps topics to names and URLs", async (context) => {
  const endpoint = await startEndpoint(context);
  const client = new SqsClient(endpoint.url);
  const url = await client.queue("billing-mails.fifo");
  const queues = { "shop.orders": "billing-orders.fifo", "shop.mails": url };
  const broker = makeBroker(context, endpoint.url, { queues });
  await broker.publish("shop.orders", { type: "n", data: 1 });
  await broker.publish("shop.mails", { type: "n", data: 2 });
  const stored = [...endpoint.queues].map(([name, queue]) => [name, queue.all.map(({ body }) => numberOf(body))]);
  assert.deepEqual(Object.fromEntries(stored), { "billing-orders.fifo": [1], "billing-mails.fifo": [2] });
});

test("credentials of a function reach the worker through clientModule", async (context) => {
  const endpoint = await startEndpoint(context);
  const clientModule = new URL("./sqs_client_module.ts", import.meta.url);
  for (const isolation of ["worker", "inline"] as const) {
    endpoint.calls.length = 0;
    const broker = makeBroker(context, endpoint.url, { client: {}, clientModule, isolation });
    await broker.connect();
    assert.deepEqual(endpoint.calls.map(({ key }) => key), ["from-a-provider"]);
  }
});

test("connect makes it of a sqs: URL", async (context) => {
  const endpoint = await startEndpoint(context);
  const { port } = new URL(endpoint.url);
  const broker = await connect(`sqs://127.0.0.1:${port}?region=us-east-1&tls=false`, {
    isolation: "inline",
    adapter: { client: EMULATED.client },
  });
  context.cleanup(() => broker.close());
  assert.ok(broker instanceof SqsBroker);
  assert.equal(broker.healthy, true);
});

test("refused credentials fail connecting, are not tried again, and are not named", async (context) => {
  const endpoint = await startEndpoint(context);
  endpoint.hook = () => ({ status: 403, type: "InvalidClientTokenId" });
  const broker = makeBroker(context, endpoint.url);
  await assert.rejects(
    broker.connect(),
    (error) =>
      isEdaError(error) && error.code === "authentication-failed" &&
      !/127\.0\.0\.1|AKIA|:\/\//.test(String(error) + String(error.cause)),
  );
  assert.equal(endpoint.calls.length, 1);
});

test("a server that accepts and never answers fails connecting by its deadline (RUN-01)", async (context) => {
  const sockets = new Set<{ destroy(): void }>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.cleanup(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as { port: number };
  const broker = makeBroker(context, `http://127.0.0.1:${port}`, { connectTimeoutMs: 700 });
  const from = performance.now();
  await assert.rejects(broker.connect(), (error) => isEdaError(error) && error.code === "broker-unavailable");
  assert.ok(performance.now() - from < 1_200);
});
