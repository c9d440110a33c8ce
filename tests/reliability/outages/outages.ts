/**
 * Rounds in which something happens to the server while four publishers and four consumers work.
 *
 * @module
 */
import { fresh, type Proxy, type Server, type Start, startServer } from "../../support/test.ts";
import { brokerKind, type OutageKind, proxyOf } from "./brokers.ts";
import { Load } from "./load.ts";
import type { Counts } from "./record.ts";

export type { OutageKind } from "./brokers.ts";

/** All kinds. */
export const OUTAGE_KINDS: readonly OutageKind[] = ["kill", "cut", "black hole", "freeze"];

/** How long each lasts, milliseconds; a kill lasts as long as the restart takes. */
export interface Lengths {
  readonly cutMs: number;
  readonly blackHoleMs: number;
  readonly freezeMs: number;
}

/** What is to be run. */
export interface OutagePlan {
  /** The name of the server. */
  readonly server: string;
  readonly kinds: readonly OutageKind[];
  readonly rounds: number;
  readonly lengths: Lengths;
  readonly perSecond: number;
  readonly isolation?: "worker" | "inline";
}

/** How one outage went. */
export interface Outage extends Counts {
  readonly kind: OutageKind;
  /** How long it lasted, milliseconds. */
  readonly lastedMs: number;
  /** From its end until a message was handed out that was published after it, milliseconds. */
  readonly againMs: number;
}

/** What a run comes to. */
export interface OutageResult {
  readonly version: string;
  readonly outages: readonly Outage[];
  readonly violations: readonly string[];
}

/** The lengths that are promised to be survived. */
export const FULL: Lengths = { cutMs: 5_000, blackHoleMs: 20_000, freezeMs: 10_000 };

const PARTITIONS = 4;
const PUBLISHERS = 4;
const CONSUMERS = 4;
const SUBJECTS = 100;
const PREFETCH = 64;
/** How long the load runs before and after. */
const AROUND_MS = 1_000;
/** How long until all must have been handed out. */
const REST_MS = 90_000;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function happen(kind: OutageKind, server: Server, proxy: Proxy, lengths: Lengths): Promise<void> {
  switch (kind) {
    case "kill":
      await server.kill();
      return await server.restart();
    case "cut":
      await proxy.refuse();
      await proxy.cut();
      await pause(lengths.cutMs);
      return await proxy.heal();
    case "black hole":
      await proxy.blackHole();
      await pause(lengths.blackHoleMs);
      return await proxy.heal();
    case "freeze":
      server.pause();
      await pause(lengths.freezeMs);
      return server.resume();
  }
}

/** Runs it on a server of its own. `say` is told each outage as it ends. */
export async function runOutages(
  plan: OutagePlan,
  say: (line: string) => void = () => {},
  start: Start = (options) => startServer(plan.server, options),
): Promise<OutageResult> {
  const kind = brokerKind(plan.server);
  const server = await start(kind.start);
  const { proxy, url } = await proxyOf(kind, server);
  const settings = {
    url,
    prefix: fresh("outage"),
    group: "billing",
    partitions: PARTITIONS,
    prefetch: PREFETCH,
    isolation: plan.isolation ?? "worker",
  } as const;
  const { perSecond } = plan;
  const load = new Load({
    make: () => kind.make(settings),
    topic: fresh("orders"),
    publishers: PUBLISHERS,
    consumers: CONSUMERS,
    subjects: SUBJECTS,
    perSecond,
  });
  const { record } = load;
  const outages: Outage[] = [];
  try {
    await load.start();
    for (let round = 0; round < plan.rounds; round++) {
      for (const what of plan.kinds) {
        load.publish();
        await load.flows(REST_MS);
        await pause(AROUND_MS);
        record.reorders = kind.reorders?.includes(what) === true;
        const from = performance.now();
        await happen(what, server, proxy, plan.lengths);
        const lastedMs = performance.now() - from;
        const againMs = await load.flows(REST_MS);
        await pause(AROUND_MS);
        await load.rest(REST_MS);
        record.reorders = false;
        const outage = { kind: what, lastedMs, againMs, ...record.take() };
        outages.push(outage);
        if (outage.redelivered > CONSUMERS * PREFETCH) {
          record.violation("bound", `a ${what} led to ${outage.redelivered} redeliveries, more than were in flight`);
        }
        const { sent, redelivered, copies, retried, reordered } = outage;
        say(
          `${String(outages.length).padStart(4)} ${what} for ${Math.round(lastedMs)} ms: again after ${
            Math.round(againMs)
          } ms; ${sent} messages, ${redelivered} delivered again, ${retried} published again, ${copies} copies, ${reordered} out of order`,
        );
        if (record.violations.length > 0) say(record.violations.join("\n"));
      }
    }
    await load.end();
    return { version: server.version, outages, violations: record.violations };
  } finally {
    await load.end().catch(() => {});
    await proxy.close();
    await server.stop();
  }
}
