import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { KafkaBroker, type KafkaBrokerOptions } from "../../adapters/kafka/mod.ts";
import { createTransport } from "../../adapters/kafka/transport.ts";
import type { Delivery, UndecodableRecord } from "../../core/contract.ts";
import { isEdaError } from "../../core/errors.ts";
import type { Raw } from "../../core/transport.ts";
import { openKafkaDoor } from "../support/kafka_door.ts";
import { fresh, type LegInfo, onLeg, onServer, type TestContext, until } from "../support/test.ts";
import { type Hand, openHand } from "./kafka_support.ts";

const onKafka = onLeg("kafka");
const OPTIONS = { sanitize: false, timeoutMs: 60_000 } as const;

interface Rig {
  readonly hand: Hand;
  readonly topic: string;
  readonly group: string;
  broker(options?: KafkaBrokerOptions): KafkaBroker;
}

async function rig({ url }: Pick<LegInfo, "url">, context: TestContext): Promise<Rig> {
  const hand = await openHand(url);
  context.cleanup(() => hand.close());
  const group = fresh("g");
  return {
    hand,
    topic: fresh("t"),
    group,
    broker: (options = {}) => {
      const broker = new KafkaBroker({
        brokers: url.split(","),
        group,
        source: "/c",
        logger: false,
        isolation: "inline",
        ...options,
      });
      context.cleanup(() => broker.close({ drainMs: 200 }));
      return broker;
    },
  };
}

const event = (n: number, subject = "s") => ({ type: "n", subject, data: n });
const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

async function take(broker: KafkaBroker, topic: string, count: number): Promise<Delivery[]> {
  const taken: Delivery[] = [];
  for await (const delivery of broker.subscribe(topic)) {
    taken.push(delivery);
    if (taken.length === count) break;
  }
  return taken;
}

/** Bytes in Snappy's format as Kafka's clients frame it, compressed by nothing: one literal. */
function snappy(bytes: Buffer): Buffer {
  const int = (value: number): Buffer => {
    const four = Buffer.alloc(4);
    four.writeInt32BE(value);
    return four;
  };
  assert.ok(bytes.length > 60 && bytes.length < 128);
  const block = Buffer.concat([Buffer.from([bytes.length, 60 << 2, bytes.length - 1]), bytes]);
  return Buffer.concat([Buffer.from([0x82]), Buffer.from("SNAPPY\0"), int(1), int(1), int(block.length), block]);
}

/** Reads on in the background; what it is given, in order. */
function collect(context: TestContext, broker: KafkaBroker, topic: string, handle: (delivery: Delivery) => unknown) {
  const stop = new AbortController();
  const seen: number[] = [];
  const reading = (async () => {
    for await (const delivery of broker.subscribe(topic, { signal: stop.signal })) {
      seen.push(delivery.envelope.data as number);
      await handle(delivery);
    }
  })();
  reading.catch(() => {});
  context.cleanup(async () => {
    stop.abort();
    await reading.catch(() => {});
  });
  return { seen, reading };
}

onKafka(
  "what is settled is committed as one past it, and never past a gap (KAF-01, KAF-03)",
  OPTIONS,
  async (server, context) => {
    const { hand, topic, group, broker } = await rig(server, context);
    const reader = broker();
    await reader.publishAll(topic, numbers(4).map((n) => event(n, `s${n}`)));
    const [one, two, three, four] = await take(reader, topic, 4);
    assert.equal(await three!.ack({ confirm: true }), "settled");
    assert.equal(await two!.ack({ confirm: true }), "settled");
    assert.deepEqual(await hand.committed(topic, group), [-1n]);
    assert.equal(await one!.ack({ confirm: true }), "settled");
    assert.deepEqual(await hand.committed(topic, group), [3n]);
    assert.equal(await four!.drop("given up", { confirm: true }), "settled");
    assert.deepEqual(await hand.committed(topic, group), [4n]);
  },
);

onKafka(
  "a retried message is not committed, nor what follows it, and comes before it (KAF-04, KAF-05, KAF-13)",
  OPTIONS,
  async (server, context) => {
    const { hand, topic, group, broker } = await rig(server, context);
    const reader = broker();
    await reader.publishAll(topic, numbers(5).map((n) => event(n, n === 3 ? "other" : "s")));
    const log: string[] = [];
    for await (const delivery of reader.subscribe(topic)) {
      const n = delivery.envelope.data as number;
      log.push(`${n}(${delivery.attempt})`);
      if (n === 1 && delivery.attempt === 0) await delivery.retry({ delayMs: 400 });
      else await delivery.ack({ confirm: true });
      if (n === 3) assert.deepEqual(await hand.committed(topic, group), [1n]);
      if (log.length === 6) break;
    }
    assert.deepEqual(log, ["0(0)", "1(0)", "3(0)", "1(1)", "2(0)", "4(0)"]);
    assert.deepEqual(await hand.committed(topic, group), [5n]);
  },
);

