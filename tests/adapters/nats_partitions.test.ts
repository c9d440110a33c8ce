import assert from "node:assert/strict";
import { isEdaError } from "../../core/errors.ts";
import { partitionOf } from "../../adapters/nats/names.ts";
import { fresh, onLeg, onLegs, until } from "../support/test.ts";
import { assertFirstInOrder, Collector, events, natsBroker } from "./nats_rig.ts";
import { bodies, natsAdmin, natsNames, openNats, publish, Reader } from "./nats_support.ts";

onLegs(["nats", "nats29", "nats215"], (onEach) => {
  onEach("a subject keeps its partition, and the stream says how many there are", async ({ url }, context) => {
    const n = natsNames();
    const { transport } = await openNats(context, { url, partitions: 4 });
    for (let s = 0; s < 40; s++) await publish(transport, n.topic, [`m${s}`], `s${s}`);
    const admin = await natsAdmin(context, url);
    const { config } = await admin.stream(n.topic);
    assert.deepEqual([...config["subjects"] as string[]].sort(), [0, 1, 2, 3].map((p) => `${n.topic}.${p}.*`));
    for (let seq = 1; seq <= 40; seq++) {
      const { subject } = await admin.message(n.topic, seq);
      assert.equal(subject, `${n.topic}.${partitionOf(`s${seq - 1}`, 4)}.s${seq - 1}`);
    }
    const reader = new Reader(transport, n.topic, n.group);
    const raws = await reader.take(40);
    for (const raw of raws) {
      const at = Number(new TextDecoder().decode(raw.body as Uint8Array).slice(1));
      assert.equal(raw.partition, partitionOf(`s${at}`, 4));
    }
    assert.equal(new Set(raws.map(({ partition }) => partition)).size, 4);
    assert.deepEqual(await reader.ack(raws), raws.map(() => "settled"));
    assert.equal(await admin.inFlight(n.topic, n.group), 0);
  });

  onEach("another number of partitions is refused, whoever comes first, to publish or to read", async (
    { url },
    context,
  ) => {
    for (const [first, second] of [[1, 3], [3, 1], [3, 4], [4, 3]] as const) {
      const n = natsNames();
      const one = await openNats(context, { url, partitions: first });
      await publish(one.transport, n.topic, ["m1"]);
      const two = await openNats(context, { url, partitions: second });
      const mismatch = (error: unknown) =>
        isEdaError(error) && error.code === "partition-mismatch" && error.details["recorded"] === first &&
        error.details["given"] === second;
      await assert.rejects(two.transport.send(n.topic, [{ body: "m2" }]), mismatch);
      await assert.rejects(new Reader(two.transport, n.topic, n.group).fetch(200), mismatch);
    }
  });
});

const onNats = onLeg("nats");

onNats("partitions spread over members, move when one comes or goes, and order holds", {
  timeoutMs: 60_000,
}, async ({ url }, context) => {
  const topic = fresh("t");
  const options = { url, partitions: 6, ownerLeaseMs: 3_000, isolation: "inline" } as const;
  const publisher = natsBroker(context, options);
  const sequence: number[] = [];
  const member = () => {
    const broker = natsBroker(context, options);
    return {
      broker,
      collector: new Collector(context, broker, async (delivery) => {
        sequence.push(delivery.envelope.data as number);
        await delivery.ack({ confirm: true });
      }, topic),
    };
  };
  const admin = await natsAdmin(context, url);
  const owners = async () => {
    const found = new Map<string, number>();
    for (let p = 0; p < 6; p++) {
      const reply = await admin.api<{ message: { data: string } }>("STREAM.MSG.GET.KV_xsm", {
        last_by_subj: `$KV.xsm.owner.${topic}.billing.${p}`,
      }).catch(() => undefined);
      const owner = reply === undefined ? "" : JSON.parse(atob(reply.message.data)).owner as string;
      if (owner !== "") found.set(owner, (found.get(owner) ?? 0) + 1);
    }
    return [...found.values()].sort();
  };
  const first = member();
  await until(async () => (await owners()).join() === "6", { what: "one owns all" });
  await publisher.publishAll(topic, events(0, 200, 20));
  const second = member();
  const third = member();
  await until(async () => (await owners()).join() === "2,2,2", { what: "three share", timeoutMs: 20_000 });
  await publisher.publishAll(topic, events(200, 400, 20));
  await second.broker.close();
  await publisher.publishAll(topic, events(400, 600, 20));
  await until(() => new Set(sequence).size === 600, { what: "all came", timeoutMs: 20_000 });
  assert.equal(sequence.length, 600, "nothing came twice");
  assertFirstInOrder(sequence, 20);
  assert.ok(first.collector.got.length > 0 && third.collector.got.length > 0);
});

onNats("seven of eight partitions hold their share, the last one flows", async ({ url }, context) => {
  const n = natsNames();
  const { transport } = await openNats(context, { url, partitions: 8 });
  const subjects = new Map<number, string>();
  for (let s = 0; subjects.size < 8; s++) {
    const partition = partitionOf(`s${s}`, 8);
    if (!subjects.has(partition)) subjects.set(partition, `s${s}`);
  }
  for (let p = 0; p < 8; p++) {
    await publish(
      transport,
      n.topic,
      bodies(1, 30).map((b) => `${p} ${b}`),
      subjects.get(p)!,
    );
  }
  const ask = (max: number, waitMs = 500) =>
    transport.fetch(n.topic, { group: n.group, max, window: 64, waitMs, signal: new AbortController().signal });
  const seen = new Array<number>(8).fill(0);
  for (let rounds = 0; seen[7]! < 30 && rounds < 200; rounds++) {
    const raws = await ask(64);
    for (const { partition } of raws) seen[partition]!++;
    const last = raws.filter(({ partition }) => partition === 7);
    await transport.ack(n.topic, n.group, last.map((raw) => raw.native));
  }
  assert.deepEqual(seen, [8, 8, 8, 8, 8, 8, 8, 30]);
});
