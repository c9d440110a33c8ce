/**
 * The command line of the reliability run.
 *
 * @module
 */
import { FLOORS, NEWEST, type RuntimeName } from "../../scripts/testing/runtimes.ts";
import { FAULT_KINDS, type FaultKind } from "./faults.ts";
import { OUTAGE_KINDS, type OutageKind } from "./outages/outages.ts";

/** What can be asked for besides faults. */
const EXTRAS = ["minute", "clock", "idle"] as const;

/** What the command line says. */
export interface ReliabilityOptions {
  readonly rounds: number;
  readonly runtimes: readonly RuntimeName[];
  readonly ranges: Readonly<Record<RuntimeName, string>>;
  readonly servers: readonly string[];
  readonly kinds: readonly FaultKind[];
  readonly outages: readonly OutageKind[];
  readonly extras: readonly (typeof EXTRAS)[number][];
  readonly seed: number;
  readonly ownerLeaseMs: number;
  readonly perSecond: number;
  readonly out: string | undefined;
}

/** How to call it. */
export const USAGE = `deno task reliability [options]

  --rounds N        rounds of each fault (30), the faults in random order, ten rounds of each with one set of processes;
                    rounds of each outage
  --runtime LIST    of deno,bun,node; all by default
  --server LIST     kinds of server (\`deno task bed status\` names them); redis8,redis by default; started for the run. idle
                    takes a Redis, faults of members, minute and clock also a NATS
  --only LIST       of kill,freeze,restart,join (faults of members), outages (of the server: killed, cut off for 5 s,
                    silent for 20 s, frozen for 10 s) or one of outage-kill,outage-cut,outage-hole,outage-freeze,
                    minute (one member sleeps for 60 s), clock (the clock of one jumps), idle (commands a second);
                    the four faults of members by default
  --seed N          for the order of faults and the choice of members (1)
  --lease MS        ownerLeaseMs (1000)
  --rate N          messages a second of the four publishers together (300)
  --floors          the oldest version of each runtime
  --out FILE        everything as JSON`;

const RUNTIMES: readonly RuntimeName[] = ["deno", "bun", "node"];

/**
 * Reads the command line.
 *
 * @throws TypeError naming what it does not know.
 */
export function parseOptions(args: readonly string[]): ReliabilityOptions {
  const flags = new Map<string, string>();
  const valued = new Set(["rounds", "runtime", "server", "only", "seed", "lease", "rate", "out"]);
  for (let at = 0; at < args.length; at++) {
    const [flag = "", inline] = args[at]!.replace(/^--/, "").split(/=(.*)/s);
    if (flag === "floors") flags.set(flag, "");
    else if (valued.has(flag)) flags.set(flag, inline ?? args[++at] ?? "");
    else throw new TypeError(`Unknown option ${args[at]}`);
  }
  const list = (flag: string, byDefault: string): string[] =>
    (flags.get(flag) ?? byDefault).split(",").map((word) => word.trim());
  const number = (flag: string, byDefault: number): number => {
    const value = Number(flags.get(flag) ?? byDefault);
    if (!(value >= 0)) throw new TypeError(`--${flag} must be a number`);
    return value;
  };
  const runtimes = list("runtime", RUNTIMES.join()) as RuntimeName[];
  for (const name of runtimes) if (!RUNTIMES.includes(name)) throw new TypeError(`Unknown runtime "${name}"`);
  const words = list("only", "kill,freeze,restart,join");
  const extras = EXTRAS.filter((extra) => words.includes(extra));
  const outages = OUTAGE_KINDS.filter((kind) =>
    words.includes("outages") || words.includes(`outage-${kind.replace("black ", "")}`)
  );
  const others = words.filter((word) => !(EXTRAS as readonly string[]).includes(word) && !word.startsWith("outage"));
  const kinds = others.map((word) => {
    const kind = FAULT_KINDS.find((kind) => kind === word || kind.startsWith(`${word} `));
    if (kind === undefined) throw new TypeError(`Unknown fault "${word}"`);
    return kind;
  });
  return {
    rounds: number("rounds", 30),
    runtimes,
    ranges: flags.has("floors") ? FLOORS : NEWEST,
    servers: list("server", "redis8,redis"),
    kinds,
    outages,
    extras,
    seed: number("seed", 1),
    ownerLeaseMs: number("lease", 1_000),
    perSecond: number("rate", 300),
    out: flags.get("out"),
  };
}
