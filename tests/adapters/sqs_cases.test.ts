/**
 * Known bug classes of SQS clients, at the transport: each call as it goes to the server.
 *
 * @module
 */
import assert from "node:assert/strict";
import { isEdaError } from "../../core/errors.ts";
import { test, until } from "../support/test.ts";
import { VirtualClock } from "../support/virtual_clock.ts";
import { fetchAll, makeTransport, numberOf, outgoing, SILENT, startEndpoint } from "./sqs_rig.ts";

const natives = (raws: readonly { readonly native: unknown }[]): unknown[] => raws.map(({ native }) => native);

test("extend asks for the same window each time, never for one past twelve hours (SQS-01)", async (context) => {
  const endpoint = await startEndpoint(context);
  const clock = new VirtualClock();
  const bare = await makeTransport(context, endpoint, { visibilityTimeoutMs: 40_000 }, clock);
  const { transport, topic } = bare;
  await transport.send(topic, outgoing(1));
  const held = natives(await fetchAll(bare, 1));
  for (let beat = 0; beat < 3; beat++) {
    await clock.advance(30_000);
    assert.deepEqual(await transport.extend!(topic, "", held), ["settled"]);
  }
  const windows = (): unknown[] =>
    endpoint.callsOf("ChangeMessageVisibilityBatch").map(({ input }) => input.Entries?.[0]?.VisibilityTimeout);
  assert.deepEqual(windows(), [40, 40, 40]);
  await clock.advance(43_200_000 - 90_000 - 40_000);
  assert.deepEqual(await transport.extend!(topic, "", held), ["settled"]);
  await clock.advance(1);
  assert.deepEqual(await transport.extend!(topic, "", held), ["stale"]);
  // It goes back instead.
  await until(() => windows().length === 5, { what: "the message to be given back" });
  assert.deepEqual(windows().slice(3), [40, 0]);
});

test("what a batch delete failed for is tried again alone, and only what succeeded is settled (SQS-02)", async (context) => {
  const endpoint = await startEndpoint(context);
  const bare = await makeTransport(context, endpoint);
  const { transport, topic, queue } = bare;
  await transport.send(topic, outgoing(5));
  const raws = await fetchAll(bare, 5);
  raws.sort((a, b) => numberOf(a.body) - numberOf(b.body));
  let failures = 2;
  endpoint.hook = ({ action, input }) => {
    if (action !== "DeleteMessageBatch") return;
    if (input.Entries?.length === 1) {
      return --failures > 0 ? { entries: { 0: { Code: "InternalError", SenderFault: false } } } : undefined;
    }
    return {
      entries: {
        1: { Code: "InternalError", SenderFault: false },
        3: { Code: "ReceiptHandleIsInvalid", SenderFault: true },
      },
    };
  };
  const outcomes = await transport.ack(topic, "", natives(raws));
  assert.deepEqual(outcomes, ["settled", "settled", "settled", "stale", "settled"]);
  const calls = endpoint.callsOf("DeleteMessageBatch").map(({ input }) => input.Entries?.length);
  assert.deepEqual(calls, [5, 1, 1]);
  assert.deepEqual(queue.all.map(({ body }) => numberOf(body)), [3]);
});

test("a batch delete that keeps failing rejects, and what it had settled is not sent again (SQS-02)", async (context) => {
  const endpoint = await startEndpoint(context);
  const bare = await makeTransport(context, endpoint);
  const { transport, topic } = bare;
  await transport.send(topic, outgoing(3));
  const raws = await fetchAll(bare, 3);
  // One that is in neither list counts as failed.
  endpoint.hook = ({ action, input }) =>
    action === "DeleteMessageBatch" ? { entries: { [input.Entries!.length - 1]: null } } : undefined;
  await assert.rejects(
    transport.ack(topic, "", natives(raws)),
    (error) => isEdaError(error) && error.code === "broker-unavailable",
  );
  endpoint.hook = () => undefined;
  const before = endpoint.callsOf("DeleteMessageBatch").length;
  assert.deepEqual(await transport.ack(topic, "", natives(raws)), ["settled", "settled", "settled"]);
  const after = endpoint.callsOf("DeleteMessageBatch").slice(before);
  assert.deepEqual(after.map(({ input }) => input.Entries?.length), [1]);
});

