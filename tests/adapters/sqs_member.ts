// A consumer in a process of its own, to be killed and frozen. Says what happens to it, one line of JSON each, before it goes on.
import { writeSync } from "node:fs";
import process from "node:process";
import { SqsBroker, type SqsBrokerOptions } from "../../adapters/sqs/mod.ts";
import { isEdaError } from "../../core/errors.ts";

/** How it behaves; its only argument, as JSON. */
export interface MemberPlan {
  readonly broker: SqsBrokerOptions;
  readonly topic: string;
  /** `consume` until SIGTERM · `once`: publishes one, reads it, ends · `connect`: says how connecting ended. */
  readonly mode: "consume" | "once" | "connect";
  /** How long each delivery takes at most, ms. */
  readonly workMs?: number;
}

/** What it says; `at` is the machine's time, ms. */
export type MemberLine =
  | { readonly what: "ready" }
  | {
    readonly what: "got";
    readonly subject: string;
    readonly n: number;
    readonly attempt: number;
    readonly at: number;
  }
  | { readonly what: "settled"; readonly subject: string; readonly n: number; readonly outcome: string }
  | { readonly what: "failed"; readonly code: string; readonly text: string }
  | { readonly what: "end"; readonly unconfirmed: number };

function say(line: MemberLine): void {
  writeSync(1, `${JSON.stringify(line)}\n`);
}

async function consume({ broker: options, topic, workMs = 5 }: MemberPlan): Promise<void> {
  const broker = new SqsBroker(options);
  const stop = new AbortController();
  process.once("SIGTERM", () => stop.abort());
  await broker.connect();
  say({ what: "ready" });
  for await (const delivery of broker.subscribe(topic, { signal: stop.signal })) {
    const { subject = "", data } = delivery.envelope;
    const n = data as number;
    say({ what: "got", subject, n, attempt: delivery.attempt, at: performance.timeOrigin + performance.now() });
    await new Promise((resolve) => setTimeout(resolve, Math.random() * workMs));
    const settling = delivery.ack({ confirm: true }).then((outcome) => say({ what: "settled", subject, n, outcome }));
    if (n % 10 === 0) await settling;
  }
  const { unconfirmed } = await broker.close();
  say({ what: "end", unconfirmed });
}

async function once({ broker: options, topic }: MemberPlan): Promise<void> {
  const broker = new SqsBroker(options);
  await broker.publish(topic, { type: "n", subject: "s", data: 0 });
  for await (const delivery of broker.subscribe(topic)) {
    await delivery.ack();
    break;
  }
  await broker.close();
  say({ what: "end", unconfirmed: 0 });
}

async function tryConnect({ broker: options }: MemberPlan): Promise<void> {
  const broker = new SqsBroker(options);
  try {
    await broker.connect();
    say({ what: "ready" });
  } catch (error) {
    say({ what: "failed", code: isEdaError(error) ? error.code : "none", text: String(error) });
  }
  await broker.close();
}

const plan = JSON.parse(process.argv[2]!) as MemberPlan;
const modes: Readonly<Record<MemberPlan["mode"], (plan: MemberPlan) => Promise<void>>> = {
  consume,
  once,
  connect: tryConnect,
};
await modes[plan.mode](plan);
