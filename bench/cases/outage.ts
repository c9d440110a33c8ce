/**
 * The broker goes away and comes back: how long until messages flow again.
 *
 * @module
 */
import { type Server, startServer } from "../../tests/support/bed/server.ts";
import { startProxy } from "../../tests/support/proxy/proxy.ts";
import type { CaseSettings } from "../support/case.ts";
import { eventText, subjectOf } from "../support/event.ts";
import { atMost, type Figure, figure } from "../support/figure.ts";
import { redisBroker, streamOf } from "../support/ours.ts";
import { client } from "../support/redis_raw.ts";

const TOPIC = "bench-outage";
const GIVE_UP_MS = 30_000;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Runs the benchmark. */
export async function run(settings: CaseSettings): Promise<readonly Figure[]> {
  const rounds = settings.quick ? 1 : 5;
  const awayMs = settings.quick ? 1_000 : 5_000;
  const server = await startServer(settings.server, {
    args: ["--appendonly", "yes", "--appendfsync", "always"],
  });
  const proxy = await startProxy({ port: server.port });
  try {
    const cut: number[] = [];
    const restarted: number[] = [];
    for (let round = 0; round < rounds; round++) {
      cut.push(
        await outage(server, proxy.url(server.url), async () => {
          await proxy.refuse();
          await proxy.cut();
          await pause(awayMs);
          await proxy.heal();
        }),
      );
      restarted.push(
        await outage(server, server.url, async () => {
          await server.kill();
          await pause(awayMs);
          await server.restart();
        }),
      );
    }
    return [
      figure("consuming again after the network is back", "ms", cut, atMost(2_000)),
      figure("consuming again after the server is back", "ms", restarted, atMost(2_000)),
    ];
  } finally {
    await proxy.close();
    await server.stop();
  }
}

/** Consumes, lets `happen` end with the broker back, and answers how long after that the next message came. */
async function outage(server: Server, url: string, happen: () => Promise<void>): Promise<number> {
  const broker = redisBroker(url, { group: "g" });
  let arrived: (() => void) | undefined;
  const next = (): Promise<boolean> => {
    const arrival = new Promise<boolean>((resolve) => arrived = () => resolve(true));
    return Promise.race([arrival, pause(GIVE_UP_MS).then(() => false)]);
  };
  const stop = new AbortController();
  const consuming = (async () => {
    for await (const delivery of broker.subscribe(TOPIC, { signal: stop.signal })) {
      await delivery.ack();
      arrived?.();
    }
  })();
  const send = async (n: number): Promise<void> => {
    const raw = await client(server.url);
    await raw.xadd(streamOf(TOPIC), "*", "ce", eventText(n), "subject", subjectOf(n));
    raw.disconnect();
  };
  const first = next();
  await send(1);
  if (!await first) throw new Error("nothing arrived before the outage");
  await happen();
  const back = performance.now();
  const second = next();
  await send(2);
  const came = await second;
  const ms = performance.now() - back;
  stop.abort();
  await consuming;
  await broker.close();
  return came ? ms : GIVE_UP_MS;
}
