/**
 * Rounds: every contestant once a round, in turn, so that whatever the machine does meanwhile meets all of them.
 *
 * @module
 */
import { processCpu, threadCpu } from "./cpu.ts";
import { say } from "./case.ts";
import { median } from "./figure.ts";

/** What one run of one contestant took, by message. */
export interface Measure {
  /** Messages a second. */
  readonly rate: number;
  /** CPU of the host's thread, µs a message. */
  readonly hostCpu: number;
  /** CPU of the process, worker and engine helpers included, µs a message. */
  readonly processCpu: number;
  /** CPU of the broker, µs a message; absent without one. */
  readonly serverCpu?: number;
}

/** Measures from its start to {@link Stopwatch.stop}. */
export class Stopwatch {
  readonly #at = performance.now();
  readonly #host = threadCpu();
  readonly #process = processCpu();

  stop(messages: number): Measure {
    const ms = performance.now() - this.#at;
    return {
      rate: messages / ms * 1_000,
      hostCpu: (threadCpu() - this.#host) / messages,
      processCpu: (processCpu() - this.#process) / messages,
    };
  }
}

/** Somebody who does the work in one way. */
export interface Contestant {
  readonly name: string;
  /** Messages of one run. */
  readonly count: number;
  run(round: string): Promise<Measure>;
}

/** All measures of each contestant, by name. */
export type Results = ReadonlyMap<string, readonly Measure[]>;

/**
 * Runs `rounds` rounds after `warmUps` that do not count.
 *
 * @param serverCpu CPU time of the broker so far, microseconds.
 */
export async function interleave(
  contestants: readonly Contestant[],
  rounds: number,
  warmUps: number,
  serverCpu?: () => Promise<number>,
): Promise<Results> {
  const results = new Map<string, Measure[]>(contestants.map(({ name }) => [name, []]));
  for (let round = 0; round < warmUps + rounds; round++) {
    // Another one begins each round: nobody always runs behind the same one.
    const first = round % contestants.length;
    for (const contestant of [...contestants.slice(first), ...contestants.slice(0, first)]) {
      collectGarbage();
      const before = await serverCpu?.() ?? NaN;
      const measure = await contestant.run(`${contestant.name}-${round}`);
      const server = (await serverCpu?.() ?? NaN) - before;
      if (round >= warmUps) results.get(contestant.name)!.push({ ...measure, serverCpu: server / contestant.count });
    }
  }
  for (const [name, measures] of results) {
    const of = (pick: (measure: Measure) => number): number => median(measures.map(pick));
    say(
      `${name.padEnd(34)} ${Math.round(of((m) => m.rate)).toLocaleString("en").padStart(9)} /s   host ` +
        `${of((m) => m.hostCpu).toFixed(2)} µs   process ${of((m) => m.processCpu).toFixed(2)} µs   ` +
        `server ${of((m) => m.serverCpu ?? NaN).toFixed(2)} µs a message`,
    );
  }
  return results;
}

function collectGarbage(): void {
  (globalThis as { gc?: () => void }).gc?.();
}

/** Per round, `pick` of one contestant divided by that of another. */
export function ratios(results: Results, ours: string, theirs: string, pick: (measure: Measure) => number): number[] {
  const base = results.get(theirs);
  if (base === undefined) return [];
  return (results.get(ours) ?? []).map((measure, round) => pick(measure) / pick(base[round]!));
}

/** One value of each round. */
export function each(results: Results, name: string, pick: (measure: Measure) => number): number[] {
  return (results.get(name) ?? []).map(pick);
}