onKafka(
  "a crash brings back what was not settled, from the first unsettled message on",
  OPTIONS,
  async (server, context) => {
    const { topic, broker } = await rig(server, context);
    const first = broker();
    await first.publishAll(topic, numbers(6).map((n) => event(n, `s${n}`)));
    const taken = await take(first, topic, 6);
    for (const n of [0, 1, 3, 5]) await taken[n]!.ack({ confirm: true });
    await first.close();
    const again = await take(broker(), topic, 4);
    assert.deepEqual(again.map(({ envelope }) => envelope.data), [2, 3, 4, 5]);
  },
);

onKafka(
  "tombstones are settled with one signal, empty records are recorded, and both are committed (KAF-14)",
  OPTIONS,
  async (server, context) => {
    const { hand, topic, group, broker } = await rig(server, context);
    const records: UndecodableRecord[] = [];
    const reader = broker({ deadLetters: { recordUndecodable: (record) => void records.push(record) } });
    await reader.publish(topic, event(0));
    await hand.write(topic, [{ key: "k", value: null }, { key: "k", value: Buffer.alloc(0) }]);
    await reader.publish(topic, event(1));
    const { seen } = collect(context, reader, topic, (delivery) => delivery.ack({ confirm: true }));
    await until(async () => (await hand.committed(topic, group))[0] === 4n, { what: "all four to be committed" });
    assert.deepEqual(seen, [0, 1]);
    assert.equal(records.length, 1);
    assert.equal(records[0]!.bytes, 0);
    assert.equal(reader.health().counters["missing-payload"], 1);
  },
);

onKafka("records in binary mode are read", OPTIONS, async (server, context) => {
  const { hand, topic, broker } = await rig(server, context);
  const headers = {
    ce_specversion: "1.0",
    ce_id: "b",
    ce_source: "/b",
    ce_type: "t",
    "content-type": "application/json",
  };
  await hand.write(topic, [{ key: "s", value: '{"n":1}', headers: { ...headers, ce_subject: "s" } }]);
  const [delivery] = await take(broker(), topic, 1);
  const { id, source, type, subject, data } = delivery!.envelope;
  assert.deepEqual({ id, source, type, subject, data }, {
    id: "b",
    source: "/b",
    type: "t",
    subject: "s",
    data: { n: 1 },
  });
  await delivery!.ack({ confirm: true });
});

onKafka(
  "a partition that nothing was committed of delivers what comes while others are full (KAF-06)",
  OPTIONS,
  async (server, context) => {
    const { hand, topic, broker } = await rig(server, context);
    await hand.make(topic, 2);
    const reader = broker({ prefetch: 8 });
    // Far more than one buffer holds, all of one subject that nobody settles.
    const large = "x".repeat(50_000);
    await reader.publishAll(topic, numbers(120).map(() => ({ type: "n", subject: "slow", data: large })));
    const held: Delivery[] = [];
    const got: unknown[] = [];
    collect(context, reader, topic, (delivery) => {
      if (delivery.envelope.subject === "slow") return void held.push(delivery);
      got.push(delivery.envelope.data);
      return delivery.ack();
    });
    await until(() => held.length === 4, { what: "the slow one's share" });
    // One of these is in the other partition.
    const others = numbers(20).map((n) => ({ type: "n", subject: `other-${n}`, data: n }));
    await reader.publishAll(topic, others);
    await until(() => got.length > 0, { what: "something of the other partition" });
    assert.equal(held.length, 4);
    for (let at = 0; at < 120; at++) {
      await until(() => held.length > at, { what: `message ${at} of the slow one` });
      await held[at]!.ack();
    }
    await until(() => got.length === 20, { what: "all of the others" });
  },
);

