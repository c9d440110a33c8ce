/**
 * How late the host's timers are while it consumes and publishes at full speed.
 *
 * @module
 */
import type { CaseSettings } from "../support/case.ts";
import { atMost, type Figure, figure, quantile } from "../support/figure.ts";
import { consume, publish, redisBroker, streamOf } from "../support/ours.ts";
import { client, fill } from "../support/redis_raw.ts";

const TOPIC = "bench-delay";
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
  const count = settings.quick ? 20_000 : 200_000;
  const rounds = settings.quick ? 1 : 5;
  const stream = streamOf(TOPIC);
  const raw = await client(settings.redisUrl);
  const consuming: number[] = [];
  const publishing: number[] = [];
  let total = 0;
  for (let round = 0; round <= rounds; round++) {
    await raw.del(stream);
    await fill(raw, stream, count);
    const broker = redisBroker(settings.redisUrl);
    await broker.connect();
    const first = new Lateness();
    await consume(broker, TOPIC, `g${round}`, count, ({ envelope }) => {
      total += (envelope.data as { total: number }).total;
    });
    const whileConsuming = first.stop();
    await raw.del(stream);
    const second = new Lateness();
    await publish(broker, TOPIC, count, 256);
    const whilePublishing = second.stop();
    await broker.close();
    if (round === 0) continue;
    consuming.push(quantile(whileConsuming, 0.99));
    publishing.push(quantile(whilePublishing, 0.99));
  }
  await raw.del(stream);
  raw.disconnect();
  return [
    figure("host event-loop delay p99, consuming", "ms", consuming, atMost(5)),
    figure("host event-loop delay p99, publishing", "ms", publishing, atMost(5)),
  ];
}
