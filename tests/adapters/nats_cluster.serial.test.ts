import assert from "node:assert/strict";
import { freePorts } from "../support/bed/run.ts";
import { fresh, onServer, type Server, type Start, type TestContext, until } from "../support/test.ts";
import { assertFirstInOrder, Collector, events, natsBroker } from "./nats_rig.ts";
import { NatsAdmin } from "./nats_support.ts";

/** Three servers that are one cluster, and have a leader. */
async function cluster(start: Start, context: TestContext): Promise<{ servers: Server[]; url: string }> {
  for (let attempt = 1;; attempt++) {
    const ports = await freePorts(3);
    const routes = ports.map((port) => `nats://127.0.0.1:${port}`).join(",");
    const servers = await Promise.all(ports.map((port, at) =>
      start({
        args: [
          ...["--name", `n${at}`, "--cluster_name", "three"],
          ...["--cluster", `nats://127.0.0.1:${port}`, "--routes", routes],
        ],
      })
    ));
    const admin = await NatsAdmin.connect(servers[0]!.url);
    context.cleanup(() => admin.close());
    const name = fresh("probe");
    const made = () => admin.api(`STREAM.CREATE.${name}`, { name, num_replicas: 3 }).then(() => true, () => false);
    try {
      await until(made, { what: "the cluster has a leader", timeoutMs: 30_000, everyMs: 200 });
      await admin.api(`STREAM.DELETE.${name}`);
      return { servers, url: `nats://${servers.map(({ port }) => `127.0.0.1:${port}`).join(",")}` };
    } catch (error) {
      // Another process may have taken one of the free ports in between.
      if (attempt === 3) throw error;
      await Promise.all(servers.map((server) => server.stop()));
    }
  }
}

/** The server that leads a stream. */
async function leaderOf(servers: readonly Server[], topic: string): Promise<Server> {
  const admin = await NatsAdmin.connect(servers[0]!.url);
  try {
    const { cluster } = await admin.stream(topic) as unknown as { cluster: { leader: string } };
    return servers[Number(cluster.leader.slice(1))]!;
  } finally {
    await admin.close();
  }
}

const withNats = onServer("nats");

for (const ordered of [true, false]) {
  withNats(
    `a cluster whose leader is killed: nothing is lost, ${ordered ? "order stands" : "unordered"}, acks are confirmed`,
    { timeoutMs: 240_000 },
    async (start, context) => {
      const { servers, url } = await cluster(start, context);
      const topic = fresh("t");
      const options = {
        url,
        ordered,
        replicas: 3,
        ownerLeaseMs: 3_000,
        ackWaitMs: 3_000,
        callTimeoutMs: 3_000,
      } as const;
      const publisher = natsBroker(context, options);
      const brokers = [natsBroker(context, options), natsBroker(context, options)];
      const settled = new Set<number>();
      const sequence: number[] = [];
      for (const broker of brokers) {
        new Collector(context, broker, async (delivery) => {
          const n = delivery.envelope.data as number;
          sequence.push(n);
          if (await delivery.ack({ confirm: true }) === "settled") settled.add(n);
        }, topic);
      }
      /** Publishes through failures, with the same ids again: what arrived is known to the stream. */
      const publish = async (from: number, to: number): Promise<void> => {
        const batch = events(from, to).map((event, at) => ({ ...event, id: `e-${from + at}` }));
        await until(() => publisher.publishAll(topic, batch).then(() => true, () => false), {
          what: "a batch is published",
          timeoutMs: 40_000,
        });
      };
      const publishing = (async () => {
        for (let n = 0; n < 300; n += 10) await publish(n, n + 10);
      })();
      await until(() => settled.size >= 60, { what: "a part is done", timeoutMs: 30_000 });
      const leader = await leaderOf(servers, topic);
      await leader.kill();
      await publishing;
      await until(() => settled.size === 300, { what: "all is settled", timeoutMs: 60_000 });
      if (ordered) assertFirstInOrder(sequence);
      await leader.restart();
      await publish(300, 310);
      await until(() => settled.size === 310, { what: "all is settled", timeoutMs: 30_000 });
      assert.equal(new Set(sequence).size, 310);
    },
  );
}