onKafka(
  "a partition is read no further than maxUncommitted past its oldest unsettled message",
  OPTIONS,
  async (server, context) => {
    const { topic, broker } = await rig(server, context);
    const reader = broker({ prefetch: 500, maxUncommitted: 10 });
    await reader.publishAll(topic, numbers(100).map((n) => event(n, `s${n}`)));
    let oldest: Delivery | undefined;
    const { seen } = collect(context, reader, topic, (delivery) => {
      if (oldest === undefined) return void (oldest = delivery);
      return delivery.ack({ confirm: true });
    });
    await until(() => seen.length === 10);
    await reader.publish(topic, event(100, "last"));
    assert.deepEqual(seen, numbers(10));
    await oldest!.ack();
    await until(() => seen.length === 101);
    assert.deepEqual(seen, numbers(101));
  },
);

onKafka(
  "a member that joins takes its share; what was unsettled there is lost here, and its settles change nothing (KAF-12, KAF-15)",
  OPTIONS,
  async (server, context) => {
    const { hand, topic, group, broker } = await rig(server, context);
    const count = 160;
    const first = broker({ partitions: 8, prefetch: 80 });
    await first.publishAll(topic, numbers(count).map((n) => event(n, `s${n % 40}`)));
    const held: Delivery[] = [];
    collect(context, first, topic, (delivery) => void held.push(delivery));
    await until(() => held.length >= 40, { what: "the first member to hold some of each" });
    const before = held.length;
    const second = broker({ partitions: 8, prefetch: 1_000 });
    const theirs = new Set<number>();
    collect(context, second, topic, async (delivery) => {
      theirs.add(delivery.envelope.data as number);
      await delivery.ack({ confirm: true });
    });
    await until(() => theirs.size > 0 && held.some(({ signal }) => signal.aborted), { what: "the share to move" });
    await until(() => second.health().topics[0]?.lag === 0, { what: "the second to be through" });
    const committed = await hand.committed(topic, group);
    for (const delivery of held) {
      const n = delivery.envelope.data as number;
      assert.equal(delivery.signal.aborted, theirs.has(n), `${n} is held by one of them`);
      assert.equal(await delivery.ack({ confirm: true }), theirs.has(n) ? "stale" : "settled");
    }
    const after = await hand.committed(topic, group);
    after.forEach((offset, partition) =>
      assert.ok(offset >= committed[partition]!, `partition ${partition} went back`)
    );
    // What stayed with the first one goes on, and comes once.
    for (let at = before; at < held.length; at++) await held[at]!.ack();
    const ends = await hand.ends(topic);
    const settleRest = async (): Promise<boolean> => {
      for (const delivery of held) void delivery.ack();
      const now = await hand.committed(topic, group);
      return now.every((offset, partition) => offset === ends[partition] || ends[partition] === 0n);
    };
    await until(settleRest, { what: "all to be committed", timeoutMs: 20_000 });
    const mine = held.filter(({ signal }) => !signal.aborted).map(({ envelope }) => envelope.data as number);
    assert.equal(new Set(mine).size, mine.length, "nothing that stayed came twice");
    assert.deepEqual([...mine, ...theirs].sort((a, b) => a - b), numbers(count));
  },
);

onKafka("a new topic of the group does not disturb the others", OPTIONS, async (server, context) => {
  const { topic, broker } = await rig(server, context);
  const reader = broker({ prefetch: 10 });
  await reader.publishAll(topic, numbers(20).map((n) => event(n)));
  const held: Delivery[] = [];
  collect(context, reader, topic, (delivery) => void held.push(delivery));
  await until(() => held.length === 10);
  const other = `${topic}-other`;
  await reader.publish(other, event(7));
  const { seen } = collect(context, reader, other, (delivery) => delivery.ack({ confirm: true }));
  await until(() => seen.length === 1);
  // The group was divided anew for it.
  for (let at = 0; at < 20; at++) {
    await until(() => held.length > at);
    assert.equal(await held[at]!.ack({ confirm: true }), "settled");
  }
  assert.deepEqual(held.map(({ envelope }) => envelope.data), numbers(20));
});

onKafka("an ack that an outage caught is brought to the server when it is back", OPTIONS, async (server, context) => {
  const { hand, topic, group, broker } = await rig(server, context);
  const { proxy, brokers } = await openKafkaDoor(server);
  context.cleanup(() => proxy.close());
  const reader = broker({ brokers: [brokers] });
  await reader.publishAll(topic, numbers(3).map((n) => event(n)));
  const held = await take(reader, topic, 3);
  await proxy.refuse();
  await proxy.cut();
  for (const delivery of held) assert.equal(await delivery.ack(), "accepted");
  await until(() => !reader.healthy, { what: "health to say so" });
  await proxy.heal();
  await until(async () => (await hand.committed(topic, group))[0] === 3n, { what: "the commit", timeoutMs: 15_000 });
  assert.equal((await reader.close()).unconfirmed, 0);
});

