import assert from "node:assert/strict";
import { SqsBroker, type SqsBrokerOptions } from "../../adapters/sqs/mod.ts";
import type { EnvelopeInit } from "../../core/envelope.ts";
import { SqsClient } from "../adapters/sqs_client.ts";
import { EMULATED } from "../adapters/sqs_harness.ts";
import { fresh, type TestContext } from "../support/test.ts";
import { drain, wireOf } from "./ours.ts";
import { onReference, Peer } from "./peer.ts";

const both = onReference("sqs");

function ours(context: TestContext, endpoint: string, options: SqsBrokerOptions = {}): SqsBroker {
  const broker = new SqsBroker({ ...EMULATED, endpoint, source: "/ours", group: "ours", logger: false, ...options });
  context.cleanup(() => broker.close({ drainMs: 1_000 }));
  return broker;
}

/** What may stand in an envelope on either side, in the names of both; subjects as SQS takes them for message groups. */
const SAMPLES: readonly (EnvelopeInit & { readonly type: string })[] = [
  { type: "shop.plain", subject: "o-1", data: { total: 42, lines: [{ sku: "a", count: 2 }], open: true, note: null } },
  { type: "shop.unicode", subject: "o-1", data: { "ключ": "\u0000 \u2028 🚀 \ufffe \\ &lt; %E8" } },
  { type: "shop.subject.none", data: { a: 1 } },
  { type: "shop.extensions", subject: "o-2", extensions: { yes: true, zero: 0, text: "" }, data: {} },
  { type: "shop.data.list", subject: "o-2", data: [1, "2", false, null, {}] },
  { type: "shop.chain", subject: "o-3", correlationid: "c-1", causationid: "e-1", data: {} },
  { type: "shop.large", subject: "o-3", data: { text: "x".repeat(200_000) } },
];

const names = (ordered: boolean): string => fresh("shared") + (ordered ? ".fifo" : "");
const typeOf = (object: object): string => String((object as { readonly type?: unknown }).type);
const byType = (all: readonly object[]): object[] => [...all].sort((a, b) => typeOf(a) < typeOf(b) ? -1 : 1);

for (const ordered of [true, false]) {
  const kind = ordered ? "FIFO" : "standard";

  both(
    `what the reference publishes on a ${kind} queue is read here as it stands`,
    async ({ url, python }, context) => {
      const topic = names(ordered);
      await new SqsClient(url).queue(topic);
      const peer = new Peer(context, python, { endpoint: url });
      const args = SAMPLES.map(({ extensions = {}, ...init }) => ({ ...init, source: "/theirs", extensions }));
      const sent = await peer.publish(topic, args);
      const read = await drain(ours(context, url, { ordered }), topic, sent.length);
      assert.deepEqual(byType(read.map((one) => wireOf(one) as object)), byType(sent));
      assert.ok(read.every(({ attempt }) => attempt === 0));
    },
  );

  both(
    `what is published here on a ${kind} queue is read by the reference as it stands`,
    async ({ url, python }, context) => {
      const topic = names(ordered);
      const broker = ours(context, url, { ordered });
      const envelopes = await broker.publishAll(topic, SAMPLES);
      const sent = envelopes.map((envelope) => JSON.parse(JSON.stringify(envelope)) as Record<string, unknown>);
      const peer = new Peer(context, python, { endpoint: url });
      const read = await peer.drain(topic, sent.length);
      const seen = sent.map((object) => ({ datacontenttype: "application/json", ...object }));
      assert.deepEqual(byType(read.map(({ envelope }) => envelope)), byType(seen));
      assert.deepEqual(await peer.refused(), []);
    },
  );
}

both("on a FIFO queue the order of each subject stands, whoever publishes", async ({ url, python }, context) => {
  const topic = names(true);
  await new SqsClient(url).queue(topic);
  const peer = new Peer(context, python, { endpoint: url });
  const broker = ours(context, url);
  const numbered = (source: string) =>
    Array.from({ length: 30 }, (_, n) => ({ type: "n", source, subject: `${source}-${n % 3}`, data: { n } }));
  await Promise.all([peer.publish(topic, numbered("theirs")), broker.publishAll(topic, numbered("ours"))]);
  const read = await drain(broker, topic, 60);
  for (const subject of new Set(read.map(({ envelope }) => envelope.subject))) {
    const lane = read.filter(({ envelope }) => envelope.subject === subject)
      .map(({ envelope }) => (envelope.data as { n: number }).n);
    assert.equal(lane.length, 10);
    assert.deepEqual(lane, [...lane].sort((a, b) => a - b));
  }
});

both(
  "a queue is shared with the reference: what it took and did not settle comes here, counted",
  async ({ url, python }, context) => {
    const topic = names(true);
    const broker = ours(context, url);
    await broker.publish(topic, { type: "n", subject: "s", data: 1 });
    const peer = new Peer(context, python, { endpoint: url, visibility_timeout_s: 2 });
    assert.equal((await peer.take(topic, 1)).length, 1);
    await peer.kill();
    const [delivery] = await drain(broker, topic, 1);
    assert.equal(delivery!.attempt, 1);
  },
);
