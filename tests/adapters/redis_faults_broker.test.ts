import assert from "node:assert/strict";
import process from "node:process";
import type { Delivery } from "../../core/contract.ts";
import { type EdaError, isEdaError } from "../../core/errors.ts";
import { onLeg, onServer, startProxy, type TestContext, until, within } from "../support/test.ts";
import { assertFirstInOrder, Collector, events, GROUP, makeBroker, space, TOPIC } from "./redis_faults_rig.ts";
import { admin, pendingOf } from "./redis_support.ts";

const onOwn = onServer("redis");
const onRedis = onLeg("redis");
const ISOLATIONS = ["worker", "inline"] as const;

/** Whatever nobody caught while the test ran fails it, on every runtime. */
function nothingUncaught(context: TestContext): void {
  const seen: unknown[] = [];
  const note = (error: unknown): void => void seen.push(error);
  process.on("uncaughtException", note);
  process.on("unhandledRejection", note);
  context.cleanup(() => {
    process.off("uncaughtException", note);
    process.off("unhandledRejection", note);
    assert.deepEqual(seen, []);
  });
}

/** Publishes numbered events one after the other until told to stop; knows which ones were confirmed. */
class Flow {
  readonly confirmed: number[] = [];
  readonly refused: string[] = [];
  #running = true;
  readonly #done: Promise<void>;

  constructor(publish: (n: number) => Promise<unknown>) {
    this.#done = (async () => {
      for (let n = 0; this.#running; n++) {
        await publish(n).then(() => this.confirmed.push(n), (error: EdaError) => this.refused.push(error.code));
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    })();
  }

  async stop(): Promise<void> {
    this.#running = false;
    await this.#done;
  }
}

