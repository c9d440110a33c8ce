/**
 * What becomes of consumers that are killed, frozen or kept busy, each a process or a worker of its own.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { SqsBrokerOptions } from "../../adapters/sqs/mod.ts";
import { fresh, onLeg, test, until } from "../support/test.ts";
import { EMULATED } from "./sqs_harness.ts";
import { MemberProcess, runMembers } from "./sqs_members.ts";
import { makeBroker, startEndpoint } from "./sqs_rig.ts";

const onSqs = onLeg("sqs");
const VISIBILITY_MS = 2_000;
const options = (endpoint: string): SqsBrokerOptions => ({
  ...EMULATED,
  endpoint,
  visibilityTimeoutMs: VISIBILITY_MS,
  waitMs: 1_000,
  group: "billing",
  source: "/members",
  logger: false,
});

const TEAM = { subjects: 10, perRound: 100, prefetch: 20 };

for (const members of [2, 3, 4]) {
  onSqs(`${members} members join, leave and die under load: nothing is lost, order stands`, {
    timeoutMs: 120_000,
  }, async ({ url }) => {
    const result = await runMembers({ ...TEAM, broker: options(url), members, rounds: 4 });
    assert.deepEqual(result.violations, []);
    assert.equal(result.published, 400);
    assert.ok(result.again <= result.kills * TEAM.prefetch, `${result.again} were handed out again`);
  });
}

test("members join, leave and die under load where several messages of a subject are in flight", {
  timeoutMs: 120_000,
}, async (context) => {
  const endpoint = await startEndpoint(context);
  const result = await runMembers({ ...TEAM, broker: options(endpoint.url), members: 3, rounds: 4 });
  assert.deepEqual(result.violations, []);
  assert.ok(result.again <= result.kills * TEAM.prefetch, `${result.again} were handed out again`);
});

for (const ordered of [true, false]) {
  onSqs(`a host blocked for three times the visibility timeout keeps its messages, ${ordered ? "FIFO" : "standard"}`, {
    timeoutMs: 60_000,
  }, async ({ url }, context) => {
    const topic = fresh("t");
    const told: string[] = [];
    const onDisconnect = () => void told.push("down");
    const broker = makeBroker(context, url, { isolation: "worker", ordered, prefetch: 8, onDisconnect });
    await broker.publishAll(topic, Array.from({ length: 8 }, (_, n) => ({ type: "n", subject: `s${n}`, data: n })));
    const stream = broker.subscribe(topic);
    const held = [(await stream.next()).value!];
    while (held.length < 8) held.push((await stream.next()).value!);
    const rival = new MemberProcess(context, { broker: { ...options(url), ordered }, topic, mode: "consume" });
    await rival.ready();
    const end = performance.now() + 3 * VISIBILITY_MS;
    while (performance.now() < end);
    for (const delivery of held) assert.equal(await delivery.ack({ confirm: true }), "settled");
    assert.deepEqual(held.map(({ attempt }) => attempt), Array(8).fill(0));
    await rival.leave();
    assert.deepEqual(rival.lines.filter(({ what }) => what === "got"), []);
    assert.deepEqual(told, []);
  });
}

onSqs(
  "a host that hangs for longer than maxStallMs loses its messages to another consumer, and its settles are stale",
  {
    timeoutMs: 60_000,
  },
  async ({ url }, context) => {
    const topic = fresh("t");
    const broker = makeBroker(context, url, { isolation: "worker", maxStallMs: 1_000, visibilityTimeoutMs: 30_000 });
    await broker.publishAll(topic, [0, 1].map((n) => ({ type: "n", subject: `s${n}`, data: n })));
    const stream = broker.subscribe(topic);
    const held = [(await stream.next()).value!, (await stream.next()).value!];
    const rival = new MemberProcess(context, { broker: options(url), topic, mode: "consume" });
    await rival.ready();
    const end = performance.now() + 5_000;
    while (performance.now() < end);
    // Long before their visibility timeout.
    await until(() => rival.lines.filter(({ what }) => what === "settled").length === 2);
    for (const delivery of held) assert.equal(await delivery.ack({ confirm: true }), "stale");
  },
);

test("a frozen consumer loses its messages to another; its late settle is stale and takes nothing away (COR-12)", {
  timeoutMs: 60_000,
}, async (context) => {
  const endpoint = await startEndpoint(context);
  const topic = fresh("t");
  const publisher = makeBroker(context, endpoint.url);
  await publisher.publish(topic, { type: "n", subject: "s", data: 0 });
  const plan = {
    broker: { ...options(endpoint.url), callTimeoutMs: 2_000 },
    topic,
    mode: "consume",
    workMs: 1,
  } as const;
  // It is frozen with its message in hand.
  endpoint.hook = ({ action }) => action === "DeleteMessageBatch" ? new Promise(() => {}) : undefined;
  const frozen = new MemberProcess(context, plan);
  await frozen.child.output('"got"', 30_000);
  await until(() => endpoint.callsOf("DeleteMessageBatch").length > 0);
  frozen.child.kill("SIGSTOP");
  const stream = publisher.subscribe(topic);
  const { value: delivery } = await stream.next();
  assert.equal(delivery!.attempt, 1);
  endpoint.hook = () => undefined;
  frozen.child.kill("SIGCONT");
  await frozen.child.output('"stale"', 30_000);
  assert.equal(endpoint.queues.get(`${topic}.fifo`)!.inFlight, 1, "it is ours still");
  assert.equal(await delivery!.ack({ confirm: true }), "settled");
});

test("publishing and consuming in a process of its own writes no warning, and the process ends by itself (RUN-06)", async (context) => {
  const endpoint = await startEndpoint(context);
  const member = new MemberProcess(context, { broker: options(endpoint.url), topic: fresh("t"), mode: "once" });
  const { code, stderr } = await member.child.done;
  assert.deepEqual([code, stderr], [0, ""]);
});

test("without credentials and without a region connecting says which of them is missing", async (context) => {
  const endpoint = await startEndpoint(context);
  const nothing = {
    AWS_ACCESS_KEY_ID: "",
    AWS_SECRET_ACCESS_KEY: "",
    AWS_REGION: "",
    AWS_PROFILE: "",
    AWS_EC2_METADATA_DISABLED: "true",
    AWS_CONFIG_FILE: "/dev/null",
    AWS_SHARED_CREDENTIALS_FILE: "/dev/null",
    AWS_WEB_IDENTITY_TOKEN_FILE: "",
    AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: "",
    AWS_CONTAINER_CREDENTIALS_FULL_URI: "",
  };
  const { client: _client, ...rest } = options(endpoint.url);
  const { region: _region, ...other } = options(endpoint.url);
  for (
    const [broker, code, text] of [[rest, "authentication-failed", "credentials"], [other, "invalid-option", "region"]]
  ) {
    const member = new MemberProcess(
      context,
      { broker: broker as SqsBrokerOptions, topic: "t", mode: "connect" },
      nothing,
    );
    await member.child.done;
    const [line] = member.lines;
    assert.ok(line?.what === "failed", member.child.stderr);
    assert.equal(line.code, code);
    assert.ok(line.text.includes(text as string) && !line.text.includes("127.0.0.1"), line.text);
  }
  assert.deepEqual(endpoint.calls, []);
});
