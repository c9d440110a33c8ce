/**
 * The runtimes: found by `npx`, so that a machine needs nothing but Node and npm, and called without it.
 *
 * @module
 */
import { tmpdir } from "node:os";
import process from "node:process";
import { must } from "../../tests/support/bed/run.ts";

/** A runtime that tests run on. */
export type RuntimeName = "deno" | "bun" | "node";

/** An installed runtime. */
export interface Runtime {
  readonly name: RuntimeName;
  readonly version: string;
  /** The path of its program. */
  readonly program: string;
}

/** The versions that tests run on, as npm ranges; Deno's is the one that runs this script. */
export const NEWEST: Readonly<Record<RuntimeName, string>> = { deno: "", bun: "1", node: "24" };

/** The oldest versions that the library promises to run on. */
export const FLOORS: Readonly<Record<RuntimeName, string>> = { deno: "2.4", bun: "1.4.0", node: "22.18" };

const found = new Map<string, Promise<Runtime>>();

/** Finds `name` in the npm range `range`; fetches it if need be. An empty range is the Deno that runs this script. */
export function findRuntime(name: RuntimeName, range: string): Promise<Runtime> {
  const key = `${name}@${range}`;
  const known = found.get(key) ?? find(name, range);
  found.set(key, known);
  return known;
}

async function find(name: RuntimeName, range: string): Promise<Runtime> {
  const program = range === "" ? process.execPath : await fetched(name, range);
  const version = (await must(program, ["--version"])).match(/\d+\.\d+\.\d+/)?.[0] ?? "unknown";
  return { name, version, program };
}

/**
 * Asks the fetched runtime for its own path. Not from the project's folder: there npx would prefer a copy among its
 * packages.
 */
async function fetched(name: RuntimeName, range: string): Promise<string> {
  const ask = {
    deno: ["deno", "eval", "console.log(Deno.execPath())"],
    bun: ["bun", "-e", "console.log(process.execPath)"],
    node: ["node", "-p", "process.execPath"],
  }[name];
  const args = ["-y", "-p", `${name}@${range}`, ...ask];
  const output = await must("npx", args, { tries: 4, timeoutMs: 300_000, cwd: tmpdir() });
  return output.trim().split("\n").at(-1) ?? "";
}

/** The command line that runs one test file and writes its JUnit report to `report`. */
export function testCommand(runtime: RuntimeName, file: string, report: string, name?: string): string[] {
  switch (runtime) {
    case "deno": {
      const filter = name === undefined ? [] : ["--filter", `/${name}/`];
      return ["test", "-A", "--no-check", `--junit-path=${report}`, ...filter, file];
    }
    case "bun": {
      const filter = name === undefined ? [] : ["-t", name];
      return ["test", "--reporter=junit", `--reporter-outfile=${report}`, ...filter, `./${file}`];
    }
    case "node": {
      const filter = name === undefined ? [] : [`--test-name-pattern=${name}`];
      return [
        ...["--disable-warning=ExperimentalWarning", "--test-reporter=spec", "--test-reporter-destination=stdout"],
        ...["--test-reporter=junit", `--test-reporter-destination=${report}`, ...filter, file],
      ];
    }
  }
}
