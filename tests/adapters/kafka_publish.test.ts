import assert from "node:assert/strict";
import { KafkaBroker, type KafkaBrokerOptions } from "../../adapters/kafka/mod.ts";
import { connect } from "../../adapters/connect.ts";
import { type EdaError, isEdaError, PublishBatchError } from "../../core/errors.ts";
import { openKafkaDoor } from "../support/kafka_door.ts";
import { fresh, onLeg, onServer, type TestContext, until } from "../support/test.ts";
import { dataOf, type Hand, openHand, readLog } from "./kafka_support.ts";

const onKafka = onLeg("kafka");
const OPTIONS = { sanitize: false, timeoutMs: 60_000 } as const;

async function rig(context: TestContext, brokers: string, options: KafkaBrokerOptions = {}) {
  const hand = await openHand(brokers);
  context.cleanup(() => hand.close());
  const broker = make(context, brokers, options);
  return { hand, broker, topic: fresh("t") };
}

function make(context: TestContext, brokers: string, options: KafkaBrokerOptions = {}): KafkaBroker {
  const broker = new KafkaBroker({ brokers: brokers.split(","), source: "/publish", logger: false, ...options });
  context.cleanup(() => broker.close({ drainMs: 500 }));
  return broker;
}

async function failed(publishing: Promise<unknown>): Promise<EdaError> {
  try {
    await publishing;
  } catch (error) {
    assert.ok(isEdaError(error), String(error));
    return error;
  }
  throw new Error("it did not fail");
}

async function partitionsOf(hand: Hand, topic: string): Promise<number> {
  return (await hand.ends(topic)).length;
}

onKafka(
  "a record has the subject as key and the headers that the reference writes",
  OPTIONS,
  async ({ url }, context) => {
    const { hand, broker, topic } = await rig(context, url);
    const sent = await broker.publish(topic, { type: "a.b", subject: "é-1", data: 1 });
    await broker.publish(topic, { type: "a.b", data: 2 });
    const [one, two] = await readLog(hand, topic);
    assert.equal(one!.key, "é-1");
    assert.deepEqual(one!.headers, {
      "content-type": "application/cloudevents+json; charset=UTF-8",
      ce_id: sent.id,
      ce_type: "a.b",
    });
    assert.equal(JSON.parse(one!.value!).id, sent.id);
    assert.equal(two!.key, null);
  },
);

onKafka(
  "twenty publishes at once to one key are twenty records in the order of the calls (KAF-11)",
  OPTIONS,
  async ({ url }, context) => {
    const { hand, broker, topic } = await rig(context, url);
    const numbers = Array.from({ length: 20 }, (_, n) => n);
    await Promise.all(numbers.map((n) => broker.publish(topic, { type: "n", subject: "s", data: n })));
    assert.deepEqual(dataOf(await readLog(hand, topic)), numbers);
  },
);

onKafka(
  "an existing topic is taken with its partitions; subjects are where other clients put them",
  OPTIONS,
  async ({ url }, context) => {
    const { hand, broker, topic } = await rig(context, url);
    await hand.make(topic, 5);
    const subjects = Array.from({ length: 40 }, (_, n) => `subject-${n}`);
    await broker.publishAll(topic, subjects.map((subject) => ({ type: "n", subject, data: "ours" })));
    await hand.write(topic, subjects.map((key) => ({ key, value: '{"data":"theirs"}' })));
    const log = await readLog(hand, topic);
    assert.equal(log.length, 80);
    for (const subject of subjects) {
      assert.equal(
        new Set(log.filter(({ key }) => key === subject).map(({ partition }) => partition)).size,
        1,
        subject,
      );
    }
    assert.ok(new Set(log.map(({ partition }) => partition)).size > 2);
  },
);

onKafka(
  "a topic is created with the partitions asked for, and another number is refused by name",
  OPTIONS,
  async ({ url }, context) => {
    const { hand, broker, topic } = await rig(context, url, {
      partitions: 3,
      topicConfig: { "retention.ms": "3600000" },
    });
    await broker.publish(topic, { type: "a" });
    assert.equal(await partitionsOf(hand, topic), 3);
    const other = make(context, url, { partitions: 4, group: "g" });
    const error = await failed(other.publish(topic, { type: "a" }));
    assert.equal(error.code, "partition-mismatch");
    assert.match(error.message, /3.*4/);
    const reading = await failed(other.subscribe(topic)[Symbol.asyncIterator]().next());
    assert.equal(reading.code, "partition-mismatch");
  },
);