for (const isolation of ISOLATIONS) {
  onOwn(
    `${isolation}: a server frozen for longer than the lease costs no event, and everybody goes on by itself`,
    { timeoutMs: 60_000 },
    async (start, context) => {
      nothingUncaught(context);
      const server = await start();
      const own = { ...space(server.url), isolation, ownerLeaseMs: 600 };
      const told: string[] = [];
      const listening = {
        onDisconnect: () => void told.push("down"),
        onReconnect: () => void told.push("up"),
        callTimeoutMs: 1_000,
        publishTimeoutMs: 1_000,
        connectTimeoutMs: 1_000,
      };
      const first = makeBroker(context, { ...own, ...listening });
      const held: Delivery[] = [];
      const one = new Collector(context, first, (delivery) => {
        if (delivery.envelope.data === 3 && held.length === 0) return void held.push(delivery);
        return delivery.ack({ confirm: true });
      });
      await until(() => first.health().topics[0]?.state === "active");
      const two = new Collector(context, makeBroker(context, own));
      const publisher = makeBroker(context, { ...own, ...listening, onDisconnect: () => {}, onReconnect: () => {} });
      await publisher.publishAll(TOPIC, events(0, 10, 1));
      await until(() => held.length === 1);
      const { signal } = held[0]!;
      server.pause();
      context.cleanup(() => server.resume());
      await until(() => signal.aborted, { timeoutMs: 5_000, what: "the lease to run out" });
      assert.equal(await held[0]!.ack(), "stale");
      await assert.rejects(
        publisher.publish(TOPIC, { type: "n", data: 99 }),
        (error) => isEdaError(error) && error.retriable,
      );
      await until(() => !first.healthy, { timeoutMs: 5_000, what: "health to say so" });
      server.resume();
      await until(() => first.healthy, { timeoutMs: 10_000, what: "health to be well again" });
      await until(() => publisher.publishAll(TOPIC, events(10, 20, 1)).then(() => true, () => false));
      const seen = (): number[] =>
        [...one.got, ...two.got].sort((a, b) => a.at - b.at).map(({ n }) => n).filter((n) => n !== 99);
      await until(() => new Set(seen()).size === 20, { what: "all events" });
      assertFirstInOrder(seen(), 1);
      assert.deepEqual(told.slice(0, 2), ["down", "up"]);
      assert.equal(told.length % 2, 0);
    },
  );

  onOwn(
    `${isolation}: a server killed and started again, twice, loses nothing that was confirmed`,
    { timeoutMs: 90_000 },
    async (start, context) => {
      nothingUncaught(context);
      const server = await start({ args: ["--appendonly", "yes", "--appendfsync", "always"] });
      const own = {
        ...space(server.url),
        isolation,
        ownerLeaseMs: 600,
        publishTimeoutMs: 2_000,
        connectTimeoutMs: 1_000,
      };
      const warnings: string[] = [];
      const logger = {
        debug() {},
        info() {},
        warn: (text: string) => void warnings.push(text),
        error: (text: string) => void warnings.push(text),
      };
      const broker = makeBroker(context, { ...own, logger });
      const collector = new Collector(context, broker);
      await until(() => broker.health().topics[0]?.state === "active");
      const publisher = makeBroker(context, own);
      const flow = new Flow((n) => publisher.publish(TOPIC, { type: "n", subject: `s${n % 3}`, data: n }));
      context.cleanup(() => flow.stop());
      for (let round = 1; round <= 2; round++) {
        const before = flow.confirmed.length;
        await until(() => flow.confirmed.length > before + 10, { what: "publishing" });
        await server.kill();
        await until(() => !broker.healthy && !publisher.healthy, { what: "health to say so" });
        await server.restart();
        const restartedAt = performance.now();
        const got = collector.got.length;
        await until(() => collector.got.length > got && broker.healthy, { what: "consuming to resume" });
        const tookMs = performance.now() - restartedAt;
        assert.ok(tookMs < 4_000, `consuming again after ${Math.round(tookMs)} ms`);
      }
      await flow.stop();
      assert.ok(flow.refused.length > 0, "some publishes met the outage");
      assert.ok(
        flow.refused.every((code) => code === "broker-unavailable" || code === "outcome-unknown"),
        String(flow.refused),
      );
      await collector.has(flow.confirmed);
      assertFirstInOrder(collector.numbers.filter((n) => flow.confirmed.includes(n)), 3);
      assert.equal(broker.health().counters["disconnects"], broker.health().counters["reconnects"]);
      assert.ok(warnings.length < 30, `${warnings.length} warnings: ${[...new Set(warnings)].join(", ")}`);
    },
  );

  onOwn(
    `${isolation}: all data lost under two running subscribers: what is published next comes within two seconds, once (RED-07)`,
    { timeoutMs: 60_000 },
    async (start, context) => {
      nothingUncaught(context);
      const server = await start();
      const own = { ...space(server.url), isolation, ownerLeaseMs: 1_000 };
      const client = await admin(context, server.url);
      const warnings: string[] = [];
      const logger = {
        debug() {},
        info() {},
        warn: (text: string) => void warnings.push(text),
        error: (text: string) => void warnings.push(text),
      };
      const brokers = [makeBroker(context, { ...own, logger }), makeBroker(context, { ...own, logger })];
      const collectors = brokers.map((broker) => new Collector(context, broker));
      const publisher = makeBroker(context, own);
      await publisher.publishAll(TOPIC, events(0, 5));
      const seen = (): number[] => collectors.flatMap((collector) => collector.numbers);
      await until(() => seen().length === 5);
      await until(() => brokers.every((broker) => broker.health().topics[0]?.state !== "starting"));
      for (let loss = 1; loss <= 2; loss++) {
        warnings.length = 0;
        await client.call("FLUSHALL");
        const from = loss * 100;
        await publisher.publishAll(TOPIC, events(from, from + 3));
        const start = performance.now();
        const fresh = (): number[] => seen().filter((n) => n >= from);
        await until(() => fresh().length >= 3, { what: "the three events" });
        const tookMs = performance.now() - start;
        assert.ok(tookMs < 2_000, `they came after ${Math.round(tookMs)} ms`);
        // A second more, in which a copy or a storm of errors would show.
        await new Promise((resolve) => setTimeout(resolve, 1_000));
        assert.deepEqual(fresh().sort((a, b) => a - b), [from, from + 1, from + 2], "each once");
        assert.ok(warnings.length <= 4, `${warnings.length} warnings: ${warnings.join(", ")}`);
      }
      assert.ok(brokers.every((broker) => broker.healthy));
    },
  );
}

onRedis(
  "unordered: a handler of five times minIdleMs runs once although another consumer waits (RED-10)",
  async ({ url }, context) => {
    const own = { ...space(url), ordered: false, minIdleMs: 300 } as const;
    const calls: string[] = [];
    const slow = (name: string) => async (delivery: Delivery): Promise<void> => {
      calls.push(name);
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      assert.equal(delivery.signal.aborted, false);
      assert.equal(await delivery.ack({ confirm: true }), "settled");
      calls.push("settled");
    };
    const one = makeBroker(context, own);
    new Collector(context, one, slow("one"));
    await until(() => one.health().topics[0]?.state === "active");
    new Collector(context, makeBroker(context, own), slow("two"));
    await one.publish(TOPIC, { type: "n", data: 1 });
    await until(() => calls.includes("settled"));
    // As long again, in which a copy would come.
    await new Promise((resolve) => setTimeout(resolve, 700));
    assert.equal(calls.length, 2, calls.join(" "));
  },
);

