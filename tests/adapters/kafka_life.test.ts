import assert from "node:assert/strict";
import { createServer, type Socket } from "node:net";
import { KafkaBroker } from "../../adapters/kafka/mod.ts";
import { isEdaError } from "../../core/errors.ts";
import { assertExits, child, fresh, onLeg, test } from "../support/test.ts";

const onKafka = onLeg("kafka");

for (const isolation of ["worker", "inline"] as const) {
  test(
    `connecting to a server that never answers fails by its deadline, ${isolation} (RUN-01)`,
    { sanitize: false },
    async (context) => {
      const sockets: Socket[] = [];
      const server = createServer((socket) => {
        socket.on("error", () => {});
        sockets.push(socket);
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      context.cleanup(() => {
        for (const socket of sockets) socket.destroy();
        server.close();
      });
      const { port } = server.address() as { readonly port: number };
      const broker = new KafkaBroker({
        brokers: [`127.0.0.1:${port}`],
        connectTimeoutMs: 800,
        publishTimeoutMs: 800,
        logger: false,
        group: "g",
        source: "/silent",
        isolation,
      });
      context.cleanup(() => broker.close());
      for (
        const work of [
          () => broker.connect(),
          () => broker.publish("t", { type: "a" }),
          () => broker.subscribe("t")[Symbol.asyncIterator]().next(),
        ]
      ) {
        // A worker has to be started first; its deadline begins with the connecting.
        const start = performance.now();
        await assert.rejects(work, (error) => isEdaError(error) && error.code === "broker-unavailable");
        assert.ok(performance.now() - start < 8_000);
      }
      const start = performance.now();
      await broker.close();
      assert.ok(performance.now() - start < 3_000);
    },
  );

  onKafka(`publishing, consuming and closing leave nothing that keeps the process, ${isolation} (RUN-07)`, {
    timeoutMs: 60_000,
  }, async ({ url }) => {
    const script = new URL("./kafka_life_script.ts", import.meta.url);
    const plan = JSON.stringify({ brokers: url.split(","), isolation, topic: fresh("t"), group: fresh("g") });
    const { stderr } = await assertExits(script, [plan], {}, { timeoutMs: 40_000 });
    assert.doesNotMatch(stderr, /warning/i);
  });
}

onKafka(
  "no runtime warns of a timer, and an idle client's does not run for ever (RUN-06)",
  { timeoutMs: 60_000 },
  async ({ url }) => {
    const script = new URL("./kafka_life_script.ts", import.meta.url);
    const plan = JSON.stringify({
      brokers: url.split(","),
      isolation: "inline",
      topic: fresh("t"),
      group: fresh("g"),
      countTimersMs: 2_000,
    });
    const { stdout, stderr, code } = await child(script, [plan], {}, { timeoutMs: 40_000 }).done;
    assert.equal(code, 0, stderr);
    assert.doesNotMatch(`${stdout}${stderr}`, /TimeoutNegativeWarning|negative number/);
    const timers = Number(/timers (\d+)/.exec(stdout)?.[1]);
    // Fetches, heartbeats and checks of requests: tens a second; the queue's own timer would add a thousand for each connection.
    assert.ok(timers < 400, `${timers} timers were set in two idle seconds`);
  },
);
