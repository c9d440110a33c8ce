// A whole life of a broker: publishes, consumes, stays idle, closes. Its only argument is a plan as JSON.
import process from "node:process";
import { KafkaBroker } from "../../adapters/kafka/mod.ts";

interface Plan {
  readonly brokers: string[];
  readonly isolation: "worker" | "inline";
  readonly topic: string;
  readonly group: string;
  /** Counts the timers that are set in so much idle time. */
  readonly countTimersMs?: number;
}

const plan = JSON.parse(process.argv[2]!) as Plan;
let timers = 0;
if (plan.countTimersMs !== undefined) {
  const original = globalThis.setTimeout;
  const counting = (...args: Parameters<typeof setTimeout>): ReturnType<typeof setTimeout> => {
    timers++;
    return original(...args);
  };
  globalThis.setTimeout = Object.assign(counting, original);
}

const { brokers, isolation, topic, group } = plan;
const broker = new KafkaBroker({ brokers, isolation, group, source: "/life", logger: false });
await broker.publishAll(topic, Array.from({ length: 50 }, (_, n) => ({ type: "n", subject: `s${n % 5}`, data: n })));
const stop = new AbortController();
const idle = plan.countTimersMs ?? 0;
let seen = 0;
for await (const delivery of broker.subscribe(topic, { signal: stop.signal })) {
  await delivery.ack();
  if (++seen < 50) continue;
  const before = timers;
  setTimeout(() => {
    console.log(`timers ${timers - before}`);
    stop.abort();
  }, idle);
}
const { unconfirmed, terminated } = await broker.close();
if (unconfirmed > 0 || terminated) throw new Error("It did not close in order");
console.log("done");
