import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { createTransport } from "../../adapters/redis/transport.ts";
import type { EdaError } from "../../core/errors.ts";
import { onLegs, onServer, test, type TestContext } from "../support/test.ts";
import {
  admin,
  bodies,
  bodiesOf,
  Listener,
  names,
  openTransport,
  pendingOf,
  publish,
  Reader,
} from "./redis_support.ts";

/** A server that speaks RESP and answers each command as it is told; counts connections. */
async function fakeServer(
  context: TestContext,
  answer: (command: string[]) => string | undefined,
): Promise<{ url: string; connections: () => number; commands: string[][] }> {
  let connections = 0;
  const commands: string[][] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    connections++;
    sockets.add(socket);
    let text = "";
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    socket.on("data", (bytes) => {
      text += String(bytes);
      for (;;) {
        const command = take();
        if (command === undefined) return;
        commands.push(command);
        const reply = answer(command);
        if (reply !== undefined) socket.write(reply);
      }
    });
    const take = (): string[] | undefined => {
      const head = /^\*(\d+)\r\n/.exec(text);
      if (head === null) return undefined;
      let at = head[0].length;
      const words: string[] = [];
      for (let n = 0; n < Number(head[1]); n++) {
        const size = /^\$(\d+)\r\n/.exec(text.slice(at));
        if (size === null) return undefined;
        at += size[0].length;
        if (text.length < at + Number(size[1]) + 2) return undefined;
        words.push(text.slice(at, at + Number(size[1])));
        at += Number(size[1]) + 2;
      }
      text = text.slice(at);
      return words;
    };
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.cleanup(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  const { port } = server.address() as { port: number };
  return { url: `redis://127.0.0.1:${port}`, connections: () => connections, commands };
}

const bulk = (text: string): string => `$${text.length}\r\n${text}\r\n`;

/** Opens a transport that cannot be opened; answers why. */
async function whyNot(context: TestContext, options: Parameters<typeof createTransport>[0]): Promise<EdaError> {
  const transport = await createTransport(options);
  context.cleanup(() => transport.close());
  try {
    await transport.open(new Listener());
  } catch (error) {
    return error as EdaError;
  }
  throw new Error("It opened");
}

/** Everything that an error and its causes could print. */
function printed(error: unknown): string {
  let text = "";
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    text += `${at.stack} ${JSON.stringify({ ...at, message: at.message })}`;
  }
  return text;
}

test("redis: a server that is too old is refused, with the version found and the version needed, and not asked again (RED-13)", async (context) => {
  const server = await fakeServer(context, ([name = "", second = ""]) => {
    const command = name.toUpperCase();
    if (command === "INFO") return bulk("# Server\r\nredis_version:5.0.0\r\nloading:0\r\n");
    if (command === "CLIENT" && second.toUpperCase() === "ID") return ":7\r\n";
    return "-ERR syntax error\r\n";
  });
  const error = await whyNot(context, { url: server.url });
  assert.equal(error.code, "server-unsupported");
  assert.equal(error.retriable, false);
  assert.match(error.message, /5\.0\.0.*6\.2/);
  assert.equal(server.connections(), 1);
});

test("redis: a server that loads its data is unavailable for now", async (context) => {
  const server = await fakeServer(
    context,
    ([name = ""]) => name.toUpperCase() === "INFO" ? bulk("redis_version:7.0.0\r\nloading:1\r\n") : ":1\r\n",
  );
  const error = await whyNot(context, { url: server.url });
  assert.equal(error.code, "broker-unavailable");
  assert.match(error.message, /loading/);
});

test("redis: a server that takes the connection and says nothing is given up at the deadline", async (context) => {
  const server = await fakeServer(context, () => undefined);
  const from = performance.now();
  const error = await whyNot(context, { url: server.url, connectTimeoutMs: 300 });
  assert.equal(error.code, "broker-unavailable");
  assert.ok(performance.now() - from < 1_500);
});

test("redis: nobody there is unavailable, and neither error nor cause says where", async (context) => {
  const error = await whyNot(context, { url: "redis://someone:s3cret@127.0.0.1:1/0" });
  assert.equal(error.code, "broker-unavailable");
  assert.equal(error.retriable, true);
  assert.doesNotMatch(printed(error), /s3cret|someone|127\.0\.0\.1/);
});

test("redis: a name that does not resolve is unavailable", async (context) => {
  const error = await whyNot(context, { url: "redis://nowhere.invalid:6379" });
  assert.equal(error.code, "broker-unavailable");
  assert.doesNotMatch(printed(error), /nowhere/);
});

