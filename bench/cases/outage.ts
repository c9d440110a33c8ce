/**
 * The broker goes away and comes back: how long until messages flow again.
 *
 * @module
 */
import { type Server, startServer } from "../../tests/support/bed/server.ts";
import { startProxy } from "../../tests/support/proxy/proxy.ts";
import { brokerOf } from "../brokers.ts";
import type { BenchBroker } from "../support/broker.ts";
import type { CaseSettings } from "../support/case.ts";
import { atMost, type Figure, figure } from "../support/figure.ts";

const GIVE_UP_MS = 30_000;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Runs the benchmark. */
export async function run(settings: CaseSettings): Promise<readonly Figure[]> {
  const rounds = settings.quick ? 1 : 5;
  const awayMs = settings.quick ? 1_000 : 5_000;
  const broker = await brokerOf(settings.broker);
  const server = await startServer(settings.server, broker.durable);
  const proxy = await startProxy({ port: server.port });
  try {
    const cut: number[] = [];
    const restarted: number[] = [];
    for (let round = 0; round < rounds; round++) {
      cut.push(
        await outage(broker, server, proxy.url(server.url), async () => {
          await proxy.refuse();
          await proxy.cut();
          await pause(awayMs);
          await proxy.heal();
        }),
      );
      restarted.push(
        await outage(broker, server, server.url, async () => {
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
async function outage(
  bench: BenchBroker,
  server: Server,
  url: string,
  happen: () => Promise<void>,
): Promise<number> {
  const direct = await bench.open(server.url);
  const place = await direct.stock(1, "ordered");
  const broker = direct.ours({ url, group: place.group });
  let arrived: (() => void) | undefined;
  const next = (): Promise<boolean> => {
    const arrival = new Promise<boolean>((resolve) => arrived = () => resolve(true));
    return Promise.race([arrival, pause(GIVE_UP_MS).then(() => false)]);
  };
  const stop = new AbortController();
  const consuming = (async () => {
    for await (const delivery of broker.subscribe(place.topic, { signal: stop.signal })) {
      await delivery.ack();
      arrived?.();
    }
  })();
  const first = next();
  if (!await first) throw new Error("nothing arrived before the outage");
  await happen();
  const back = performance.now();
  const second = next();
  await direct.send(place, 2);
  const came = await second;
  const ms = performance.now() - back;
  stop.abort();
  await consuming;
  await broker.close();
  await direct.close();
  return came ? ms : GIVE_UP_MS;
}
