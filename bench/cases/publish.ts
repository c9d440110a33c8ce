/**
 * Publish: 256 in flight, one after the other, and in batches; against the best the raw client can do.
 *
 * @module
 */
import { brokerOf } from "../brokers.ts";
import type { CaseSettings } from "../support/case.ts";
import { atLeast, atMost, type Figure, figure, median } from "../support/figure.ts";
import { publish, publishAll } from "../support/ours.ts";
import { type Contestant, each, interleave, type Measure, ratios, type Results, Stopwatch } from "../support/rounds.ts";

const IN_FLIGHT = 256;

/** Runs the benchmark. */
export async function run(settings: CaseSettings): Promise<readonly Figure[]> {
  const broker = await brokerOf(settings.broker);
  const count = settings.quick ? broker.counts.run / 4 : broker.counts.run;
  const rounds = settings.quick ? 2 : 7;
  const server = await broker.open(settings.url);
  const worker = server.ours();
  const inline = server.ours({ isolation: "inline" });
  await Promise.all([worker.connect(), inline.connect()]);

  const contestant = (name: string, messages: number, work: (topic: string) => Promise<void>): Contestant => {
    let topic = "";
    return {
      name,
      count: messages,
      prepare: async () => {
        topic = await server.empty();
        // The first publish may have to make the topic.
        await worker.publish(topic, { type: "warm", subject: "order-0000" });
      },
      run: async () => {
        const watch = new Stopwatch();
        await work(topic);
        return watch.stop(messages);
      },
    };
  };
  const single = Math.ceil(count / 10);
  const raw = server.publishers.map(({ name, run }) => contestant(`raw, ${name}`, count, (topic) => run(topic, count)));
  const all: readonly Contestant[] = [
    ...raw,
    contestant("worker", count, (topic) => publish(worker, topic, count, IN_FLIGHT)),
    contestant("inline", count, (topic) => publish(inline, topic, count, IN_FLIGHT)),
    contestant("worker, publishAll of 256", count, (topic) => publishAll(worker, topic, count, 256)),
    contestant("worker, one at a time", single, (topic) => publish(worker, topic, single, 1)),
    contestant("inline, one at a time", single, (topic) => publish(inline, topic, single, 1)),
    contestant("raw, one at a time", single, (topic) => server.oneAtATime(topic, single)),
  ];
  const chosen = settings.contestants.length === 0
    ? all
    : all.filter(({ name }) => settings.contestants.includes(name));
  const results = await interleave(chosen, {
    rounds,
    warmUps: 1,
    patienceMs: settings.patienceMs,
    serverCpu: server.serverCpu?.bind(server),
  });
  await Promise.all([worker.close(), inline.close()]);
  await server.close();
  return figures(results, raw.map(({ name }) => name), broker.reference.publish);
}

/** `raw` = the raw client's ways to publish many, the one with a promise a message first. */
function figures(results: Results, raw: readonly string[], reference: number): Figure[] {
  const rate = (measure: Measure): number => measure.rate;
  const host = (measure: Measure): number => measure.hostCpu;
  const rateOf = (name: string): number => median(each(results, name, rate));
  const known = raw.filter((name) => results.has(name));
  const best = known.reduce((a, b) => rateOf(a) >= rateOf(b) ? a : b, known[0] ?? "");
  const each256 = raw[0]!;
  return [
    figure(
      "publish, 256 in flight / raw client's best way",
      "ratio",
      ratios(results, "worker", best, rate),
      atLeast(1),
    ),
    figure("publish inline / raw client's best way", "ratio", ratios(results, "inline", best, rate)),
    figure(
      "publish one at a time / raw client",
      "ratio",
      ratios(results, "worker, one at a time", "raw, one at a time", rate),
    ),
    figure(`host CPU a publish / ${each256}`, "ratio", ratios(results, "worker", each256, host), atMost(0.5)),
    figure("host CPU a publish", "µs", each(results, "worker", host)),
    figure(`host CPU a publish, ${each256}`, "µs", each(results, each256, host)),
    figure("publishes, worker", "/s", each(results, "worker", rate), atLeast(10 * reference)),
    figure("publishes, inline", "/s", each(results, "inline", rate), atLeast(10 * reference)),
    figure("publishes, worker, publishAll of 256", "/s", each(results, "worker, publishAll of 256", rate)),
    figure("publishes, worker, one at a time", "/s", each(results, "worker, one at a time", rate)),
    figure("publishes, inline, one at a time", "/s", each(results, "inline, one at a time", rate)),
    figure("publishes, raw client's best way", "/s", each(results, best, rate)),
  ].filter(({ value }) => !Number.isNaN(value));
}