test("send answers each message's own outcome, and sends none twice (SQS-03)", async (context) => {
  const endpoint = await startEndpoint(context);
  const { transport, topic, queue } = await makeTransport(context, endpoint);
  endpoint.hook = ({ action, input }) => {
    if (action !== "SendMessageBatch") return;
    const first = numberOf(input.Entries![0]!.MessageBody);
    if (first === 10) {
      const refusal = { Code: "InvalidMessageContents", SenderFault: true };
      return { entries: { 2: refusal, 5: refusal, unknown: refusal } };
    }
    return first === 20 ? { status: 500, type: "InternalFailure" } : undefined;
  };
  const outcomes = await transport.send(topic, outgoing(25));
  const codes = outcomes.map((outcome) => isEdaError(outcome) ? outcome.code : outcome);
  const expected = Array.from(
    { length: 25 },
    (_, n) => n === 12 || n === 15 ? "publish-refused" : n >= 20 ? "outcome-unknown" : undefined,
  );
  assert.deepEqual(codes, expected);
  assert.deepEqual(endpoint.callsOf("SendMessageBatch").map(({ input }) => input.Entries?.length).sort(), [10, 10, 5]);
  assert.equal(queue.all.length, 18);
});

test("what is throttled is sent again with backoff: a whole batch, and single messages alone", async (context) => {
  const endpoint = await startEndpoint(context);
  const { transport, topic, queue } = await makeTransport(context, endpoint);
  let calls = 0;
  endpoint.hook = ({ action }) => {
    if (action !== "SendMessageBatch") return;
    if (++calls === 1) return { status: 400, type: "com.amazonaws.sqs#RequestThrottled" };
    return calls === 2 ? { entries: { 4: { Code: "RequestThrottled", SenderFault: true } } } : undefined;
  };
  const from = performance.now();
  assert.deepEqual(await transport.send(topic, outgoing(5)), Array(5).fill(undefined));
  assert.ok(performance.now() - from >= 100, "it waited in between");
  assert.deepEqual(endpoint.callsOf("SendMessageBatch").map(({ input }) => input.Entries?.length), [5, 5, 1]);
  assert.equal(queue.all.length, 5);
});

test("a message that a later one of its subject overtook is not sent again behind it", async (context) => {
  const endpoint = await startEndpoint(context);
  const { transport, topic, queue } = await makeTransport(context, endpoint);
  let calls = 0;
  endpoint.hook = ({ action }) =>
    action === "SendMessageBatch" && ++calls === 1
      ? { entries: { 0: { Code: "InternalError", SenderFault: false } } }
      : undefined;
  const [first, second] = await transport.send(topic, outgoing(2, 1));
  assert.ok(isEdaError(first) && first.code === "broker-unavailable");
  assert.equal(second, undefined);
  assert.deepEqual(queue.all.map(({ body }) => numberOf(body)), [1]);
});

test("what is being deleted is not extended (SQS-07)", async (context) => {
  const endpoint = await startEndpoint(context);
  const bare = await makeTransport(context, endpoint);
  const { transport, topic } = bare;
  await transport.send(topic, outgoing(2));
  const held = natives(await fetchAll(bare, 2));
  let go = (): void => {};
  const going = new Promise<undefined>((resolve) => go = () => resolve(undefined));
  endpoint.hook = ({ action }) => action === "DeleteMessageBatch" ? going : undefined;
  const deleting = transport.ack(topic, "", [held[0]]);
  assert.deepEqual(await transport.extend!(topic, "", held), ["settled", "settled"]);
  go();
  assert.deepEqual(await deleting, ["settled"]);
  assert.deepEqual(endpoint.callsOf("ChangeMessageVisibilityBatch").map(({ input }) => input.Entries?.length), [1]);
});

test("what the waiting read brings while a subscription ends goes back at once", async (context) => {
  const endpoint = await startEndpoint(context);
  const { transport, topic, queue } = await makeTransport(context, endpoint);
  const stop = new AbortController();
  const request = { group: "", max: 10, window: 10, waitMs: 1_000, signal: stop.signal };
  const fetching = transport.fetch(topic, request);
  await until(() => endpoint.receiving === 1);
  stop.abort();
  assert.deepEqual(await fetching, []);
  const leaving = transport.unsubscribe(topic, "");
  await transport.send(topic, outgoing(1));
  await leaving;
  assert.deepEqual([queue.all[0]!.receives, queue.visible], [1, 1]);
});

