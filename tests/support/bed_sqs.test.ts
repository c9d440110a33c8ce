import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { KEEPS } from "./bed/sqs_kind.ts";
import { startTicksOf } from "./bed/state.ts";
import { fresh, onLeg, onServer, startProxy, within } from "./test.ts";

/** One call of the JSON protocol. */
async function call(
  endpoint: string,
  action: string,
  body: Readonly<Record<string, unknown>>,
): Promise<Record<string, unknown>> {
  const answer = await fetch(endpoint, {
    method: "POST",
    headers: {
      "content-type": "application/x-amz-json-1.0",
      "x-amz-target": `AmazonSQS.${action}`,
      // Nobody checks it, but some look for the region in it.
      authorization: "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/sqs/aws4_request, SignedHeaders=, Signature=",
      connection: "close",
    },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(5_000),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${action}: ${answer.status} ${text}`);
  return text === "" ? {} : JSON.parse(text) as Record<string, unknown>;
}

interface Received {
  readonly Body: string;
  readonly ReceiptHandle: string;
}

async function receive(endpoint: string, queue: string): Promise<Received[]> {
  const answer = await call(endpoint, "ReceiveMessage", { QueueUrl: queue, MaxNumberOfMessages: 10 });
  return (answer.Messages ?? []) as Received[];
}

async function createQueue(endpoint: string, name: string, Attributes: Record<string, string> = {}): Promise<string> {
  return (await call(endpoint, "CreateQueue", { QueueName: name, Attributes })).QueueUrl as string;
}

const onSqs = onLeg("sqs");

onSqs("sends, receives and deletes on a standard queue", async ({ url }) => {
  const queue = await createQueue(url, fresh("q"));
  await call(url, "SendMessage", { QueueUrl: queue, MessageBody: "one" });
  const [message, ...others] = await receive(url, queue);
  assert.deepEqual([message?.Body, others.length], ["one", 0]);
  await call(url, "DeleteMessage", { QueueUrl: queue, ReceiptHandle: message!.ReceiptHandle });
  await call(url, "DeleteQueue", { QueueUrl: queue });
});

onSqs("keeps the order of a group and drops duplicates on a FIFO queue", async ({ url }) => {
  const queue = await createQueue(url, `${fresh("q")}.fifo`, { FifoQueue: "true" });
  for (const [body, id] of [["a", "1"], ["b", "2"], ["a", "1"], ["c", "3"]] as const) {
    const entry = { QueueUrl: queue, MessageBody: body, MessageGroupId: "g", MessageDeduplicationId: id };
    await call(url, "SendMessage", entry);
  }
  const bodies: string[] = [];
  for (let messages = await receive(url, queue); messages.length > 0; messages = await receive(url, queue)) {
    for (const { Body, ReceiptHandle } of messages) {
      bodies.push(Body);
      await call(url, "DeleteMessage", { QueueUrl: queue, ReceiptHandle });
    }
  }
  assert.deepEqual(bodies, ["a", "b", "c"]);
  await call(url, "DeleteQueue", { QueueUrl: queue });
});

const withOwn = onServer("sqs");

withOwn("frozen it does not answer, going on it does", async (start) => {
  const server = await start();
  await createQueue(server.url, "q");
  server.pause();
  const answer = call(server.url, "ListQueues", {});
  await assert.rejects(within(300, "a frozen server", answer));
  server.resume();
  assert.match(JSON.stringify(await answer), /\/q"/);
});

withOwn("after a kill it answers on the same port and is empty: it keeps nothing on disk", async (start) => {
  const server = await start();
  const { port, pid, dir } = server;
  await createQueue(server.url, "q");
  await server.kill();
  assert.equal(startTicksOf(pid), undefined);
  await assert.rejects(call(server.url, "ListQueues", {}));
  await server.restart();
  assert.equal(server.port, port);
  assert.doesNotMatch(JSON.stringify(await call(server.url, "ListQueues", {})), /\/q"/);
  await server.stop();
  await server.stop();
  assert.equal(existsSync(dir), false);
});

withOwn("told to keep its data it has queues and messages after a kill, those given back too", async (start) => {
  const server = await start({ args: [KEEPS] });
  const queue = await createQueue(server.url, "q.fifo", { FifoQueue: "true" });
  for (const id of ["a", "b"]) {
    const entry = { QueueUrl: queue, MessageBody: id, MessageGroupId: id, MessageDeduplicationId: id };
    await call(server.url, "SendMessage", entry);
  }
  const [given] = await receive(server.url, queue);
  const change = { QueueUrl: queue, ReceiptHandle: given!.ReceiptHandle, VisibilityTimeout: 0 };
  await call(server.url, "ChangeMessageVisibility", change);
  await server.kill();
  await server.restart();
  const messages = await receive(server.url, queue);
  assert.deepEqual(messages.map(({ Body }) => Body), ["a"], "the other one is still hidden");
});

withOwn("gives queues the address by which the client came, so that a proxy stays between", async (start, context) => {
  const server = await start();
  const proxy = await startProxy({ port: server.port });
  context.cleanup(() => proxy.close());
  const queue = await createQueue(proxy.url(server.url), "q");
  assert.equal(new URL(queue).host, `127.0.0.1:${proxy.port}`);
});

withOwn("listens on the loopback interface alone, and has no TLS", async (start) => {
  const server = await start();
  assert.equal(new URL(server.url).hostname, "127.0.0.1");
  await assert.rejects(start({ tls: true }), /speaks no TLS/);
});