for (const ordered of [true, false]) {
  const mode = ordered ? "ordered" : "unordered";
  onRedis(
    `${mode}: a delivery lost to another consumer aborts its signal; its ack is stale and leaves the other's pending (RED-10, COR-12)`,
    { timeoutMs: 60_000 },
    async ({ url }, context) => {
      const own = { ...space(url), ordered, minIdleMs: 400, ownerLeaseMs: 600 };
      const client = await admin(context, url);
      const proxy = await startProxy({ port: Number(new URL(url).port) });
      context.cleanup(() => proxy.close());
      const publisher = makeBroker(context, own);
      const first = makeBroker(context, { ...own, url: proxy.url(url), callTimeoutMs: 1_000 });
      const stream = first.subscribe(TOPIC)[Symbol.asyncIterator]();
      const next = stream.next();
      await until(() => first.health().topics[0]?.state === "active");
      await publisher.publish(TOPIC, { type: "n", subject: "s", data: 1 });
      const mine = (await next).value!;
      const second = makeBroker(context, own);
      const taken = second.subscribe(TOPIC)[Symbol.asyncIterator]().next();
      await proxy.blackHole();
      const theirs = (await within(10_000, "the take-over", taken)).value!;
      assert.equal(theirs.envelope.data, 1);
      await until(() => mine.signal.aborted, { timeoutMs: 5_000, what: "the signal to abort" });
      assert.equal(await mine.ack(), "stale");
      await proxy.heal();
      await until(() => first.healthy, { timeoutMs: 10_000, what: "the first to be well again" });
      assert.equal(await mine.ack(), "stale");
      assert.equal(await pendingOf(client, `${own.prefix}:stream:${TOPIC}`, GROUP), 1, "still the other's");
      assert.equal(await theirs.ack({ confirm: true }), "settled");
      assert.equal(await pendingOf(client, `${own.prefix}:stream:${TOPIC}`, GROUP), 0);
    },
  );

  onRedis(
    `${mode}: a retry delay of three leases makes one next attempt, not before its time; another consumer gets none (COR-14)`,
    { timeoutMs: 60_000 },
    async ({ url }, context) => {
      const own = { ...space(url), ordered, minIdleMs: 1_000, ownerLeaseMs: 1_000 };
      const first = makeBroker(context, own);
      const times: number[] = [];
      new Collector(context, first, async (delivery) => {
        times.push(performance.now());
        if (times.length === 1) await delivery.retry({ delayMs: 3_000 });
        else assert.equal(await delivery.ack({ confirm: true }), "settled");
      });
      await until(() => first.health().topics[0]?.state === "active");
      const other = new Collector(context, makeBroker(context, own));
      await first.publish(TOPIC, { type: "n", subject: "s", data: 1 });
      await until(() => times.length === 2, { what: "the second attempt" });
      const waitedMs = times[1]! - times[0]!;
      assert.ok(waitedMs >= 2_990, `it came after ${Math.round(waitedMs)} ms`);
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      assert.equal(times.length + other.got.length, 2);
    },
  );
}

onOwn("a server restarted twice under an idle broker: health false, then true; nothing uncaught (RUN-09)", {
  timeoutMs: 60_000,
}, async (start, context) => {
  nothingUncaught(context);
  const server = await start();
  for (const isolation of ISOLATIONS) {
    const told: string[] = [];
    const broker = makeBroker(context, {
      ...space(server.url),
      isolation,
      ownerLeaseMs: 600,
      onDisconnect: (error) => void told.push(error.code),
      onReconnect: () => void told.push("up"),
    });
    const collector = new Collector(context, broker);
    await until(() => broker.health().topics[0]?.state === "active");
    for (let round = 1; round <= 2; round++) {
      await server.restart();
      await until(() => told.length === 2 * round, { what: "both callbacks" });
      assert.equal(told[2 * round - 1], "up");
      await until(() => broker.healthy);
    }
    await until(() => broker.publish(TOPIC, { type: "n", data: 1 }).then(() => true, () => false));
    await collector.has([1]);
    await broker.close();
  }
});