test("messages of one subject are never in two calls at a time, whatever the calls take", async (context) => {
  const endpoint = await startEndpoint(context);
  const { transport, topic, queue } = await makeTransport(context, endpoint);
  const open = new Map<string, number>();
  let worst = 0;
  endpoint.hook = async ({ action, input }) => {
    if (action !== "SendMessageBatch") return;
    const subjects = new Set(input.Entries!.map(({ MessageGroupId }) => MessageGroupId!));
    for (const subject of subjects) {
      open.set(subject, (open.get(subject) ?? 0) + 1);
      worst = Math.max(worst, open.get(subject)!);
    }
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 20));
    for (const subject of subjects) open.set(subject, open.get(subject)! - 1);
    return undefined;
  };
  const all = outgoing(300, 7);
  await Promise.all([0, 1, 2].map((part) => transport.send(topic, all.slice(part * 100, part * 100 + 100))));
  assert.equal(worst, 1);
  for (let s = 0; s < 7; s++) {
    const lane = queue.all.map(({ body }) => numberOf(body)).filter((n) => n % 7 === s);
    assert.deepEqual(lane, [...lane].sort((a, b) => a - b));
  }
});

test("a batch is never larger than SQS takes, and one message too large for its queue is not sent", async (context) => {
  const endpoint = await startEndpoint(context);
  const { transport, topic } = await makeTransport(context, endpoint, { maxBytes: 2_000_000 });
  const large = (n: number, bytes: number) => {
    const [message] = outgoing(1);
    return { subject: `s${n}`, body: message!.body.replace('"data":0', `"data":"${"x".repeat(bytes)}"`) };
  };
  const outcomes = await transport.send(topic, [
    large(0, 400_000),
    large(1, 400_000),
    large(2, 400_000),
    large(3, 1_048_576),
  ]);
  assert.deepEqual(outcomes.slice(0, 3), [undefined, undefined, undefined]);
  assert.ok(isEdaError(outcomes[3]) && outcomes[3].code === "envelope-too-large");
  assert.deepEqual(endpoint.callsOf("SendMessageBatch").map(({ input }) => input.Entries?.length), [2, 1]);
});

test("bodies survive the wire; a wrong checksum is an unknown outcome, and trying again makes no copy (SQS-09)", async (context) => {
  const endpoint = await startEndpoint(context);
  const bare = await makeTransport(context, endpoint);
  const { transport, topic, queue } = bare;
  const texts = ["&lt;&apos;", "%E8", "\u0085", "😀", "\u0000", "\ud800", "\uffff"];
  const messages = texts.map((data, n) => ({
    subject: `s${n}`,
    body: JSON.stringify({ specversion: "1.0", id: `${n}`, source: "/a", type: "n", data }),
  }));
  assert.deepEqual(await transport.send(topic, messages), texts.map(() => undefined));
  const raws = await fetchAll(bare, texts.length);
  assert.deepEqual(raws.map(({ body }) => JSON.parse(String(body)).data), texts);

  endpoint.hook = ({ action }) =>
    action === "SendMessageBatch"
      ? { alter: (answer) => (answer.Successful as { MD5OfMessageBody: string }[])[0]!.MD5OfMessageBody = "0" }
      : undefined;
  const again = [{ subject: "x", body: messages[0]!.body.replace('"id":"0"', '"id":"again"') }];
  const [outcome] = await transport.send(topic, again);
  assert.ok(isEdaError(outcome) && outcome.code === "outcome-unknown" && outcome.retriable);
  endpoint.hook = () => undefined;
  assert.deepEqual(await transport.send(topic, again), [undefined]);
  assert.equal(queue.all.length, texts.length + 1);
  // A replay is no copy.
  assert.deepEqual(await transport.send(topic, [{ ...again[0]!, replay: 1 }]), [undefined]);
  assert.equal(queue.all.length, texts.length + 2);
});

test("a message that came damaged is not handed out, nor what is behind it in its group; both come again (SQS-09)", async (context) => {
  const endpoint = await startEndpoint(context);
  const bare = await makeTransport(context, endpoint);
  const { transport, topic } = bare;
  await transport.send(topic, outgoing(3, 1));
  let damaged = false;
  endpoint.hook = ({ action }) => {
    if (action !== "ReceiveMessage" || damaged) return;
    damaged = true;
    return { alter: (answer) => (answer.Messages as { Body: string }[])[1]!.Body += " " };
  };
  const request = { group: "", max: 3, window: 3, waitMs: 0, signal: new AbortController().signal };
  const [first, ...others] = await transport.fetch(topic, request);
  assert.deepEqual([numberOf(first!.body), others.length], [0, 0]);
  assert.deepEqual(bare.signals, ["damaged"]);
  assert.deepEqual(await transport.ack(topic, "", [first!.native]), ["settled"]);
  assert.deepEqual((await fetchAll(bare, 2)).map(({ body }) => numberOf(body)), [1, 2]);
});

