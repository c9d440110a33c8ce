import assert from "node:assert/strict";
import { RabbitMqBroker, type RabbitMqBrokerOptions } from "../../adapters/rabbitmq/mod.ts";
import { onServer, type TestContext, until } from "../support/test.ts";
import { names, rawClient } from "./rabbitmq_support.ts";

interface Load {
  /** Numbers whose publish was confirmed. */
  readonly confirmed: Set<number>;
  /** First deliveries, in their order. */
  readonly first: number[];
  readonly known: Set<number>;
  readonly disconnects: () => number;
  stop(): Promise<void>;
}

/** Publishes and consumes without end, over `subjects` subjects in order. */
function load(context: TestContext, options: RabbitMqBrokerOptions, topic: string, subjects: number): Load {
  let disconnects = 0;
  const common = { source: "/t", isolation: "inline", logger: false, publishTimeoutMs: 5_000, ...options } as const;
  const publisher = new RabbitMqBroker(common);
  const consumer = new RabbitMqBroker({ ...common, onDisconnect: () => void disconnects++ });
  context.cleanup(() => publisher.close());
  context.cleanup(() => consumer.close());
  const confirmed = new Set<number>();
  const first: number[] = [];
  const known = new Set<number>();
  const stop = new AbortController();
  const reading = (async () => {
    // The first connect of a plain loop fails; the server runs by then.
    for await (const delivery of consumer.subscribe(topic, { signal: stop.signal })) {
      const n = delivery.envelope.data as number;
      if (!known.has(n)) first.push(n);
      known.add(n);
      void delivery.ack();
    }
  })();
  let ended = false;
  const lanes = Array.from({ length: subjects }, async (_, subject) => {
    for (let n = subject; !ended; n += subjects) {
      // One after another: a number is published again until it is confirmed, so that its subject stays in order.
      while (!ended) {
        const done = await publisher.publish(topic, { type: "n", subject: `s${subject}`, data: n }).then(
          () => true,
          () => false,
        );
        if (done) {
          confirmed.add(n);
          break;
        }
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      if (n % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    }
  });
  return {
    confirmed,
    first,
    known,
    disconnects: () => disconnects,
    async stop() {
      ended = true;
      await Promise.all(lanes);
      await until(() => [...confirmed].every((n) => known.has(n)), {
        timeoutMs: 20_000,
        what: "all that was confirmed",
      });
      stop.abort();
      await reading;
    },
  };
}

function assertOrder({ first }: Load, subjects: number): void {
  for (let subject = 0; subject < subjects; subject++) {
    const lane = first.filter((n) => n % subjects === subject);
    assert.deepEqual(lane, [...lane].sort((a, b) => a - b), `subject s${subject} is in order`);
  }
}

for (const name of ["rabbitmq", "rabbitmq310"]) {
  onServer(name)("kill -9 and restart twice under load: nothing confirmed is lost, order is kept (AMQ-12)", {
    timeoutMs: 120_000,
  }, async (start, context) => {
    const server = await start();
    const { topic, group } = names();
    const running = load(context, { url: server.url, group }, topic, 5);
    for (let round = 1; round <= 2; round++) {
      const before = running.first.length;
      await until(() => running.first.length > before + 100, { timeoutMs: 20_000, what: "some events" });
      // The server writes down where a new quorum queue is some seconds late; killed before, it begins with an empty one.
      if (round === 1) await new Promise((resolve) => setTimeout(resolve, 5_000));
      await server.kill();
      await server.restart();
    }
    const before = running.first.length;
    await until(() => running.first.length > before + 100, { timeoutMs: 20_000, what: "events after the restart" });
    await running.stop();
    assertOrder(running, 5);
    assert.ok(running.disconnects() >= 2);
  });
}

onServer("rabbitmq")(
  "a server that is stopped for five seconds: nothing is lost, order is kept",
  { timeoutMs: 90_000 },
  async (start, context) => {
    const server = await start();
    const { topic, group } = names();
    const running = load(context, { url: server.url, group, callTimeoutMs: 2_000 }, topic, 5);
    await until(() => running.first.length > 100, { timeoutMs: 20_000 });
    server.pause();
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    server.resume();
    const before = running.first.length;
    await until(() => running.first.length > before + 100, { timeoutMs: 30_000, what: "events after that" });
    await running.stop();
    assertOrder(running, 5);
  },
);

onServer("rabbitmq")(
  "a host that burns the CPU for three heartbeats loses no connection and gets nothing twice; inline it does (COR-13)",
  { timeoutMs: 90_000 },
  async (start, context) => {
    const server = await start();
    const blockFor = (ms: number): void => {
      for (const end = performance.now() + ms; performance.now() < end;);
    };
    const run = async (isolation: "worker" | "inline"): Promise<{ attempts: number[]; disconnects: number }> => {
      const { topic, group } = names();
      let disconnects = 0;
      const broker = new RabbitMqBroker({
        url: server.url,
        group,
        source: "/t",
        isolation,
        logger: false,
        heartbeatMs: 1_000,
        onDisconnect: () => void disconnects++,
      });
      context.cleanup(() => broker.close());
      const attempts: number[] = [];
      await broker.publishAll(topic, [1, 2, 3].map((data) => ({ type: "n", subject: "s", data })));
      let blocked = false;
      for await (const delivery of broker.subscribe(topic, { idleMs: 3_000 })) {
        if (!blocked) blockFor(6_000);
        blocked = true;
        attempts.push(delivery.attempt);
        await delivery.ack();
      }
      await broker.close();
      return { attempts, disconnects };
    };
    assert.deepEqual(await run("worker"), { attempts: [0, 0, 0], disconnects: 0 });
    const { attempts, disconnects } = await run("inline");
    assert.ok(disconnects > 0 || attempts.some((attempt) => attempt > 0), "which is what the worker is for");
  },
);

onServer("rabbitmq")(
  "five restarts in a row: consumption resumes each time, with one consumer and one connection each (AMQ-12, AMQ-13)",
  {
    timeoutMs: 180_000,
  },
  async (start, context) => {
    const server = await start();
    const { topic, group } = names();
    const broker = new RabbitMqBroker({ url: server.url, group, source: "/t", isolation: "inline", logger: false });
    context.cleanup(() => broker.close());
    const seen = new Set<unknown>();
    const stop = new AbortController();
    const reading = (async () => {
      for await (const delivery of broker.subscribe(topic, { signal: stop.signal })) {
        seen.add(delivery.envelope.data);
        await delivery.ack();
      }
    })();
    for (let round = 0; round < 5; round++) {
      await until(() => broker.publish(topic, { type: "n", data: round }).then(() => true, () => false), {
        timeoutMs: 20_000,
      });
      await until(() => seen.has(round), { timeoutMs: 20_000 });
      await server.restart();
    }
    await until(() => broker.publish(topic, { type: "n", data: "last" }).then(() => true, () => false), {
      timeoutMs: 20_000,
    });
    await until(() => seen.has("last"), { timeoutMs: 20_000 });
    const raw = await rawClient(context, server.url);
    assert.equal((await raw.channel((channel) => channel.checkQueue(topic))).consumerCount, 1);
    stop.abort();
    await reading;
  },
);
