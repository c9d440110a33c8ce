import assert from "node:assert/strict";
import { NatsJetStreamBroker } from "../../adapters/nats/mod.ts";
import { type EdaError, isEdaError, type PublishBatchError } from "../../core/errors.ts";
import type { SendOutcome } from "../../core/transport.ts";
import { fresh, onLeg, onLegs, onServer, startProxy } from "../support/test.ts";
import { bodies, natsAdmin, natsNames, openNats, publish, Reader } from "./nats_support.ts";

const codeOf = (outcome: SendOutcome): string | undefined => (outcome as EdaError | undefined)?.code;

const envelope = (id: string, source = "/shop"): string =>
  `{"specversion":"1.0","id":${JSON.stringify(id)},"source":${JSON.stringify(source)},"type":"t"}`;

onLegs(["nats", "nats29", "nats215"], (onEach) => {
  onEach("a message stands in the stream as the reference system writes it", async ({ url }, context) => {
    const n = natsNames();
    const { transport } = await openNats(context, { url });
    await publish(transport, n.topic, [envelope("e-1")], "a.b *>c d");
    const admin = await natsAdmin(context, url);
    const { subject, data, headers } = await admin.message(n.topic, 1);
    assert.equal(subject, `${n.topic}.a_b___c_d`);
    assert.equal(data, envelope("e-1"));
    assert.match(headers, /^content-type: application\/cloudevents\+json\r$/mi);
    assert.match(headers, /^Nats-Msg-Id: [0-9a-f]{40}\r$/m);
    assert.deepEqual((await admin.stream(n.topic)).config["subjects"], [`${n.topic}.>`]);
  });

  onEach("the same event published again is stored once; the same id of another source is another event", async (
    { url },
    context,
  ) => {
    const n = natsNames();
    const { transport } = await openNats(context, { url });
    const send = (body: string, replay?: number) =>
      transport.send(n.topic, [replay === undefined ? { body } : { body, replay }]);
    assert.deepEqual(await send(envelope("e-1")), [undefined]);
    assert.deepEqual(await send(envelope("e-1")), [undefined]);
    assert.deepEqual(await send(envelope("e-1", "/other")), [undefined]);
    const admin = await natsAdmin(context, url);
    assert.equal((await admin.stream(n.topic)).state.messages, 2);
    // A replay is not the event's duplicate, and the next replay not the first one's.
    assert.deepEqual(await send(envelope("e-1"), 1), [undefined]);
    assert.deepEqual(await send(envelope("e-1"), 2), [undefined]);
    assert.equal((await admin.stream(n.topic)).state.messages, 4);
    // One that was taken for a duplicate did not arrive, so it is no success.
    assert.deepEqual((await send(envelope("e-1"), 2)).map(codeOf), ["publish-refused"]);
  });

  onEach("a full stream that refuses is a refusal, and only for what it refused", async ({ url }, context) => {
    const n = natsNames();
    const admin = await natsAdmin(context, url);
    const limits = { max_msgs: 2, discard: "new", max_msg_size: 200 };
    await admin.api(`STREAM.CREATE.${n.topic}`, { name: n.topic, subjects: [`${n.topic}.>`], ...limits });
    const { transport } = await openNats(context, { url });
    const outcomes = await transport.send(n.topic, [
      { body: "m1", subject: "a" },
      { body: "x".repeat(500), subject: "a" },
      { body: "m2", subject: "a" },
      { body: "m3", subject: "a" },
    ]);
    assert.deepEqual(outcomes.map(codeOf), [undefined, "publish-refused", undefined, "publish-refused"]);
    assert.match((outcomes[1] as Error).message, /max_msg_size/);
    assert.match((outcomes[3] as Error).message, /full/);
    assert.ok(!JSON.stringify(outcomes.map(String)).includes("xxx"));
  });

  onEach("a message over max_payload is refused unsent, and the connection goes on", async ({ url }, context) => {
    const n = natsNames();
    const { transport } = await openNats(context, { url });
    const outcomes = await transport.send(n.topic, [{ body: "x".repeat(1_048_577) }, { body: "m1" }]);
    assert.deepEqual(outcomes.map(codeOf), ["publish-refused", undefined]);
    assert.match((outcomes[0] as Error).message, /max_payload/);
  });

  onEach("a stream of another name that takes the subjects is an error that says so", async ({ url }, context) => {
    const n = natsNames();
    const admin = await natsAdmin(context, url);
    await admin.api(`STREAM.CREATE.${n.topic}other`, { name: `${n.topic}other`, subjects: [`${n.topic}.*`] });
    const { transport } = await openNats(context, { url });
    await assert.rejects(
      transport.send(n.topic, [{ body: "m1" }]),
      (error) => isEdaError(error) && error.code === "invalid-option" && /another name/.test(error.message),
    );
  });

  onEach("topics whose names a server would not take are written so that it does, and apart", async (
    { url },
    context,
  ) => {
    const base = fresh("t");
    const { transport } = await openNats(context, { url, ordered: false });
    const admin = await natsAdmin(context, url);
    const topics = [`${base}.dlq`, base, `${base} with space`, `${base}*`, `${base}>`, `${base}/a\\b`, `${base}=2E`];
    for (const topic of topics) await publish(transport, topic, [`in ${topic}`], "a");
    for (const topic of topics) {
      const [raw] = await new Reader(transport, topic, "g.1 *").take(1);
      assert.equal(new TextDecoder().decode(raw!.body as Uint8Array), `in ${topic}`);
    }
    assert.equal((await admin.stream(`${base}=2Edlq`)).state.messages, 1);
    assert.equal((await admin.stream(`${base}=3D2E`)).state.messages, 1);
    assert.equal((await admin.durable(base, "g=2E1=20=2A")).num_ack_pending, 1);
    await assert.rejects(
      transport.send("😀".repeat(100), [{ body: "m1" }]),
      (error) => isEdaError(error) && error.code === "invalid-option" && /too long/.test(error.message),
    );
  });
});

