/**
 * Publish to Redis Streams: 256 in flight, one after the other, and in batches; against the raw client's pipelines.
 *
 * @module
 */
import type { CaseSettings } from "../support/case.ts";
import { atLeast, atMost, type Figure, figure, median } from "../support/figure.ts";
import { publish, publishAll, redisBroker, streamOf } from "../support/ours.ts";
import { client, publishOneByOne, publishPipelined, serverCpu } from "../support/redis_raw.ts";
import { type Contestant, each, interleave, type Measure, ratios, Stopwatch } from "../support/rounds.ts";

const TOPIC = "bench-publish";
const IN_FLIGHT = 256;
/** The first reference system reached 2,800 publishes a second on such a machine. */
const REFERENCE = 2_800;

const PIPELINES = ["raw, 1 pipeline of 256", "raw, 2 pipelines of 128", "raw, 4 pipelines of 64"];
const AUTO = "raw, auto-pipelining";

/** Runs the benchmark. */
export async function run(settings: CaseSettings): Promise<readonly Figure[]> {
  const count = settings.quick ? 10_000 : 40_000;
  const rounds = settings.quick ? 2 : 7;
  const stream = streamOf(TOPIC);
  const url = settings.redisUrl;
  const raw = await client(url);
  const auto = await client(url, { enableAutoPipelining: true });
  const worker = redisBroker(url);
  const inline = redisBroker(url, { isolation: "inline" });
  await Promise.all([worker.connect(), inline.connect()]);

  const contestant = (name: string, messages: number, work: () => Promise<void>): Contestant => ({
    name,
    count: messages,
    run: async () => {
      await raw.del(stream);
      const watch = new Stopwatch();
      await work();
      return watch.stop(messages);
    },
  });
  const single = Math.ceil(count / 10);
  const all: readonly Contestant[] = [
    contestant(PIPELINES[0]!, count, () => publishPipelined(raw, stream, count, 256, 1)),
    contestant(PIPELINES[1]!, count, () => publishPipelined(raw, stream, count, 128, 2)),
    contestant(PIPELINES[2]!, count, () => publishPipelined(raw, stream, count, 64, 4)),
    contestant("raw, no pipeline", count, () => publishOneByOne(raw, stream, count, IN_FLIGHT)),
    contestant(AUTO, count, () => publishOneByOne(auto, stream, count, IN_FLIGHT)),
    contestant("worker", count, () => publish(worker, TOPIC, count, IN_FLIGHT)),
    contestant("inline", count, () => publish(inline, TOPIC, count, IN_FLIGHT)),
    contestant("worker, publishAll of 256", count, () => publishAll(worker, TOPIC, count, 256)),
    contestant("worker, one at a time", single, () => publish(worker, TOPIC, single, 1)),
    contestant("inline, one at a time", single, () => publish(inline, TOPIC, single, 1)),
    contestant("raw, one at a time", single, () => publishOneByOne(raw, stream, single, 1)),
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
  await Promise.all([worker.close(), inline.close()]);
  await raw.del(stream);
  raw.disconnect();
  auto.disconnect();
  return figures(results);
}

function figures(results: Parameters<typeof ratios>[0]): Figure[] {
  const rate = (measure: Measure): number => measure.rate;
  const host = (measure: Measure): number => measure.hostCpu;
  const rateOf = (name: string): number => median(each(results, name, rate));
  const known = [...PIPELINES, AUTO].filter((name) => results.has(name));
  const best = known.reduce((a, b) => rateOf(a) >= rateOf(b) ? a : b, known[0] ?? "");
  return [
    figure(
      "publish, 256 in flight / raw client's best pipeline",
      "ratio",
      ratios(results, "worker", best, rate),
      atLeast(1),
    ),
    figure("publish inline / raw client's best pipeline", "ratio", ratios(results, "inline", best, rate)),
    figure(
      "publish one at a time / raw client",
      "ratio",
      ratios(results, "worker, one at a time", "raw, one at a time", rate),
    ),
    figure("host CPU a publish / auto-pipelining", "ratio", ratios(results, "worker", AUTO, host), atMost(0.5)),
    figure("host CPU a publish", "µs", each(results, "worker", host)),
    figure("host CPU a publish, auto-pipelining", "µs", each(results, AUTO, host)),
    figure("publishes, worker", "/s", each(results, "worker", rate), atLeast(10 * REFERENCE)),
    figure("publishes, inline", "/s", each(results, "inline", rate), atLeast(10 * REFERENCE)),
    figure("publishes, worker, publishAll of 256", "/s", each(results, "worker, publishAll of 256", rate)),
    figure("publishes, worker, one at a time", "/s", each(results, "worker, one at a time", rate)),
    figure("publishes, inline, one at a time", "/s", each(results, "inline, one at a time", rate)),
    figure("publishes, raw client's best pipeline", "/s", each(results, best, rate)),
  ].filter(({ value }) => !Number.isNaN(value));
}
