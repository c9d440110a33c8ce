/**
 * The command line of the benchmarks.
 *
 * @module
 */
import { FLOORS, NEWEST, type RuntimeName } from "../../scripts/testing/runtimes.ts";

/** What the command line says. */
export interface BenchOptions {
  readonly runtimes: readonly RuntimeName[];
  /** npm ranges of the runtimes. */
  readonly ranges: Readonly<Record<RuntimeName, string>>;
  /** Names of benchmarks. */
  readonly only: readonly string[];
  readonly contestants: readonly string[];
  readonly quick: boolean;
  /** How long one benchmark may wait for other processes to be quiet, milliseconds. */
  readonly patienceMs: number;
  /** Name of the broker in `bench/brokers.ts`. */
  readonly broker: string;
  /** Kind of server that is started for it; undefined = the broker's first one that is installed. */
  readonly server: string | undefined;
  /** Folder for CPU profiles, Node only; undefined = none. */
  readonly profile: string | undefined;
  /** File for the figures as JSON. */
  readonly out: string | undefined;
  /** One benchmark's time, milliseconds. */
  readonly caseMs: number;
}

/** How to call it. */
export const USAGE = `deno task bench [options]

  --runtime LIST      of deno,bun,node; all by default
  --only LIST         benchmarks: consume,publish,delay,dispatch,blocked,backlog,outage
  --contestants LIST  only these contestants of a benchmark, separated by ";" (for profiles)
  --quick             few messages and rounds: to see that it works, not to quote
  --patience S        seconds that a benchmark may wait for other processes to be quiet, and repeat disturbed runs (0)
  --broker NAME       what is measured: redis (default) or nats
  --server NAME       kind of server, such as redis8, redis or valkey, started for the run; by default the newest one
                      that is installed; or XSM_REDIS_URL and its like
  --profile DIR       CPU profiles of host and worker threads, on Node; see bench/profile.ts
  --out FILE          the figures as JSON
  --floors            the oldest version of each runtime
  --timeout S         seconds for one benchmark (900)`;

const RUNTIMES: readonly RuntimeName[] = ["deno", "bun", "node"];
const BARE = new Set(["quick", "floors"]);
const VALUED = new Set(["runtime", "only", "contestants", "broker", "server", "profile", "out", "timeout", "patience"]);

/**
 * Reads the command line.
 *
 * @param names Names of all benchmarks.
 * @throws TypeError naming what it does not know.
 */
export function parseOptions(args: readonly string[], names: readonly string[]): BenchOptions {
  const flags = new Map<string, string>();
  for (let at = 0; at < args.length; at++) {
    const [flag = "", inline] = args[at]!.replace(/^--/, "").split(/=(.*)/s);
    if (BARE.has(flag)) flags.set(flag, "");
    else if (VALUED.has(flag)) flags.set(flag, inline ?? args[++at] ?? "");
    else throw new TypeError(`Unknown option ${args[at]}`);
  }
  const list = (flag: string, all: readonly string[], separator = ","): string[] => {
    const given = flags.get(flag)?.split(separator).map((word) => word.trim()) ?? [...all];
    for (const word of given) {
      if (all.length > 0 && !all.includes(word)) throw new TypeError(`Unknown ${flag} "${word}"`);
    }
    return given;
  };
  return {
    runtimes: list("runtime", RUNTIMES) as RuntimeName[],
    ranges: flags.has("floors") ? FLOORS : NEWEST,
    only: list("only", names),
    contestants: list("contestants", [], ";"),
    quick: flags.has("quick"),
    patienceMs: Number(flags.get("patience") ?? 0) * 1_000,
    broker: flags.get("broker") ?? "redis",
    server: flags.get("server"),
    profile: flags.get("profile"),
    out: flags.get("out"),
    caseMs: Number(flags.get("timeout") ?? 900) * 1_000,
  };
}