test("redis: a version without INFO rights is done without", async (context) => {
  const server = await fakeServer(
    context,
    ([name = ""]) =>
      name.toUpperCase() === "INFO" ? "-NOPERM this user has no permissions to run the 'info' command\r\n" : ":1\r\n",
  );
  const transport = await createTransport({ url: server.url });
  context.cleanup(() => transport.close());
  await transport.open(new Listener());
});

test("redis: a node of a larger cluster is named as what it is", async (context) => {
  const server = await fakeServer(context, ([name = ""]) => {
    if (name.toUpperCase() === "INFO") return bulk("redis_version:7.2.0\r\nloading:0\r\n");
    if (/^(GET|EVAL|XADD)/i.test(name)) return "-MOVED 1234 10.0.0.9:6379\r\n";
    return ":1\r\n";
  });
  const transport = await createTransport({ url: server.url });
  context.cleanup(() => transport.close());
  await transport.open(new Listener());
  await assert.rejects(transport.send("orders", [{ body: "m1" }]), { code: "server-unsupported" });
});

const onOwn = onServer("redis");
const own = { sanitize: false } as const;

onOwn(
  "a wrong password, a missing one and an unknown user are refused, and nothing of them is told",
  own,
  async (start, context) => {
    const server = await start({ args: ["--requirepass", "s3cret"] });
    const base = new URL(server.url);
    for (const credentials of ["", ":wr0ng@", "nobody:wr0ng@"]) {
      const error = await whyNot(context, { url: `redis://${credentials}${base.host}` });
      assert.equal(error.code, "authentication-failed", credentials);
      assert.equal(error.retriable, false);
      assert.doesNotMatch(printed(error), /s3cret|wr0ng|nobody/);
    }
    const { transport } = await openTransport(context, { url: `redis://:s3cret@${base.host}` });
    await publish(transport, names().topic, ["m1"]);
  },
);

onOwn(
  "a user with rights on the keys of the prefix can publish and consume in both modes",
  own,
  async (start, context) => {
    const rights =
      "+@read +@write +@scripting +@transaction +@connection -@dangerous +time +info +client|kill +client|unblock";
    const server = await start({
      args: ["--aclfile", "{dir}/users.acl"],
      files: {
        "users.acl": [
          "user default on nopass ~* &* +@all",
          `user app on >pw ~xsm:* ~{xsm:* resetchannels ${rights}`,
          `user mute on >pw ~xsm:* ~{xsm:* resetchannels ${rights} -xadd`,
          "user blind on >pw ~other:* resetchannels +@all",
          "",
        ].join("\n"),
      },
    });
    const { host } = new URL(server.url);
    for (const ordered of [true, false]) {
      const topic = `orders-${ordered}`;
      const { transport } = await openTransport(context, {
        url: `redis://app:pw@${host}`,
        ordered,
        retentionMs: 1_000,
      });
      await publish(transport, topic, bodies(1, 20), "a");
      await publish(transport, topic, ["m21"], "a");
      const reader = new Reader(transport, topic, "billing");
      const raws = await reader.take(21);
      assert.deepEqual(bodiesOf(raws), bodies(1, 21));
      assert.ok((await reader.ack(raws)).every((outcome) => outcome === "settled"));
      assert.deepEqual(await reader.fetch(50), []);
    }
    const mute = await openTransport(context, { url: `redis://mute:pw@${host}` });
    for (const messages of [[{ body: "m1" }], [{ body: "m1" }, { body: "m2" }]]) {
      for (const outcome of await mute.transport.send("orders-true", messages)) {
        assert.equal((outcome as EdaError).code, "authentication-failed");
        assert.match((outcome as EdaError).message, /XADD/);
      }
    }
    const blind = await openTransport(context, { url: `redis://blind:pw@${host}` });
    await assert.rejects(blind.transport.send("orders-true", [{ body: "m1" }]), { code: "authentication-failed" });
    await assert.rejects(new Reader(blind.transport, "orders-true", "billing").fetch(), {
      code: "authentication-failed",
    });
  },
);

onOwn("a read-only replica takes no messages for now", own, async (start, context) => {
  const server = await start();
  const n = names();
  const client = await admin(context, server.url);
  const { transport } = await openTransport(context, { url: server.url, prefix: n.prefix });
  await publish(transport, n.topic, ["m1"]);
  await client.call("REPLICAOF", "127.0.0.1", "1");
  const [single] = await transport.send(n.topic, [{ body: "m2" }]);
  assert.equal((single as EdaError).code, "broker-unavailable");
  const batch = await transport.send(n.topic, [{ body: "m2" }, { body: "m3" }]);
  assert.deepEqual(batch.map((outcome) => (outcome as EdaError).code), ["broker-unavailable", "broker-unavailable"]);
});

