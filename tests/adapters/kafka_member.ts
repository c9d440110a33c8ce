// A member of a group in a process of its own, to be stopped, killed and frozen. Says what happens to it, a line of JSON each.
import process from "node:process";
import { KafkaBroker, type KafkaBrokerOptions } from "../../adapters/kafka/mod.ts";

/** How it behaves; its only argument, as JSON. */
export interface MemberPlan {
  readonly broker: KafkaBrokerOptions;
  readonly topic: string;
  /** How long a delivery takes at most, awaited. */
  readonly workMs: number;
  /** Whether it takes the next delivery only when the last one is settled; else it works on all that it holds. */
  readonly oneByOne?: boolean;
  /** Whether it computes that long instead, once, with the first delivery. */
  readonly burns?: boolean;
}

/** What it says, and when by the wall clock. */
export type MemberLine =
  | { readonly what: "got"; readonly at: number; readonly subject: string; readonly n: number }
  | {
    readonly what: "settled";
    readonly at: number;
    readonly n: number;
    readonly outcome: string;
    readonly lost: boolean;
  }
  | { readonly what: "settling"; readonly at: number; readonly n: number }
  | { readonly what: "end"; readonly at: number; readonly unconfirmed: number };

const say = (line: MemberLine): void => console.log(JSON.stringify(line));
const plan = JSON.parse(process.argv[2]!) as MemberPlan;
const broker = new KafkaBroker({ logger: false, ...plan.broker });
const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());

let burns = plan.burns === true;
const running = new Set<Promise<void>>();
const lanes = new Map<string, Promise<void>>();
for await (const delivery of broker.subscribe(plan.topic, { signal: stop.signal })) {
  const { subject = "", data } = delivery.envelope;
  const n = data as number;
  const before = lanes.get(subject);
  const work = (async () => {
    await before;
    if (delivery.signal.aborted) return;
    say({ what: "got", at: Date.now(), subject, n });
    if (burns) {
      burns = false;
      for (const until = performance.now() + plan.workMs; performance.now() < until;);
    } else if (plan.burns !== true) await new Promise((resolve) => setTimeout(resolve, Math.random() * plan.workMs));
    say({ what: "settling", at: Date.now(), n });
    const outcome = await delivery.ack({ confirm: true }).catch((error: { code?: string }) => String(error.code));
    say({ what: "settled", at: Date.now(), n, outcome, lost: delivery.signal.aborted });
  })();
  lanes.set(subject, work);
  running.add(work);
  void work.finally(() => running.delete(work));
  if (plan.oneByOne === true) await work;
}
await Promise.all(running);
const { unconfirmed } = await broker.close();
say({ what: "end", at: Date.now(), unconfirmed });