onKafka(
  "a topic that does not exist is refused where none may be created, and so is a name that Kafka does not take",
  OPTIONS,
  async ({ url }, context) => {
    const { broker, topic } = await rig(context, url, { createTopics: false, group: "g" });
    const error = await failed(broker.publish(topic, { type: "a" }));
    assert.equal(error.code, "invalid-option");
    assert.match(error.message, /createTopics/);
    assert.equal((await failed(broker.subscribe(topic)[Symbol.asyncIterator]().next())).code, "invalid-option");
    for (const bad of ["a b", "a:b", ".", "x".repeat(250)]) {
      const refused = await failed(make(context, url).publish(bad, { type: "a" }));
      assert.equal(refused.code, "invalid-option");
    }
  },
);

onKafka(
  "a record that the topic refuses fails alone; of its subject nothing follows, others go",
  OPTIONS,
  async ({ url }, context) => {
    const { hand, broker, topic } = await rig(context, url);
    await hand.make(topic, 2, { "max.message.bytes": "2000" });
    const messages = Array.from({ length: 30 }, (_, n) => ({
      type: "n",
      subject: `s${n % 3}`,
      data: { n, text: n === 10 ? "x".repeat(5_000) : "" },
    }));
    const error = await failed(broker.publishAll(topic, messages));
    assert.ok(error instanceof PublishBatchError || error.code === "publish-batch");
    const outcomes = (error as PublishBatchError).outcomes;
    const bad = outcomes.flatMap((outcome, n) => outcome.ok ? [] : [n]);
    assert.deepEqual(bad, messages.flatMap((_, n) => n % 3 === 1 && n >= 10 ? [n] : []));
    const first = outcomes[10]!;
    assert.ok(!first.ok && first.error.code === "publish-refused");
    const log = dataOf(await readLog(hand, topic)) as { readonly n: number }[];
    assert.deepEqual(
      log.map(({ n }) => n).sort((a, b) => a - b),
      messages.flatMap((_, n) => bad.includes(n) ? [] : [n]),
    );
    // The producer is as good as before.
    await broker.publish(topic, { type: "n", subject: "s1", data: { n: 99, text: "" } });
    assert.equal(broker.healthy, true);
  },
);

onKafka(
  "what was sent and not answered is unknown, and the records after it are written (KAF-11)",
  OPTIONS,
  async (server, context) => {
    const { hand, topic } = await rig(context, server.url);
    const { proxy, brokers } = await openKafkaDoor(server);
    context.cleanup(() => proxy.close());
    const broker = make(context, brokers, { publishTimeoutMs: 1_000, connectTimeoutMs: 1_000, callTimeoutMs: 1_000 });
    await broker.publish(topic, { type: "n", subject: "s", data: 0 });
    for (let round = 1; round <= 5; round++) {
      // The server has it; its answer does not arrive.
      await proxy.blackHole("down");
      const lost = await failed(broker.publish(topic, { type: "n", subject: "s", data: -round }));
      assert.equal(lost.code, "outcome-unknown");
      await proxy.heal();
      await until(async () => {
        try {
          await broker.publish(topic, { type: "n", subject: "s", data: round });
          return true;
        } catch (error) {
          assert.ok(isEdaError(error) && error.retriable);
          return false;
        }
      });
    }
    const log = dataOf(await readLog(hand, topic)) as number[];
    for (let round = 0; round <= 5; round++) {
      assert.ok(
        log.includes(round),
        `${round} was confirmed, and is in the log`,
      );
    }
  },
);

