import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { brokerPorts } from "./bed/kafka_kind.ts";
import { startTicksOf } from "./bed/state.ts";
import { openKafkaDoor } from "./kafka_door.ts";
import { createTopic, fetchAll, mechanisms, produce } from "./talk/kafka.ts";
import { fresh, onLeg, onServer, until } from "./test.ts";

const SLOW = { timeoutMs: 120_000 } as const;

/** A new topic has no leader for a moment. */
async function write(port: number, topic: string, value: string): Promise<number> {
  const { offset } = await until(async () => ({ offset: await produce(port, topic, value) }), {
    everyMs: 100,
    timeoutMs: 20_000,
    what: "a leader of the topic",
  });
  return offset;
}

const onKafka = onLeg("kafka");

onKafka("writes and reads", async ({ url }) => {
  const port = Number(url.split(",")[0]!.split(":")[1]);
  const topic = fresh("t");
  await createTopic(port, topic);
  assert.equal(await write(port, topic, "first value"), 0);
  assert.match(await fetchAll(port, topic), /first value/);
});

onKafka("several tests at a time each have a proxy that clients stay behind", async (leg, context) => {
  const doors = await Promise.all([openKafkaDoor(leg), openKafkaDoor(leg)]);
  for (const { proxy } of doors) context.cleanup(() => proxy.close());
  assert.notEqual(doors[0]!.proxy.port, doors[1]!.proxy.port);
  for (const { proxy, brokers } of doors) {
    assert.equal(brokers, `127.0.0.1:${proxy.port}`);
    assert.deepEqual(await brokerPorts(proxy.port), [proxy.port]);
    assert.ok((await proxy.counts()).down > 0);
  }
});

const withOwn = onServer("kafka");

withOwn("a kill is seen at once; a restart has what was confirmed; stop leaves nothing", SLOW, async (start) => {
  const server = await start();
  const { port, pid, dir } = server;
  const topic = fresh("t");
  await createTopic(port, topic);
  for (let n = 0; n < 5; n++) assert.equal(await write(port, topic, `value ${n}`), n);
  await server.kill();
  assert.equal(startTicksOf(pid), undefined);
  assert.equal(await brokerPorts(port), undefined);
  await server.restart();
  assert.equal(server.port, port);
  await until(async () => /value 0[^]*value 4/.test(await fetchAll(port, topic)), { timeoutMs: 20_000 });
  assert.equal(await write(port, topic, "value 5"), 5);
  await server.restart();
  await until(async () => /value 0[^]*value 5/.test(await fetchAll(port, topic)), { timeoutMs: 20_000 });
  await server.stop();
  await server.stop();
  assert.equal(existsSync(dir), false);
  assert.equal(startTicksOf(server.pid), undefined);
});

withOwn("frozen it does not answer; its doors keep their ports over a restart", SLOW, async (start, context) => {
  const server = await start();
  const { ports } = server;
  server.pause();
  assert.equal(await brokerPorts(server.port), undefined);
  server.resume();
  assert.deepEqual(await brokerPorts(server.port), [server.port]);
  const { proxy } = await openKafkaDoor(server);
  context.cleanup(() => proxy.close());
  assert.deepEqual(await brokerPorts(proxy.port), [proxy.port]);
  await server.restart();
  assert.deepEqual(server.ports, ports);
  assert.deepEqual(await brokerPorts(proxy.port), [proxy.port]);
});

withOwn("takes settings, and speaks TLS alone if so asked", SLOW, async (start) => {
  const server = await start({ tls: true, args: ["--override", "auto.create.topics.enable=false"] });
  assert.deepEqual(await brokerPorts(server.port, true), [server.port]);
  assert.equal(await brokerPorts(server.port), undefined);
});

withOwn("a door can ask for a password while the tests' own listener asks for none", SLOW, async (start) => {
  const login = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_tester="secret";';
  const doors = [1, 2, 3, 4].map((door) => `DOOR${door}:${door === 1 ? "SASL_PLAINTEXT" : "PLAINTEXT"}`);
  const settings = {
    "listener.security.protocol.map": ["CLIENT:PLAINTEXT", "CONTROLLER:PLAINTEXT", ...doors].join(","),
    "listener.name.door1.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.door1.plain.sasl.jaas.config": login,
  };
  const server = await start({
    args: Object.entries(settings).flatMap(([key, value]) => ["--override", `${key}=${value}`]),
  });
  assert.match(await mechanisms(server.ports.inner1!), /PLAIN/);
  assert.equal(await brokerPorts(server.ports.inner1!), undefined);
  assert.deepEqual(await brokerPorts(server.port), [server.port]);
});
