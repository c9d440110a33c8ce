/**
 * How late the host's timers are while it consumes and publishes at full speed.
 *
 * @module
 */
import { brokerOf } from "../brokers.ts";
import type { CaseSettings } from "../support/case.ts";
import { atMost, type Figure, figure, quantile } from "../support/figure.ts";
import { consume, publish } from "../support/ours.ts";

const EVERY_MS = 2;

/** Sets timers one after the other and writes down how late each one is. */
class Lateness {
  readonly values: number[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    this.#arm();
  }

  #arm(): void {
    const due = performance.now() + EVERY_MS;
    this.#timer = setTimeout(() => {
      this.values.push(Math.max(0, performance.now() - due));
      this.#arm();
    }, EVERY_MS);
  }

  stop(): number[] {
    clearTimeout(this.#timer);
    return this.values;
  }
}

/** Runs the benchmark. */
export async function run(settings: CaseSettings): Promise<readonly Figure[]> {
  const bench = await brokerOf(settings.broker);
  const count = settings.quick ? bench.counts.delay / 10 : bench.counts.delay;
  const rounds = settings.quick ? 1 : 5;
  const server = await bench.open(settings.url);
  const consuming: number[] = [];
  const publishing: number[] = [];
  let total = 0;
  for (let round = 0; round <= rounds; round++) {
    const place = await server.stock(count, "ordered");
    const broker = server.ours();
    await broker.connect();
    const first = new Lateness();
    await consume(broker, place, count, ({ envelope }) => {
      total += (envelope.data as { total: number }).total;
    });
    const whileConsuming = first.stop();
    const topic = await server.empty();
    const second = new Lateness();
    await publish(broker, topic, count, 256);
    const whilePublishing = second.stop();
    await broker.close();
    if (round === 0) continue;
    consuming.push(quantile(whileConsuming, 0.99));
    publishing.push(quantile(whilePublishing, 0.99));
  }
  await server.close();
  return [
    figure("host event-loop delay p99, consuming", "ms", consuming, atMost(5)),
    figure("host event-loop delay p99, publishing", "ms", publishing, atMost(5)),
  ];
}
