/**
 * What a benchmark is: a module in `bench/cases/` that exports {@link Case.run}. It runs in a process of its own.
 *
 * @module
 */
import process from "node:process";
import type { Figure } from "./figure.ts";

/** What a benchmark is told. */
export interface CaseSettings {
  /** Name of the broker in `bench/brokers.ts`. */
  readonly broker: string;
  /** Its server, used by nobody else; empty where a benchmark needs none or starts its own. */
  readonly url: string;
  /** Name of the kind of server, to start another one. */
  readonly server: string;
  /** Fewer messages and rounds: to see that it works, not to quote. */
  readonly quick: boolean;
  /** How long a benchmark may wait for other processes to be quiet, ms. */
  readonly patienceMs: number;
  /** Only these contestants, where a benchmark has several; for profiles. Empty = all. */
  readonly contestants: readonly string[];
}

/** A benchmark. */
export interface Case {
  /** Measures, and answers what it found. */
  run(settings: CaseSettings): Promise<readonly Figure[]>;
}

/** Where it runs. */
export const runtimeName: "deno" | "bun" | "node" = "Deno" in globalThis
  ? "deno"
  : "Bun" in globalThis
  ? "bun"
  : "node";

/** A line for people, kept apart from the result. */
export function say(line: string): void {
  process.stderr.write(`  ${line}\n`);
}
