/**
 * The command line of the test run.
 *
 * @module
 */
import { cpus } from "node:os";
import process from "node:process";
import { FLOORS, NEWEST, type RuntimeName } from "./runtimes.ts";

/** What the command line says. */
export interface Options {
  /** Only files whose path contains one of these. */
  readonly paths: readonly string[];
  /** Only tests whose name matches this regular expression. */
  readonly name: string | undefined;
  readonly runtimes: readonly RuntimeName[];
  /** npm ranges of the runtimes. */
  readonly ranges: Readonly<Record<RuntimeName, string>>;
  /** Whether missing servers are installed. */
  readonly install: boolean;
  /** Whether the bed is started at all. */
  readonly bed: boolean;
  /** Only these servers are started; all by default. */
  readonly legs: readonly string[] | undefined;
  /** Whether a bed that this run starts stays. */
  readonly keep: boolean;
  /** Files that run at a time. */
  readonly jobs: number;
  /** One file's time, milliseconds. */
  readonly fileMs: number;
  /** One runtime's time, milliseconds. */
  readonly legMs: number;
  /** Legs without which the run fails. */
  readonly require: readonly string[];
}

/** How to call it. */
export const USAGE = `deno task test [part of a path …] [options]

  --name REGEX        only tests whose name matches
  --runtime LIST      of deno,bun,node; all by default
  --deno, --bun, --node RANGE   another version of the runtime, by npm range
  --floors            the oldest version of each
  --install           install missing servers (Debian, root); also XSM_BED_INSTALL=1
  --no-bed            start no servers
  --legs LIST         start these servers alone (redis,sqs,…); all by default
  --keep              leave the servers running
  --jobs N            files at a time
  --file-timeout S    seconds for one file (300)
  --leg-timeout S     seconds for one runtime (2400)

XSM_REQUIRE=redis,valkey,… fails the run when one of these legs is missing.`;

const RUNTIMES: readonly RuntimeName[] = ["deno", "bun", "node"];

/**
 * Reads the command line.
 *
 * @throws TypeError naming what it does not know.
 */
export function parseOptions(args: readonly string[], env: Readonly<Record<string, string | undefined>>): Options {
  const flags = new Map<string, string>();
  const paths: string[] = [];
  const bare = new Set(["install", "no-bed", "keep", "floors"]);
  const valued = new Set(["name", "runtime", "legs", "deno", "bun", "node", "jobs", "file-timeout", "leg-timeout"]);
  for (let at = 0; at < args.length; at++) {
    const arg = args[at]!;
    if (!arg.startsWith("--")) {
      paths.push(arg);
      continue;
    }
    const [flag = "", inline] = arg.slice(2).split(/=(.*)/s);
    if (bare.has(flag)) flags.set(flag, "");
    else if (valued.has(flag)) flags.set(flag, inline ?? args[++at] ?? "");
    else throw new TypeError(`Unknown option --${flag}`);
  }
  const runtimes = (flags.get("runtime") ?? RUNTIMES.join(",")).split(",") as RuntimeName[];
  for (const name of runtimes) if (!RUNTIMES.includes(name)) throw new TypeError(`Unknown runtime "${name}"`);
  const versions = flags.has("floors") ? FLOORS : NEWEST;
  const seconds = (flag: string, byDefault: number) => Number(flags.get(flag) ?? byDefault) * 1000;
  return {
    paths,
    name: flags.get("name"),
    runtimes,
    ranges: {
      deno: flags.get("deno") ?? versions.deno,
      bun: flags.get("bun") ?? versions.bun,
      node: flags.get("node") ?? versions.node,
    },
    install: flags.has("install") || env.XSM_BED_INSTALL === "1",
    bed: !flags.has("no-bed"),
    legs: flags.get("legs")?.split(","),
    keep: flags.has("keep"),
    jobs: Number(flags.get("jobs") ?? Math.max(1, Math.min(4, cpus().length))),
    fileMs: seconds("file-timeout", 300),
    legMs: seconds("leg-timeout", 2400),
    require: (env.XSM_REQUIRE ?? "").split(",").map((name) => name.trim()).filter((name) => name !== ""),
  };
}

/** Prints the usage and ends. */
export function fail(error: unknown): never {
  process.stderr.write(`${(error as Error).message}\n\n${USAGE}\n`);
  process.exit(2);
}