test("release shows a message after the delay, rounded up to seconds, at once without one (SQS-12)", async (context) => {
  const endpoint = await startEndpoint(context);
  const bare = await makeTransport(context, endpoint);
  const { transport, topic } = bare;
  await transport.send(topic, outgoing(3));
  const [a, b, c] = natives(await fetchAll(bare, 3));
  await transport.release(topic, "", [a], 1_500);
  await transport.release(topic, "", [b, c], 0);
  const windows = endpoint.callsOf("ChangeMessageVisibilityBatch").map(({ input }) =>
    input.Entries?.map(({ VisibilityTimeout }) => VisibilityTimeout)
  );
  assert.deepEqual(windows, [[2], [0, 0]]);
});

test("who loses a message loses what is behind it in its group, and all come again in order", async (context) => {
  const endpoint = await startEndpoint(context);
  const bare = await makeTransport(context, endpoint);
  const { transport, topic } = bare;
  await transport.send(topic, outgoing(6, 2));
  const raws = await fetchAll(bare, 6);
  const lane = (s: number) => raws.filter(({ body }) => numberOf(body) % 2 === s);
  endpoint.hook = ({ action, input }) => {
    const at =
      input.Entries?.findIndex(({ ReceiptHandle }) =>
        ReceiptHandle === (lane(0)[0]!.native as { receipt: string }).receipt
      ) ?? -1;
    if (action !== "ChangeMessageVisibilityBatch" || at === -1 || input.Entries![at]!.VisibilityTimeout === 0) return;
    return { entries: { [at]: { Code: "MessageNotInflight", SenderFault: true } } };
  };
  // The third of the lane is not part of this call.
  const asked = [...lane(0).slice(0, 2), ...lane(1)];
  const outcomes = await transport.extend!(topic, "", natives(asked));
  assert.deepEqual(outcomes, ["stale", "stale", "settled", "settled", "settled"]);
  assert.deepEqual(bare.lost, [lane(0)[2]!.native]);
  endpoint.hook = () => undefined;
  await until(() => bare.queue.inFlight === 4, { what: "the others of the group to be given back" });
});

test("a read that got no answer is tried again as the same attempt, and brings the same messages", async (context) => {
  const endpoint = await startEndpoint(context);
  const bare = await makeTransport(context, endpoint);
  const { transport, topic } = bare;
  await transport.send(topic, outgoing(4, 2));
  let cut = false;
  endpoint.hook = ({ action }) => {
    if (action !== "ReceiveMessage" || cut) return;
    cut = true;
    return { cut: true };
  };
  const request = { group: "", max: 10, window: 10, waitMs: 0, signal: new AbortController().signal };
  await assert.rejects(transport.fetch(topic, request), (error) => isEdaError(error) && error.retriable);
  const raws = await transport.fetch(topic, request);
  assert.deepEqual(raws.map(({ body }) => numberOf(body)).sort(), [0, 1, 2, 3]);
  const attempts = endpoint.callsOf("ReceiveMessage").map(({ input }) => input.ReceiveRequestAttemptId);
  assert.equal(attempts[0], attempts[1]);
  await transport.fetch(topic, request);
  assert.notEqual(endpoint.callsOf("ReceiveMessage").at(-1)!.input.ReceiveRequestAttemptId, attempts[1]);
});

test("a waiting read that failed on connections that were replaced since is no failure of the next fetch", async (context) => {
  const endpoint = await startEndpoint(context);
  const bare = await makeTransport(context, endpoint);
  const { transport, topic } = bare;
  const stop = new AbortController();
  const request = { group: "", max: 10, window: 10, waitMs: 1_000, signal: stop.signal };
  const fetching = transport.fetch(topic, request);
  await until(() => endpoint.receiving === 1);
  stop.abort();
  assert.deepEqual(await fetching, []);
  // The read waits on, for nobody.
  transport.reset("the test says so");
  await until(() => endpoint.receiving === 0);
  await transport.send(topic, outgoing(1));
  const raws = await transport.fetch(topic, { ...request, signal: new AbortController().signal });
  assert.equal(raws.length, 1);
});