onOwn("publishes and consumes over TLS, and refuses a certificate it does not know", own, async (start, context) => {
  const server = await start({ tls: true });
  const ca = readFileSync(join(server.dir, "ca.crt"), "utf8");
  const n = names();
  const { transport } = await openTransport(context, { url: server.url, prefix: n.prefix, client: { tls: { ca } } });
  await publish(transport, n.topic, ["m1", "m2"], "a");
  const reader = new Reader(transport, n.topic, n.group);
  assert.deepEqual(bodiesOf(await reader.take(2)), ["m1", "m2"]);
  const error = await whyNot(context, { url: server.url });
  assert.equal(error.code, "broker-unavailable");
});

onOwn("all keys of a topic lie in one slot of a cluster, and every script runs there", own, async (start, context) => {
  const server = await start({ args: ["--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"] });
  const client = await admin(context, server.url, { enableReadyCheck: false });
  await client.call("CLUSTER", "ADDSLOTSRANGE", 0, 16_383);
  while (!/cluster_state:ok/.test(String(await client.call("CLUSTER", "INFO")))) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  for (
    const [ordered, prefix, topic] of [[true, "xsm", "plain"], [true, "{shop}", "tagged"], [true, "xsm", "odd}{"], [
      false,
      "xsm",
      "free",
    ]] as const
  ) {
    const { transport } = await openTransport(context, {
      url: server.url,
      prefix,
      ordered,
      retentionMs: 1_000,
      ownerLeaseMs: 600,
      minIdleMs: 200,
    });
    await publish(transport, topic, bodies(1, 30), "a");
    const reader = new Reader(transport, topic, "billing");
    const raws = await reader.take(30);
    assert.deepEqual(bodiesOf(raws), bodies(1, 30));
    await new Promise((resolve) => setTimeout(resolve, 150));
    if (!ordered) assert.ok((await reader.extend(raws)).every((outcome) => outcome === "settled"));
    assert.ok((await reader.ack(raws.slice(0, 20))).every((outcome) => outcome === "settled"));
    assert.ok((await reader.release(raws.slice(20))).every((outcome) => outcome === "settled"));
    await reader.ack(await reader.take(10));
    assert.equal(await pendingOf(client, `${prefix}:stream:${topic}`, "billing"), 0);
    const keys = (await client.call("KEYS", `*${topic}*`) as string[]).filter((key) => key.includes(topic));
    const slots = new Set(await Promise.all(keys.map((key) => client.call("CLUSTER", "KEYSLOT", key))));
    assert.equal(slots.size, 1, keys.join(" "));
    assert.ok(keys.length >= 3);
  }
});

onLegs(["redis"], (onRedis) => {
  onRedis("a server that forgets its scripts is told them again", async ({ url }, context) => {
    const n = names();
    const client = await admin(context, url);
    for (const ordered of [true, false]) {
      const { transport } = await openTransport(context, { url, prefix: n.prefix, ordered });
      const reader = new Reader(transport, `t-${ordered}`, n.group);
      for (let round = 0; round < 3; round++) {
        await client.call("SCRIPT", "FLUSH", "SYNC");
        await publish(transport, reader.topic, [`m${round}`, `n${round}`], "a");
        const raws = await reader.take(2);
        await client.call("SCRIPT", "FLUSH", "SYNC");
        assert.deepEqual(await reader.ack(raws), ["settled", "settled"]);
      }
    }
  });

  onRedis("a database number in the URL is kept to", async ({ url }, context) => {
    const n = names();
    const { transport } = await openTransport(context, { url: `${url}/3`, prefix: n.prefix });
    await publish(transport, n.topic, ["m1"]);
    const reader = new Reader(transport, n.topic, n.group);
    assert.deepEqual(bodiesOf(await reader.take(1)), ["m1"]);
    const client = await admin(context, url);
    assert.equal(await client.call("EXISTS", n.stream), 0);
    await client.call("SELECT", 3);
    assert.equal(await client.call("EXISTS", n.stream), 1);
  });

  onRedis(
    "a name given for the consumer is the name in the group and does not make two instances one",
    async ({ url }, context) => {
      const n = names();
      const options = { url, prefix: n.prefix, consumer: "same" };
      const one = await openTransport(context, options);
      const two = await openTransport(context, options);
      await publish(one.transport, n.topic, ["m1"]);
      const reader = new Reader(one.transport, n.topic, n.group);
      assert.deepEqual(bodiesOf(await reader.take(1)), ["m1"]);
      assert.deepEqual(await new Reader(two.transport, n.topic, n.group).fetch(600), []);
      const client = await admin(context, url);
      const [info] = await client.call("XINFO", "CONSUMERS", n.stream, n.group) as string[][];
      assert.equal(info![1], "same");
      assert.equal(one.listener.count("revoked"), 0);
    },
  );
});
