/**
 * A long backlog: what consuming it does to the memory of the process.
 *
 * @module
 */
import { brokerOf } from "../brokers.ts";
import { type CaseSettings, say } from "../support/case.ts";
import { residentMb } from "../support/cpu.ts";
import { atMost, type Figure, figure } from "../support/figure.ts";

/** Runs the benchmark. */
export async function run(settings: CaseSettings): Promise<readonly Figure[]> {
  const bench = await brokerOf(settings.broker);
  const count = settings.quick ? bench.counts.backlog / 10 : bench.counts.backlog;
  const server = await bench.open(settings.url);
  const { topic, group } = await server.stock(count, "ordered");
  const broker = server.ours();
  const samples: number[] = [];
  let done = 0;
  let total = 0;
  const started = performance.now();
  for await (const delivery of broker.subscribe(topic, { group })) {
    total += (delivery.envelope.data as { total: number }).total;
    if (++done % (count / 50) === 0) samples.push(residentMb());
    await delivery.ack({ confirm: done === count });
    if (done === count) break;
  }
  const seconds = (performance.now() - started) / 1_000;
  await broker.close();
  await server.close();
  // Until a tenth is done, code is compiled and the heap finds its size.
  const steady = samples.slice(samples.length / 10);
  const range = Math.max(...steady) - Math.min(...steady);
  const least = Math.min(...steady).toFixed(0);
  const most = Math.max(...steady).toFixed(0);
  say(`${count.toLocaleString("en")} messages in ${seconds.toFixed(1)} s, resident ${least} to ${most} MB`);
  return [
    figure("resident memory over the backlog, largest - smallest", "MB", [range], atMost(100)),
    figure("resident memory, largest", "MB", [Math.max(...samples)]),
  ];
}