const onNats = onLeg("nats");

onNats("publishAll stops a subject at its first failure, although the server takes what follows", async (
  { url },
  context,
) => {
  const n = natsNames();
  const admin = await natsAdmin(context, url);
  await admin.api(`STREAM.CREATE.${n.topic}`, { name: n.topic, subjects: [`${n.topic}.>`], max_msg_size: 400 });
  const broker = new NatsJetStreamBroker({ url, source: "/s", isolation: "inline" });
  context.cleanup(() => broker.close());
  const event = (subject: string, data: unknown) => ({ type: "t", subject, data });
  await assert.rejects(
    broker.publishAll(n.topic, [event("a", 1), event("a", "x".repeat(500)), event("a", 2), event("b", 1)]),
    (error) => {
      const { outcomes } = error as PublishBatchError;
      assert.deepEqual(outcomes.map((outcome) => outcome.ok), [true, false, false, true]);
      assert.deepEqual(
        outcomes.map((outcome) => outcome.ok ? undefined : outcome.error.details["unsent"]),
        [undefined, undefined, true, undefined],
      );
      return true;
    },
  );
  assert.equal((await admin.stream(n.topic)).state.messages, 2);
});

onNats("with create: false nothing is made, and what is missing is named", async ({ url }, context) => {
  const n = natsNames();
  const admin = await natsAdmin(context, url);
  const { transport } = await openNats(context, { url, create: false, bucket: n.topic });
  const missing = (what: RegExp) => (error: unknown) =>
    isEdaError(error) && error.code === "broker-unavailable" && what.test(error.message);
  await assert.rejects(transport.send(n.topic, [{ body: "m1" }]), missing(/no stream/));
  const reader = new Reader(transport, n.topic, n.group);
  await assert.rejects(reader.fetch(300), missing(/no stream/));
  await assert.rejects(admin.stream(n.topic));
  await admin.api(`STREAM.CREATE.${n.topic}`, { name: n.topic, subjects: [`${n.topic}.>`] });
  await assert.rejects(reader.fetch(300), missing(/bucket/));
  assert.deepEqual(await transport.send(n.topic, [{ body: "m1" }]), [undefined]);
});

