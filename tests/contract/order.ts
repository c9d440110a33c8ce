import assert from "node:assert/strict";
import type { Delivery } from "../../core/contract.ts";
import { type ContractCase, contractCase, eventually, type Harness, severalOfOneSubject } from "./kit.ts";

/** Promise 5 and the order rules: one owner a partition, nothing overtakes. */
export function orderCases(harness: Harness): ContractCase[] {
  return [
    contractCase(
      harness,
      "5: a retried delivery comes back before later ones of its subject; others flow meanwhile (RED-12)",
      async (c) => {
        const broker = c.broker();
        await broker.publishAll(c.topic, [
          { type: "e", subject: "A", data: "A1" },
          { type: "e", subject: "A", data: "A2" },
          { type: "e", subject: "B", data: "B1" },
        ]);
        const log: string[] = [];
        const retriedAt = performance.now();
        let backAt = 0;
        for await (const delivery of broker.subscribe(c.topic)) {
          log.push(`${delivery.envelope.data}(${delivery.attempt})`);
          if (delivery.envelope.data === "A1" && delivery.attempt === 0) await delivery.retry({ delayMs: 300 });
          else await delivery.ack();
          if (delivery.envelope.data === "A1" && delivery.attempt === 1) backAt = performance.now();
          if (log.length === 4) break;
        }
        assert.deepEqual(log, ["A1(0)", "B1(0)", "A1(1)", "A2(0)"]);
        assert.ok(backAt - retriedAt >= 295, "the delay is kept");
      },
    ),
    contractCase(harness, "5: several held deliveries of one subject come back in their order", async (c) => {
      const broker = c.broker();
      await c.fill(broker, 4);
      const first = await c.take(broker, 3);
      await first[2]!.retry();
      await first[0]!.retry({ delayMs: 50 });
      await first[1]!.retry();
      const again = await c.take(broker, 4);
      assert.deepEqual(again.map((d) => [d.envelope.data, d.attempt]), [[0, 1], [1, 1], [2, 1], [3, 0]]);
      for (const delivery of again) await delivery.ack();
    }, { skip: severalOfOneSubject(harness) }),
    contractCase(harness, "5: events without a subject hold nobody back", async (c) => {
      const broker = c.broker();
      await broker.publishAll(c.topic, [{ type: "e", data: 1 }, { type: "e", data: 2 }, { type: "e", data: 3 }]);
      const log: unknown[] = [];
      for await (const delivery of broker.subscribe(c.topic)) {
        log.push(delivery.envelope.data);
        if (delivery.attempt === 0 && delivery.envelope.data === 1) await delivery.retry({ delayMs: 200 });
        else await delivery.ack();
        if (log.length === 4) break;
      }
      assert.deepEqual(log, [1, 2, 3, 1]);
    }),
    contractCase(harness, "5: a retried delivery stays unsettled at the broker: a crash brings it back", async (c) => {
      const broker = c.broker();
      await c.fill(broker, 2);
      const [one] = await c.take(broker, 1);
      await one!.retry({ delayMs: 60_000 });
      await broker.close();
      assert.deepEqual(await c.drain(c.broker(), { idleMs: harness.takeOverMs ?? 1_000 }), [0, 1]);
    }),
    contractCase(
      harness,
      "order: two consumers of one group never hold one subject at once, and all arrives once",
      async (c) => {
        const brokers = [c.broker(), c.broker()];
        await shared(c, brokers, 300, 10);
      },
      { timeoutMs: 60_000 },
    ),
    contractCase(
      harness,
      "order: three consumers of one group, one leaves midway and one joins: nothing lost, order kept",
      async (c) => {
        const brokers = [c.broker(), c.broker(), c.broker()];
        await shared(c, brokers, 600, 10, true);
      },
      { timeoutMs: 60_000 },
    ),
    contractCase(harness, "order: each group gets every message", async (c) => {
      const publisher = c.broker();
      const groups = ["one", "two"].map((name) => `${c.group}-${name}`);
      const brokers = groups.map((group) => c.broker({ group }));
      const reading = brokers.map(async (broker) => {
        const seen: unknown[] = [];
        for await (const delivery of broker.subscribe(c.topic)) {
          seen.push(delivery.envelope.data);
          await delivery.ack();
          if (seen.length === 20) break;
        }
        return seen;
      });
      await eventually("both read", () => brokers.every((broker) => broker.health().topics[0]?.state === "active"));
      await c.fill(publisher, 20, 4);
      const expected = Array.from({ length: 20 }, (_, n) => n);
      assert.deepEqual(await Promise.all(reading), [expected, expected]);
    }, { skip: harness.groups === false ? "a topic has one group on this broker" : undefined }),
  ];
}

/** Several members read one topic to its end; first deliveries of a subject are in order over all of them. */
async function shared(
  c: import("./kit.ts").Case,
  brokers: import("../../core/contract.ts").BrokerAdapter[],
  total: number,
  subjects: number,
  change: boolean = false,
): Promise<void> {
  const ordered = c.harness.ordering !== "none";
  const publisher = c.broker();
  const done = new Set<number>();
  const first: number[] = [];
  const known = new Set<number>();
  const holder = new Map<string, { readonly broker: unknown; readonly delivery: Delivery }>();
  const stop = new AbortController();
  const read = async (broker: import("../../core/contract.ts").BrokerAdapter): Promise<void> => {
    for await (const delivery of broker.subscribe(c.topic, { signal: stop.signal, prefetch: 20 })) {
      await handle(broker, delivery);
      if (done.size === total) stop.abort();
    }
  };
  const handle = async (broker: unknown, delivery: Delivery): Promise<void> => {
    const n = delivery.envelope.data as number;
    const subject = delivery.envelope.subject!;
    const other = holder.get(subject);
    assert.ok(
      !ordered || other === undefined || other.broker === broker || other.delivery.signal.aborted,
      `subject ${subject} is held by two consumers and the first was not told`,
    );
    holder.set(subject, { broker, delivery });
    if (!known.has(n)) {
      known.add(n);
      first.push(n);
    }
    await new Promise((resolve) => setTimeout(resolve, n % 50 === 0 ? 5 : 0));
    if (holder.get(subject)?.delivery === delivery) holder.delete(subject);
    if (await delivery.ack({ confirm: true }) === "settled") done.add(n);
  };
  const readers = brokers.map(read);
  await c.fill(publisher, total, subjects);
  if (change) {
    await eventually("a third is done", () => done.size >= total / 3, 30_000);
    await brokers[0]!.close();
    readers.push(read(c.broker()));
  }
  await Promise.all(readers);
  assert.equal(done.size, total);
  for (let s = 0; ordered && s < subjects; s++) {
    const lane = first.filter((n) => n % subjects === s);
    assert.deepEqual(lane, [...lane].sort((a, b) => a - b), `subject s${s} is in order`);
  }
}