onKafka(
  "thirty cuts, an event after each: each is there within five seconds, the last one as well (KAF-10)",
  OPTIONS,
  async (server, context) => {
    const { topic, broker } = await rig(server, context);
    const { proxy, brokers } = await openKafkaDoor(server);
    context.cleanup(() => proxy.close());
    const publisher = broker();
    const { seen } = collect(
      context,
      broker({ brokers: [brokers] }),
      topic,
      (delivery) => delivery.ack({ confirm: true }),
    );
    for (let n = 0; n < 30; n++) {
      await publisher.publish(topic, event(n));
      await until(() => seen.includes(n), { what: `event ${n}`, timeoutMs: 5_000 });
      await proxy.cut();
    }
    assert.deepEqual([...new Set(seen)], numbers(30));
  },
);

onKafka(
  "a retry that waits for longer than the session comes once, after its time, to the same member (COR-14)",
  OPTIONS,
  async (server, context) => {
    const { topic, broker } = await rig(server, context);
    const settings = { sessionTimeoutMs: 1_000, isolation: "worker" } as const;
    const first = broker(settings);
    await first.publish(topic, event(0));
    const log: [number, number][] = [];
    collect(context, first, topic, async (delivery) => {
      log.push([delivery.attempt, performance.now()]);
      if (delivery.attempt === 0) await delivery.retry({ delayMs: 3_000 });
      else await delivery.ack({ confirm: true });
    });
    await until(() => log.length === 1);
    const other = collect(context, broker(settings), topic, (delivery) => delivery.ack());
    await until(() => log.length + other.seen.length === 2, { timeoutMs: 10_000 });
    if (log.length === 2) assert.ok(log[1]![1] - log[0]![1] >= 2_990);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    assert.equal(log.length + other.seen.length, 2, "nothing comes a third time");
  },
);

onKafka(
  "a compression without a codec ends the subscription with an error that says so (KAF-09)",
  OPTIONS,
  async (server, context) => {
    const { hand, topic, broker } = await rig(server, context);
    const { CompressionCodecs, CompressionTypes } = (await import("kafkajs")).default;
    const codecs = CompressionCodecs as unknown as Record<number, unknown>;
    const original = codecs[CompressionTypes.Snappy];
    codecs[CompressionTypes.Snappy] = () => ({ compress: ({ buffer }: { buffer: Buffer }) => snappy(buffer) });
    try {
      const producer = hand.kafka.producer();
      await producer.connect();
      context.cleanup(() => producer.disconnect());
      await hand.make(topic, 1);
      const messages = [{ value: "{}".padEnd(60) }];
      const send = () => producer.send({ topic, compression: CompressionTypes.Snappy, messages });
      await until(() => send().then(() => true), { what: "a leader" });
    } finally {
      codecs[CompressionTypes.Snappy] = original;
    }
    const reader = broker();
    await assert.rejects(
      async () => {
        for await (const _ of reader.subscribe(topic)) break;
      },
      (error) => isEdaError(error) && error.code === "invalid-option" && error.message.includes("codec"),
    );
    assert.equal(reader.health().counters["consumer-ended"], 1);
  },
);

onKafka("a topic that is deleted and made anew is consumed again", OPTIONS, async (server, context) => {
  const { hand, topic, broker } = await rig(server, context);
  const reader = broker();
  const { seen } = collect(context, reader, topic, (delivery) => delivery.ack({ confirm: true }));
  await reader.publishAll(topic, numbers(3).map((n) => event(n)));
  await until(() => seen.length === 3);
  const admin = hand.kafka.admin();
  await admin.connect();
  context.cleanup(() => admin.disconnect());
  await admin.deleteTopics({ topics: [topic] });
  const again = async (): Promise<boolean> => {
    await reader.publish(topic, event(9)).catch(() => {});
    return seen.includes(9);
  };
  await until(again, { what: "something of the new topic", timeoutMs: 30_000, everyMs: 300 });
});