onKafka(
  "cuts in the middle of publishing lose nothing that was confirmed and write nothing twice that was",
  OPTIONS,
  async (server, context) => {
    const { hand, topic } = await rig(context, server.url);
    const { proxy, brokers } = await openKafkaDoor(server);
    context.cleanup(() => proxy.close());
    const broker = make(context, brokers);
    await hand.make(topic, 3);
    const confirmed: number[] = [];
    const unknown: number[] = [];
    let n = 0;
    const publish = async (): Promise<void> => {
      const mine = n++;
      try {
        await broker.publish(topic, { type: "n", subject: `s${mine % 20}`, data: mine });
        confirmed.push(mine);
      } catch (error) {
        assert.ok(isEdaError(error) && error.retriable, String(error));
        if (error.code === "outcome-unknown") unknown.push(mine);
      }
    };
    for (let cut = 0; cut < 8; cut++) {
      const before = confirmed.length;
      await until(async () => {
        await Promise.all(Array.from({ length: 50 }, publish));
        return confirmed.length > before;
      });
      const burst = Array.from({ length: 100 }, publish);
      await proxy.cutAfter(3_000, cut % 2 === 0 ? "up" : "down");
      await Promise.all(burst);
    }
    const log = dataOf(await readLog(hand, topic)) as number[];
    const counts = new Map<number, number>();
    for (const one of log) counts.set(one, (counts.get(one) ?? 0) + 1);
    assert.deepEqual(confirmed.filter((one) => counts.get(one) !== 1), []);
    const allowed = new Set([...confirmed, ...unknown]);
    assert.deepEqual(
      [...counts.keys()].filter((one) => !allowed.has(one)),
      [],
      "nothing that was called unsent is there",
    );
  },
);

onKafka(
  "records are compressed as asked, and one without a codec is refused by name",
  OPTIONS,
  async ({ url }, context) => {
    const { broker, topic } = await rig(context, url, { compression: "gzip", group: fresh("g") });
    await broker.publish(topic, { type: "n", data: "x".repeat(10_000) });
    for await (const delivery of broker.subscribe(topic)) {
      assert.equal(delivery.envelope.data, "x".repeat(10_000));
      await delivery.ack();
      break;
    }
    const error = await failed(make(context, url, { compression: "zstd" }).publish(topic, { type: "n" }));
    assert.equal(error.code, "publish-refused");
    assert.match(error.message, /codec/);
  },
);

onKafka(
  "connect makes a broker of a URL with several hosts, of which some are away",
  OPTIONS,
  async ({ url }, context) => {
    const broker = await connect(`kafka://127.0.0.1:1,${url}`, { source: "/connect", logger: false });
    context.cleanup(() => broker.close());
    const sent = await broker.publish(fresh("t"), { type: "a" });
    assert.equal(sent.source, "/connect");
  },
);

const withOwn = onServer("kafka");

withOwn(
  "TLS: with the authority's certificate it works, without it fails and shows no address",
  OPTIONS,
  async (start, context) => {
    const server = await start({ tls: true });
    const { readFileSync } = await import("node:fs");
    const ca = readFileSync(`${server.dir}/ca.crt`, "utf8");
    const topic = fresh("t");
    const brokers = `127.0.0.1:${server.port}`;
    await make(context, brokers, { client: { ssl: { ca: [ca] } } }).publish(topic, { type: "a" });
    const error = await failed(make(context, brokers, { client: { ssl: true }, connectTimeoutMs: 3_000 }).connect());
    assert.equal(error.code, "broker-unavailable");
    assert.ok(!JSON.stringify([error.message, String(error.cause)]).includes("127.0.0.1"));
  },
);

/** SASL/PLAIN at the first door; the bed asks the listener of clients whether it answers. */
const SASL = [
  "listener.security.protocol.map=CLIENT:PLAINTEXT,DOOR1:SASL_PLAINTEXT,DOOR2:PLAINTEXT,DOOR3:PLAINTEXT," +
  "DOOR4:PLAINTEXT,CONTROLLER:PLAINTEXT",
  "sasl.enabled.mechanisms=PLAIN",
  "listener.name.door1.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required " +
  'user_app="right";',
].flatMap((setting) => ["--override", setting]);

withOwn(
  "SASL: credentials go through client; wrong ones are an error of their own that does not show them",
  OPTIONS,
  async (start, context) => {
    const { proxy, brokers } = await openKafkaDoor(await start({ args: SASL }));
    context.cleanup(() => proxy.close());
    const sasl = (password: string) => ({
      group: "g",
      client: { sasl: { mechanism: "plain", username: "app", password } },
    });
    const topic = fresh("t");
    const broker = make(context, brokers, sasl("right"));
    await broker.publish(topic, { type: "a", data: 7 });
    for await (const delivery of broker.subscribe(topic)) {
      assert.equal(delivery.envelope.data, 7);
      await delivery.ack();
      break;
    }
    const error = await failed(make(context, brokers, sasl("wrong-secret")).connect());
    assert.equal(error.code, "authentication-failed");
    assert.ok(!`${error.message} ${error.cause}`.includes("wrong-secret"));
    assert.equal((await failed(make(context, brokers).connect())).retriable, true);
  },
);
