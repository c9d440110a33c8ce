/**
 * The dispatcher on the memory broker and the memory store: what it costs by itself.
 *
 * @module
 */
import { setup } from "xstate";
import { MemoryBroker } from "../../adapters/memory/mod.ts";
import { machine } from "../../adapters/xstate/mod.ts";
import type { Handler } from "../../core/dispatch/context.ts";
import { InboundDispatcher } from "../../core/dispatch/dispatcher.ts";
import type { Route } from "../../core/dispatch/route.ts";
import { MemoryStore } from "../../core/store/memory_store.ts";
import type { CaseSettings } from "../support/case.ts";
import { atLeast, type Figure, figure } from "../support/figure.ts";
import { eventText, SOURCE, TYPE } from "../support/event.ts";
import { type Contestant, each, interleave, type Measure, Stopwatch } from "../support/rounds.ts";

const TOPIC = "bench-dispatch";

const order = setup({ types: { context: {} as { count: number }, events: {} as { type: string } } }).createMachine({
  id: "order",
  context: { count: 0 },
  initial: "open",
  states: {
    open: { on: { [TYPE]: { target: "paid" } } },
    paid: { on: { [TYPE]: { target: "open" } } },
  },
});

/** Runs the benchmark. */
export async function run(settings: CaseSettings): Promise<readonly Figure[]> {
  const count = settings.quick ? 20_000 : 100_000;
  const rounds = settings.quick ? 2 : 7;
  const texts = Array.from({ length: count }, (_, n) => eventText(n));

  const contestant = (name: string, route: Handler | Route, messages: number = count): Contestant => ({
    name,
    count: messages,
    run: async () => {
      const broker = new MemoryBroker({ source: SOURCE, logger: false });
      for (let n = 0; n < messages; n++) broker.hub.publish(TOPIC, texts[n]!);
      const store = new MemoryStore();
      const app = new InboundDispatcher({ broker, store, routes: { [TYPE]: route }, logger: false });
      const stop = new AbortController();
      const watch = new Stopwatch();
      const report = await app.runOnce([TOPIC], { signal: stop.signal });
      const measure = watch.stop(messages);
      if (report.processed !== messages) throw new Error(`only ${report.processed} of ${messages} were processed`);
      await broker.close();
      await store.close();
      return measure;
    },
  });
  let total = 0;
  const all: readonly Contestant[] = [
    contestant("plain handler", () => void total++),
    contestant("asynchronous handler", async () => {
      await null;
      total++;
    }),
    contestant("data read", ({ data }) => void (total += (data as { total: number }).total)),
    contestant("machine", machine(order), Math.ceil(count / 4)),
  ];
  const chosen = settings.contestants.length === 0
    ? all
    : all.filter(({ name }) => settings.contestants.includes(name));
  const results = await interleave(chosen, { rounds, warmUps: 1, patienceMs: settings.patienceMs });
  const rate = (measure: Measure): number => measure.rate;
  return [
    figure("dispatcher on memory, plain handler", "/s", each(results, "plain handler", rate), atLeast(150_000)),
    figure("dispatcher on memory, asynchronous handler", "/s", each(results, "asynchronous handler", rate)),
    figure("dispatcher on memory, data read", "/s", each(results, "data read", rate)),
    figure("dispatcher on memory, XState machine", "/s", each(results, "machine", rate)),
  ].filter(({ value }) => !Number.isNaN(value));
}
