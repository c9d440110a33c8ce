/**
 * A consumer in a process of its own, to be frozen, killed or kept busy. Says what happens to it, one line of JSON each.
 *
 * @module
 */
import process from "node:process";
import type { BrokerAdapter } from "../../core/contract.ts";

/** How the consumer behaves; its only argument, as JSON. `O` = options of its broker. */
export interface ConsumerPlan<O = object> {
  readonly broker: O;
  readonly topic: string;
  /** How long each delivery takes, awaited. */
  readonly slowMs?: number;
  /** How long the first delivery computes. */
  readonly burnMs?: number;
}

/** What it says. */
export type ConsumerLine =
  | { readonly what: "got"; readonly n: number; readonly attempt: number }
  | { readonly what: "settled"; readonly n: number; readonly outcome: string; readonly lost: boolean }
  | { readonly what: "state"; readonly state: string }
  | { readonly what: "burning" }
  | { readonly what: "end"; readonly counters: Readonly<Record<string, number>> };

function say(line: ConsumerLine): void {
  console.log(JSON.stringify(line));
}

function burn(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

/** Consumes as the script's argument says, with the broker that `make` makes, until SIGTERM. */
export async function consume<O>(make: (options: O) => BrokerAdapter): Promise<void> {
  const plan = JSON.parse(process.argv[2]!) as ConsumerPlan<O>;
  const broker = make(plan.broker);
  const stop = new AbortController();
  process.once("SIGTERM", () => stop.abort());
  let state = "";
  const watch = setInterval(() => {
    const now = broker.health().topics[0]?.state ?? "";
    if (now === state) return;
    state = now;
    say({ what: "state", state });
  }, 20);
  let burnMs = plan.burnMs ?? 0;
  for await (const delivery of broker.subscribe(plan.topic, { signal: stop.signal })) {
    const n = delivery.envelope.data as number;
    say({ what: "got", n, attempt: delivery.attempt });
    if (burnMs > 0) {
      say({ what: "burning" });
      burn(burnMs);
      burnMs = 0;
    }
    if (plan.slowMs !== undefined) await new Promise((resolve) => setTimeout(resolve, plan.slowMs));
    const outcome = await delivery.ack({ confirm: true }).catch((error: { code?: string }) => String(error.code));
    say({ what: "settled", n, outcome, lost: delivery.signal.aborted });
  }
  clearInterval(watch);
  await broker.close();
  say({ what: "end", counters: broker.health().counters });
}
