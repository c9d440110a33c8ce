/**
 * Consume and ack on Redis Streams, window 256: rates, and the CPU of the host's thread, against the raw client's loops.
 *
 * @module
 */
import type { RedisStreamsBroker } from "../../adapters/redis/mod.ts";
import type { Delivery } from "../../core/contract.ts";
import type { CaseSettings } from "../support/case.ts";
import { calibrate, work } from "../support/cpu.ts";
import { atLeast, atMost, type Figure, figure } from "../support/figure.ts";
import { consume, redisBroker, streamOf } from "../support/ours.ts";
import { client, doubleLoop, fill, type RawEvent, serverCpu, simpleLoop } from "../support/redis_raw.ts";
import { type Contestant, each, interleave, type Measure, ratios, Stopwatch } from "../support/rounds.ts";

const TOPIC = "bench-consume";
const WORK_US = 10;
/** The first reference system reached 2,000 consumes a second on such a machine. */
const REFERENCE = 2_000;

let total = 0;
const empty = (): void => {};
const readRaw = (event: RawEvent): void => void (total += event.data.total);
const read = ({ envelope }: Delivery): void => void (total += (envelope.data as { total: number }).total);
/** What a dispatcher looks at to drop a message: its type, subject and id. */
const route = ({ envelope }: Delivery): void => {
  total += envelope.type.length + (envelope.subject?.length ?? 0) + envelope.id.length;
};
const workRaw = (event: RawEvent): void => {
  readRaw(event);
  work(WORK_US);
};
const workOurs = (delivery: Delivery): void => {
  read(delivery);
  work(WORK_US);
};

/** Runs the benchmark. */
export async function run(settings: CaseSettings): Promise<readonly Figure[]> {
  const count = settings.quick ? 10_000 : 40_000;
  const rounds = settings.quick ? 2 : 7;
  const stream = streamOf(TOPIC);
  calibrate();
  const raw = await client(settings.redisUrl);
  await raw.del(stream);
  await fill(raw, stream, count);

  const loop = (name: string, run: typeof simpleLoop, handle: (event: RawEvent) => void): Contestant => ({
    name,
    count,
    run: async (group) => {
      await raw.xgroup("CREATE", stream, group, "0");
      const watch = new Stopwatch();
      await run(raw, stream, group, count, handle);
      return watch.stop(count);
    },
  });
  const brokers: RedisStreamsBroker[] = [];
  const ours = (
    name: string,
    handle: (delivery: Delivery) => void,
    options: { isolation?: "inline"; ordered?: boolean } = {},
  ): Contestant => {
    // One broker for all rounds: what is measured is a service that runs, not one that starts.
    const broker = redisBroker(settings.redisUrl, { ...options, prefetch: 256 });
    brokers.push(broker);
    return { name, count, run: (group) => consume(broker, TOPIC, group, count, handle) };
  };
  const all: readonly Contestant[] = [
    loop("simple", simpleLoop, empty),
    loop("double", doubleLoop, empty),
    ours("worker", empty),
    ours("worker, routed", route),
    ours("worker, data read", read),
    ours("worker, unordered", empty, { ordered: false }),
    ours("inline", empty, { isolation: "inline" }),
    ours("inline, data read", read, { isolation: "inline" }),
    loop("double, 10 µs", doubleLoop, workRaw),
    ours("worker, 10 µs", workOurs),
    ours("inline, 10 µs", workOurs, { isolation: "inline" }),
  ];
  const chosen = settings.contestants.length === 0
    ? all
    : all.filter(({ name }) => settings.contestants.includes(name));
  const results = await interleave(chosen, {
    rounds,
    warmUps: 1,
    patienceMs: settings.patienceMs,
    serverCpu: () => serverCpu(raw),
  });
  await Promise.all(brokers.map((broker) => broker.close()));
  await raw.del(stream);
  raw.disconnect();
  return figures(results);
}

function figures(results: Parameters<typeof ratios>[0]): Figure[] {
  const rate = (measure: Measure): number => measure.rate;
  const host = (measure: Measure): number => measure.hostCpu;
  const against = (ours: string, theirs: string, pick = rate): number[] => ratios(results, ours, theirs, pick);
  return [
    figure("consume through the worker / simple loop", "ratio", against("worker", "simple"), atLeast(1)),
    figure("consume through the worker / double loop", "ratio", against("worker", "double"), atLeast(0.85)),
    figure("the same, data read / simple loop", "ratio", against("worker, data read", "simple")),
    figure("the same, data read / double loop", "ratio", against("worker, data read", "double")),
    figure("the same, 10 µs of work / double loop", "ratio", against("worker, 10 µs", "double, 10 µs"), atLeast(1)),
    figure("consume inline / simple loop", "ratio", against("inline", "simple")),
    figure("consume inline, data read / simple loop", "ratio", against("inline, data read", "simple")),
    figure("consume inline, 10 µs of work / double loop", "ratio", against("inline, 10 µs", "double, 10 µs")),
    figure("ordered / unordered, worker", "ratio", against("worker", "worker, unordered")),
    figure(
      "host CPU a message, data read / simple loop",
      "ratio",
      against("worker, data read", "simple", host),
      atMost(0.8),
    ),
    figure(
      "host CPU a message, data not read / simple loop",
      "ratio",
      against("worker, routed", "simple", host),
      atMost(0.4),
    ),
    figure("host CPU a message, empty handler", "µs", each(results, "worker", host)),
    figure("host CPU a message, data not read", "µs", each(results, "worker, routed", host)),
    figure("host CPU a message, data read", "µs", each(results, "worker, data read", host)),
    figure("host CPU a message, simple loop", "µs", each(results, "simple", host)),
    figure("consumes, worker", "/s", each(results, "worker", rate), atLeast(10 * REFERENCE)),
    figure("consumes, inline", "/s", each(results, "inline", rate), atLeast(10 * REFERENCE)),
    figure("consumes, raw simple loop", "/s", each(results, "simple", rate)),
    figure("consumes, raw double loop", "/s", each(results, "double", rate)),
  ].filter(({ value }) => !Number.isNaN(value));
}
