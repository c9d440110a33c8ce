/**
 * A member of the group in a process of its own: reads, works subject by subject, settles, and writes down what it does.
 *
 * @module
 */
import process from "node:process";
import type { Delivery } from "../../core/contract.ts";
import type { Hand } from "./history.ts";
import { journalOf } from "./journal.ts";
import { listen, makeBroker, type MemberSettings, say, told } from "./settings.ts";

const settings = told<MemberSettings>();
const { name: member, topic, mode } = settings;
const journal = journalOf(settings.url, settings.journal);
const broker = makeBroker(settings, { consumer: member });
const stop = new AbortController();
const lanes = new Map<string, Promise<void>>();
const running = new Set<Promise<void>>();
const held: (() => Promise<string>)[] = [];

let taken = 0;

function take(delivery: Delivery): void {
  const { subject = "", data } = delivery.envelope;
  const hand: Hand = { member, d: taken++, subject, n: data as number };
  let settled = false;
  void journal.write({ k: "handed", ...hand });
  delivery.signal.addEventListener("abort", () => {
    if (!settled) void journal.write({ k: "lost", ...hand });
  });
  const settle = async (confirm: boolean): Promise<string> => {
    await journal.write({ k: "settling", ...hand, confirm });
    settled = true;
    const outcome = await delivery.ack({ confirm });
    void journal.write({ k: "settled", ...hand, outcome });
    return outcome;
  };
  if (mode === "hold") {
    held.push(() => settle(true));
    return say({ k: "holding", count: held.length });
  }
  const before = lanes.get(subject);
  const mine = (async () => {
    await before;
    await work(delivery, hand, settle);
  })();
  lanes.set(subject, mine);
  running.add(mine);
  void mine.finally(() => {
    running.delete(mine);
    if (lanes.get(subject) === mine) lanes.delete(subject);
  });
}

async function work(
  delivery: Delivery,
  hand: Hand,
  settle: (confirm: boolean) => Promise<string>,
): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, Math.random() * settings.workMs));
  // Half of what is lost is settled all the same, as by a handler that does not look: it must have no effect.
  if (delivery.lost && Math.random() < 0.5) return;
  if (delivery.attempt === 0 && hand.n % 23 === 7) {
    const held = delivery.retry({ delayMs: Math.random() * 50 });
    // It holds from the call on; what is handed out next is written behind this.
    void journal.write({ k: "held", ...hand });
    await held;
    return;
  }
  await settle(delivery.attempt > 0 || hand.n % 2 === 0);
}

async function read(): Promise<void> {
  const stream = broker.subscribe(topic, { signal: stop.signal });
  const iterator = stream[Symbol.asyncIterator]();
  const first = iterator.next();
  say({ k: "ready" });
  for (let next = await first; !next.done; next = await iterator.next()) {
    take(next.value);
    if (running.size >= settings.inFlight) await Promise.race(running);
  }
}

const reading = read().catch((error) => {
  say({ k: "failed", error: `${(error as Error).name}: ${(error as Error).message}` });
});

async function end(): Promise<void> {
  stop.abort();
  await reading;
  await Promise.all(running);
  const { released, unconfirmed } = await broker.close();
  await journal.close();
  say({ k: "closed", released, unconfirmed });
  process.exit(0);
}

listen((word) => {
  if (word === "time") say({ k: "time", now: Date.now() });
  if (word === "settle") {
    void Promise.all(held.splice(0).map((settle) => settle())).then((all) => {
      const outcomes: Record<string, number> = {};
      for (const outcome of all) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      say({ k: "outcomes", outcomes });
    });
  }
  if (word === "stop") void end();
});