onKafka(
  "what is given back comes again in its place, with all that was fetched behind it, though nothing new arrives",
  OPTIONS,
  async (server, context) => {
    const { topic, group, broker } = await rig(server, context);
    await broker().publishAll(topic, numbers(50).map((n) => event(n)));
    const transport = await createTransport({ brokers: server.url.split(",") });
    context.cleanup(() => transport.close());
    const lost: number[] = [];
    const nothing = (): void => {};
    await transport.open({
      owned: nothing,
      revoked: (_topic, _group, partition) => void lost.push(partition),
      lost: nothing,
      topic: nothing,
      lag: nothing,
      signal: nothing,
    });
    const read = async (max: number): Promise<readonly Raw[]> => {
      const signal = new AbortController().signal;
      for (;;) {
        const raws = await transport.fetch(topic, { group, max, window: 100, waitMs: 1_000, signal });
        if (raws.length > 0) return raws;
      }
    };
    const dataOf = (raws: readonly Raw[]): unknown[] =>
      raws.map(({ body }) => (JSON.parse(Buffer.from(body as Uint8Array).toString()) as { data: unknown }).data);
    const first = await read(5);
    assert.deepEqual(dataOf(first), numbers(5));
    const natives = first.map(({ native }) => native);
    assert.deepEqual(await transport.ack(topic, group, natives.slice(0, 2)), ["settled", "settled"]);
    assert.deepEqual(await transport.release(topic, group, natives.slice(3, 4), 0), ["settled"]);
    const again: Raw[] = [];
    while (again.length < 48) again.push(...await read(20));
    assert.deepEqual(dataOf(again), numbers(50).slice(2));
    assert.deepEqual(lost, [0]);
    assert.deepEqual(await transport.ack(topic, group, natives.slice(4)), ["stale"]);
    const outcomes = await transport.ack(topic, group, again.map(({ native }) => native));
    assert.ok(outcomes.every((outcome) => outcome === "settled"));
  },
);

onKafka(
  "what a transaction of another client aborted is not read, and a drain ends behind it",
  OPTIONS,
  async (server, context) => {
    const { hand, topic, group, broker } = await rig(server, context);
    const publisher = broker();
    await publisher.publish(topic, event(0));
    const producer = hand.kafka.producer({ transactionalId: fresh("tx"), maxInFlightRequests: 1, idempotent: true });
    await producer.connect();
    context.cleanup(() => producer.disconnect());
    const write = async (id: string, ends: "commit" | "abort"): Promise<void> => {
      const transaction = await producer.transaction();
      const value = JSON.stringify({ specversion: "1.0", id, source: "/tx", type: "n", subject: "s", data: ends });
      await transaction.send({ topic, messages: [{ key: "s", value }] });
      await transaction[ends]();
    };
    await write("t-1", "abort");
    await write("t-2", "commit");
    await write("t-3", "abort");
    const seen: unknown[] = [];
    for await (const delivery of broker().subscribe(topic, { idleMs: 0 })) {
      seen.push(delivery.envelope.data);
      await delivery.ack({ confirm: true });
    }
    assert.deepEqual(seen, [0, "commit"]);
    // Behind the last record there are only marks of transactions.
    await publisher.publish(topic, event(1));
    const [last] = await take(broker(), topic, 1);
    assert.equal(last!.envelope.data, 1);
    await last!.ack({ confirm: true });
    assert.deepEqual(await hand.committed(topic, group), await hand.ends(topic));
  },
);

onKafka("lag is what the group has not settled", OPTIONS, async (server, context) => {
  const { topic, broker } = await rig(server, context);
  const reader = broker({ prefetch: 4 });
  await reader.publishAll(topic, numbers(50).map((n) => event(n)));
  const held: Delivery[] = [];
  collect(context, reader, topic, (delivery) => void held.push(delivery));
  await until(() => held.length === 4);
  await until(() => reader.health().topics[0]?.lag === 50, { what: "a lag of 50" });
  for (let at = 0; at < 50; at++) {
    await until(() => held.length > at);
    await held[at]!.ack();
  }
  await until(() => reader.health().topics[0]?.lag === 0, { what: "no lag" });
});

const withOwn = onServer("kafka");

withOwn(
  "a session that the cluster does not allow is refused by the option's name, not tried for ever (KAF-09)",
  OPTIONS,
  async (start, context) => {
    const server = await start({ args: ["--override", "group.min.session.timeout.ms=6000"] });
    const { topic, broker } = await rig({ url: `127.0.0.1:${server.port}` }, context);
    const reader = broker({ sessionTimeoutMs: 2_000 });
    await assert.rejects(
      async () => {
        for await (const _ of reader.subscribe(topic)) break;
      },
      (error) => isEdaError(error) && error.code === "invalid-option" && error.message.includes("sessionTimeoutMs"),
    );
  },
);