test("a fetch whose waiting read is cut off fails, and opening again gives up what was in flight on other connections", async (context) => {
  const endpoint = await startEndpoint(context);
  const bare = await makeTransport(context, endpoint);
  const { transport, topic } = bare;
  await transport.send(topic, outgoing(1));
  const [raw] = await fetchAll(bare, 1);
  endpoint.hook = ({ action }) => action === "ReceiveMessage" ? { cut: true } : undefined;
  const signal = new AbortController().signal;
  const failed = (error: unknown): boolean => isEdaError(error) && error.retriable;
  await assert.rejects(transport.fetch(topic, { group: "", max: 1, window: 2, waitMs: 2_000, signal }), failed);
  endpoint.hook = ({ action }) => action === "DeleteMessageBatch" ? new Promise(() => {}) : undefined;
  const acking = assert.rejects(transport.ack(topic, "", [raw!.native]), failed);
  await until(() => endpoint.callsOf("DeleteMessageBatch").length === 1);
  await transport.open(SILENT);
  await acking;
});

for (const ordered of [true, false]) {
  test(`an earlier receipt of a message that came again is stale for all, and leaves the later one alone, ${ordered ? "FIFO" : "standard"}`, async (context) => {
    const endpoint = await startEndpoint(context);
    const bare = await makeTransport(context, endpoint, { ordered, visibilityTimeoutMs: 2_000 });
    const { transport, topic, queue } = bare;
    await transport.send(topic, outgoing(1));
    const [early] = natives(await fetchAll(bare, 1));
    const [late] = natives(await fetchAll(bare, 1));
    assert.deepEqual(await transport.release(topic, "", [early], 0), ["stale"]);
    assert.deepEqual(await transport.extend!(topic, "", [early]), ["stale"]);
    assert.deepEqual(await transport.ack(topic, "", [early]), ["stale"]);
    assert.deepEqual(endpoint.callsOf("ChangeMessageVisibilityBatch"), []);
    assert.deepEqual(endpoint.callsOf("DeleteMessageBatch"), []);
    assert.equal(queue.inFlight, 1);
    assert.deepEqual(await transport.ack(topic, "", [late]), ["settled"]);
  });
}

test("what an answer brings after its visibility timeout is not handed out", async (context) => {
  const endpoint = await startEndpoint(context);
  const clock = new VirtualClock();
  const bare = await makeTransport(context, endpoint, { visibilityTimeoutMs: 40_000 }, clock);
  await bare.transport.send(bare.topic, outgoing(1));
  endpoint.hook = async ({ action }) => {
    if (action === "ReceiveMessage" && clock.monotonic() === 0) await clock.advance(4_000);
    return undefined;
  };
  const request = { group: "", max: 1, window: 1, waitMs: 0, signal: new AbortController().signal };
  // Within the deadline of the call and past a window that is shorter.
  const [early] = await bare.transport.fetch(bare.topic, request);
  assert.equal(early!.leaseMs, 40_000);
  await bare.transport.release(bare.topic, "", [early!.native], 0);
  const short = await makeTransport(context, endpoint, { visibilityTimeoutMs: 2_000 }, clock);
  await short.transport.send(short.topic, outgoing(1));
  endpoint.hook = async ({ action }) => {
    if (action === "ReceiveMessage" && clock.monotonic() === 4_000) await clock.advance(2_000);
    return undefined;
  };
  assert.deepEqual(await short.transport.fetch(short.topic, request), []);
});

test("a topic is one group: a second one of the same broker is refused by name", async (context) => {
  const endpoint = await startEndpoint(context);
  const { transport, topic } = await makeTransport(context, endpoint);
  const request = { max: 10, window: 10, waitMs: 0, signal: new AbortController().signal };
  await transport.fetch(topic, { ...request, group: "billing" });
  await assert.rejects(
    transport.fetch(topic, { ...request, group: "mailing" }),
    (error) => isEdaError(error) && error.code === "invalid-option" && error.details.option === "group",
  );
  await transport.unsubscribe(topic, "billing");
  await transport.fetch(topic, { ...request, group: "mailing" });
});

test("what waits to be sent is refused unsent when the connection is replaced", async (context) => {
  const endpoint = await startEndpoint(context);
  const { transport, topic } = await makeTransport(context, endpoint);
  let arrived = (): void => {};
  const first = new Promise<void>((resolve) => arrived = resolve);
  endpoint.hook = ({ action }) => {
    if (action !== "SendMessageBatch") return;
    arrived();
    return new Promise(() => {});
  };
  const sending = transport.send(topic, outgoing(20, 1));
  await first;
  transport.reset("the test says so");
  const codes = (await sending).map((outcome) => isEdaError(outcome) ? outcome.code : "sent");
  assert.deepEqual(codes, [...Array(10).fill("outcome-unknown"), ...Array(10).fill("broker-unavailable")]);
});