onNats("a stream that removes messages by itself is named", async ({ url }, context) => {
  const n = natsNames();
  const admin = await natsAdmin(context, url);
  const limits = { max_age: 3_600e9, max_msgs: 1_000, duplicate_window: 60e9 };
  await admin.api(`STREAM.CREATE.${n.topic}`, { name: n.topic, subjects: [`${n.topic}.>`], ...limits });
  const { transport, listener } = await openNats(context, { url });
  await publish(transport, n.topic, ["m1"]);
  assert.equal(listener.count("signal", "stream-limits"), 1);
});

onNats("an answer of somebody else is not taken for the stream's", async ({ url }, context) => {
  const n = natsNames();
  const admin = await natsAdmin(context, url);
  const { transport } = await openNats(context, { url });
  await publish(transport, n.topic, ["m1"], "a");
  admin.client.subscribe(`${n.topic}.>`, {
    callback: (_error, message) => void message.respond(JSON.stringify({ stored: false })),
  });
  await admin.client.flush();
  const sent = await transport.send(n.topic, bodies(2, 20).map((body) => ({ body, subject: "a" })));
  assert.ok(sent.every((outcome) => outcome === undefined));
  assert.equal((await admin.stream(n.topic)).state.messages, 20);
});

onNats("a connection lost before the answer leaves the outcome unknown, in time", async ({ url }, context) => {
  const n = natsNames();
  const proxy = await startProxy({ port: Number(new URL(url).port) });
  context.cleanup(() => proxy.close());
  const { transport, listener } = await openNats(context, { url: proxy.url(url), publishTimeoutMs: 1_000 });
  await publish(transport, n.topic, ["m1"]);
  await proxy.blackHole("down");
  const from = performance.now();
  const outcomes = await transport.send(n.topic, [{ body: "m2" }]);
  assert.deepEqual(outcomes.map(codeOf), ["outcome-unknown"]);
  assert.ok(performance.now() - from < 1_500);
  await proxy.heal();
  await transport.open(listener);
  // Published again it is stored once: it has the same id.
  assert.deepEqual(await transport.send(n.topic, [{ body: "m2" }]), [undefined]);
  const admin = await natsAdmin(context, url);
  assert.equal((await admin.stream(n.topic)).state.messages, 2);
});

const withNats = onServer("nats");

withNats("a server without JetStream, and an account without it, are named", async (start, context) => {
  const server = await start({
    files: {
      "nats.conf": "accounts { A { jetstream: enabled, users: [{user: a, password: a}] }, " +
        "B { users: [{user: b, password: b}] } }",
    },
    args: ["-c", "{dir}/nats.conf"],
  });
  const address = server.url.replace("://", "://b:b@");
  const { transport } = await openNats(context, { url: address });
  await assert.rejects(
    transport.send(fresh("t"), [{ body: "m1" }]),
    (error) =>
      isEdaError(error) && error.code === "server-unsupported" && /JetStream is not enabled/.test(error.message),
  );
});

withNats("a limit of the account refuses what is over it", async (start, context) => {
  const server = await start({
    files: {
      "nats.conf": "accounts { A { jetstream: {max_file: 20000, max_mem: 20000, max_streams: 3}, " +
        "users: [{user: a, password: a}] } }",
    },
    args: ["-c", "{dir}/nats.conf"],
  });
  const { transport } = await openNats(context, { url: server.url.replace("://", "://a:a@") });
  const topic = fresh("t");
  const outcomes = await transport.send(topic, bodies(1, 40).map((body) => ({ body: `${body} ${"x".repeat(1_000)}` })));
  const refused = outcomes.filter((outcome) => outcome !== undefined);
  assert.ok(refused.length > 10 && refused.length < 40);
  assert.ok(refused.every((outcome) => codeOf(outcome) === "publish-refused"));
  await publish(transport, fresh("t"), ["x"]).catch(() => {});
  await publish(transport, fresh("t"), ["x"]).catch(() => {});
  await assert.rejects(
    transport.send(fresh("t"), [{ body: "m1" }]),
    (error) => isEdaError(error) && error.code === "broker-unavailable" && /limit/.test(error.message),
  );
});
