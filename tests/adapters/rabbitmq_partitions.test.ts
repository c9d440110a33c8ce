import assert from "node:assert/strict";
import { RabbitMqBroker } from "../../adapters/rabbitmq/mod.ts";
import type { EdaError } from "../../core/errors.ts";
import { scoreOf } from "../../core/ownership/rendezvous.ts";
import type { Raw } from "../../core/transport.ts";
import { onLeg, onLegs, until } from "../support/test.ts";
import { dataOf, names, openTransport, publishNumbers } from "./rabbitmq_support.ts";
import { Reader } from "./transport_support.ts";

const subjectOf = (n: number): string => `s${n % 40}`;

/** Numbers of one subject are in the order in which they were published. */
function assertOrder(numbers: readonly number[]): void {
  for (let subject = 0; subject < 40; subject++) {
    const lane = numbers.filter((n) => n % 40 === subject);
    assert.deepEqual(lane, [...lane].sort((a, b) => a - b), `subject s${subject} is in order`);
  }
}

onLegs(["rabbitmq", "rabbitmq310"], (on) => {
  on("another number of partitions than is recorded is refused both ways, with both numbers", async (leg, context) => {
    for (const [recorded, given] of [[1, 4], [4, 1], [4, 8]] as const) {
      const { topic, group } = names();
      const first = await openTransport(context, { url: leg.url, partitions: recorded });
      await publishNumbers(first.transport, topic, 1, 1);
      const other = await openTransport(context, { url: leg.url, partitions: given });
      const mismatch = (error: EdaError): boolean =>
        error.code === "partition-mismatch" && error.message.includes(`is ${given} here`) &&
        error.message.includes(`${recorded} is recorded`);
      await assert.rejects(publishNumbers(other.transport, topic, 2, 2), mismatch);
      await assert.rejects(new Reader(other.transport, topic, group).fetch(), mismatch);
    }
  });

  on("four partitions: every subject stays in one, in its order; each group has all of them", async (leg, context) => {
    const { topic } = names();
    const { transport } = await openTransport(context, { url: leg.url, partitions: 4 });
    const readers = ["one", "two"].map((group) => new Reader(transport, topic, group));
    for (const reader of readers) await reader.fetch();
    await publishNumbers(transport, topic, 0, 399, subjectOf);
    for (const reader of readers) {
      const raws = await reader.take(400);
      assertOrder(dataOf(raws) as number[]);
      const home = new Map<string, number>();
      for (const [at, n] of (dataOf(raws) as number[]).entries()) {
        const { partition } = raws[at]!;
        assert.equal(home.get(subjectOf(n)) ?? partition, partition, "a subject has one partition");
        home.set(subjectOf(n), partition);
      }
      assert.ok(new Set(home.values()).size > 1, "subjects are spread");
      assert.deepEqual(new Set(await reader.ack(raws)), new Set(["settled"]));
    }
  });

  on(
    "three members of eight partitions, one leaves midway: nothing is lost, order is kept",
    { timeoutMs: 60_000 },
    async (leg, context) => {
      const { topic, group } = names();
      const options = { url: leg.url, group, source: "/t", partitions: 8, isolation: "inline", logger: false } as const;
      const first: number[] = [];
      const known = new Set<number>();
      const done = new Set<number>();
      const stop = new AbortController();
      const brokers = [1, 2, 3].map(() => new RabbitMqBroker(options));
      for (const broker of brokers) context.cleanup(() => broker.close());
      const readings = brokers.map(async (broker) => {
        for await (const delivery of broker.subscribe(topic, { signal: stop.signal })) {
          const n = delivery.envelope.data as number;
          if (!known.has(n)) first.push(n);
          known.add(n);
          if (await delivery.ack({ confirm: true }) === "settled") done.add(n);
          if (done.size === 800) stop.abort();
        }
      });
      const messages = Array.from({ length: 800 }, (_, n) => ({ type: "n", subject: subjectOf(n), data: n }));
      const publisher = new RabbitMqBroker(options);
      context.cleanup(() => publisher.close());
      const published = publisher.publishAll(topic, messages);
      await until(() => done.size > 200, { timeoutMs: 20_000 });
      await brokers[0]!.close();
      await published;
      await Promise.all(readings);
      assert.equal(done.size, 800);
      assertOrder(first);
    },
  );

  on("a window smaller than the number of partitions is refused by the option's name", async (leg, context) => {
    const { topic, group } = names();
    const { transport } = await openTransport(context, { url: leg.url, partitions: 4 });
    const request = { group, max: 3, window: 3, waitMs: 0, signal: new AbortController().signal };
    await assert.rejects(
      transport.fetch(topic, request),
      (error: EdaError) => error.code === "invalid-option" && error.message.includes("prefetch"),
    );
  });
});

/** Two names of members of which the second should own the partition. */
function rivals(topic: string, group: string): [string, string] {
  const score = (name: string): number => scoreOf(`${name}#${group}#${topic}`, 0);
  const found = Array.from({ length: 8 }, (_, n) => `member-${n}`).sort((a, b) => score(a) - score(b));
  return [found[0]!, found[7]!];
}

onLeg("rabbitmq")(
  "a partition that moves to a better member is drained first: nothing of it is in two hands",
  async (leg, context) => {
    const { topic, group } = names();
    const [worse, better] = rivals(topic, group);
    const options = { url: leg.url, partitions: 2 };
    const one = await openTransport(context, { ...options, consumer: worse });
    const first = new Reader(one.transport, topic, group);
    await publishNumbers(one.transport, topic, 0, 19, (n) => `s${n}`);
    const held = await first.take(20);
    const ofPartition = (raws: readonly Raw[]): Raw[] => raws.filter(({ partition }) => partition === 0);
    assert.ok(ofPartition(held).length > 0);
    const two = await openTransport(context, { ...options, consumer: better });
    const second = new Reader(two.transport, topic, group);
    await second.fetch();
    await publishNumbers(one.transport, topic, 20, 39, (n) => `s${n}`);
    const seen = [...await second.fetch(700), ...await first.fetch()];
    assert.deepEqual(ofPartition(seen), [], "the former one holds messages of it, and gets no more");
    assert.deepEqual(new Set(await first.ack(held)), new Set(["settled"]));
    const expected = 20;
    await until(async () => {
      seen.push(...await second.fetch(100), ...await first.fetch());
      return seen.length >= expected;
    });
    assert.ok(ofPartition(seen).length > 0);
    assert.ok(two.listener.told.some(({ kind, partition }) => kind === "owned" && partition === 0));
    assert.equal(new Set(dataOf(seen)).size, expected);
  },
);

onLeg("rabbitmq310")(
  "before 4.0 the first member owns every partition; the others stand by until it leaves",
  async (leg, context) => {
    const { topic, group } = names();
    const one = await openTransport(context, { url: leg.url, partitions: 4 });
    const first = new Reader(one.transport, topic, group);
    await publishNumbers(one.transport, topic, 0, 19, (n) => `s${n}`);
    const held = await first.take(20);
    const two = await openTransport(context, { url: leg.url, partitions: 4 });
    const second = new Reader(two.transport, topic, group);
    await second.fetch();
    await two.listener.heard("topic", "standby");
    await first.ack(held.slice(0, 10));
    await one.transport.close();
    const rest = await second.take(10);
    assert.equal(new Set(dataOf(rest)).size, 10);
    await two.listener.heard("topic", "active");
  },
);
