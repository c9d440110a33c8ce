/**
 * Consume and ack, window 256: rates, and the CPU of the host's thread, against the raw client's loops.
 *
 * @module
 */
import type { AsyncBroker } from "../../core/broker.ts";
import type { Delivery } from "../../core/contract.ts";
import { brokerOf } from "../brokers.ts";
import type { OursOptions, Place, RawEvent, RawLoop } from "../support/broker.ts";
import type { CaseSettings } from "../support/case.ts";
import { calibrate, work } from "../support/cpu.ts";
import { atLeast, atMost, type Figure, figure } from "../support/figure.ts";
import { consume } from "../support/ours.ts";
import { type Contestant, each, interleave, type Measure, ratios, type Results, Stopwatch } from "../support/rounds.ts";

const WORK_US = 10;

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
  const broker = await brokerOf(settings.broker);
  const count = settings.quick ? broker.counts.run / 4 : broker.counts.run;
  const rounds = settings.quick ? 2 : 7;
  calibrate();
  const server = await broker.open(settings.url);
  const [simple, double] = server.loops;

  const contestant = (
    name: string,
    reader: "ordered" | "unordered" | "raw",
    measure: (place: Place) => Promise<Measure>,
  ): Contestant => {
    let place: Place | undefined;
    return {
      name,
      count,
      prepare: async () => void (place = await server.stock(count, reader)),
      run: () => measure(place!),
    };
  };
  const loop = (name: string, run: RawLoop, handle: (event: RawEvent) => void): Contestant =>
    contestant(name, "raw", async (place) => {
      const watch = new Stopwatch();
      await run(place, count, handle);
      return watch.stop(count);
    });
  const brokers: AsyncBroker[] = [];
  const ours = (name: string, handle: (delivery: Delivery) => void, options: OursOptions = {}): Contestant => {
    // One broker for all rounds: what is measured is a service that runs, not one that starts.
    const broker = server.ours({ ...options, prefetch: 256 });
    brokers.push(broker);
    const reader = options.ordered === false ? "unordered" : "ordered";
    return contestant(name, reader, (place) => consume(broker, place, count, handle));
  };
  const inline = { isolation: "inline" } as const;
  const all: readonly Contestant[] = [
    loop("simple", simple!.run, empty),
    loop("double", double!.run, empty),
    ours("worker", empty),
    ours("worker, routed", route),
    ours("worker, data read", read),
    ours("worker, unordered", empty, { ordered: false }),
    ours("inline", empty, inline),
    ours("inline, data read", read, inline),
    loop("double, 10 µs", double!.run, workRaw),
    ours("worker, 10 µs", workOurs),
    ours("inline, 10 µs", workOurs, inline),
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
  await Promise.all(brokers.map((broker) => broker.close()));
  await server.close();
  return figures(results, simple!.name, double!.name, broker.reference.consume);
}

function figures(results: Results, simple: string, double: string, reference: number): Figure[] {
  const rate = (measure: Measure): number => measure.rate;
  const host = (measure: Measure): number => measure.hostCpu;
  const against = (ours: string, theirs: string, pick = rate): number[] => ratios(results, ours, theirs, pick);
  return [
    figure(`consume through the worker / ${simple}`, "ratio", against("worker", "simple"), atLeast(1)),
    figure(`consume through the worker / ${double}`, "ratio", against("worker", "double"), atLeast(0.85)),
    figure(`the same, data read / ${simple}`, "ratio", against("worker, data read", "simple")),
    figure(`the same, data read / ${double}`, "ratio", against("worker, data read", "double")),
    figure(`the same, 10 µs of work / ${double}`, "ratio", against("worker, 10 µs", "double, 10 µs"), atLeast(1)),
    figure(`consume inline / ${simple}`, "ratio", against("inline", "simple")),
    figure(`consume inline, data read / ${simple}`, "ratio", against("inline, data read", "simple")),
    figure(`consume inline, 10 µs of work / ${double}`, "ratio", against("inline, 10 µs", "double, 10 µs")),
    figure("ordered / unordered, worker", "ratio", against("worker", "worker, unordered")),
    figure(
      `host CPU a message, data read / ${simple}`,
      "ratio",
      against("worker, data read", "simple", host),
      atMost(0.8),
    ),
    figure(
      `host CPU a message, data not read / ${simple}`,
      "ratio",
      against("worker, routed", "simple", host),
      atMost(0.4),
    ),
    figure("host CPU a message, empty handler", "µs", each(results, "worker", host)),
    figure("host CPU a message, data not read", "µs", each(results, "worker, routed", host)),
    figure("host CPU a message, data read", "µs", each(results, "worker, data read", host)),
    figure(`host CPU a message, ${simple}`, "µs", each(results, "simple", host)),
    figure("consumes, worker", "/s", each(results, "worker", rate), atLeast(10 * reference)),
    figure("consumes, inline", "/s", each(results, "inline", rate), atLeast(10 * reference)),
    figure(`consumes, raw ${simple}`, "/s", each(results, "simple", rate)),
    figure(`consumes, raw ${double}`, "/s", each(results, "double", rate)),
  ].filter(({ value }) => !Number.isNaN(value));
}
