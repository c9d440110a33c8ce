/**
 * Rounds: every contestant once a round, in turn, so that whatever the machine does meanwhile meets all of them.
 *
 * @module
 */
import { processCpu, threadCpu } from "./cpu.ts";
import { say } from "./case.ts";
import { median } from "./figure.ts";
import { Neighbours } from "./neighbours.ts";

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
  /** Makes ready what a run needs; not measured. */
  prepare?(): Promise<void>;
  run(round: string): Promise<Measure>;
}

/** All measures of each contestant, by name. */
export type Results = ReadonlyMap<string, readonly Measure[]>;

/** How rounds are run. */
export interface RoundOptions {
  readonly rounds: number;
  /** Rounds before them that do not count. */
  readonly warmUps: number;
  /** How long it may wait for other processes to be quiet, in all, ms. */
  readonly patienceMs: number;
  /** CPU time of the broker so far, microseconds. */
  readonly serverCpu?: (() => Promise<number>) | undefined;
}

/** Runs all contestants, round after round. */
export async function interleave(contestants: readonly Contestant[], options: RoundOptions): Promise<Results> {
  const { rounds, warmUps } = options;
  const results = new Map<string, Measure[]>(contestants.map(({ name }) => [name, []]));
  const neighbours = new Neighbours(options.patienceMs);
  for (let round = 0; round < warmUps + rounds; round++) {
    // Another one begins each round: nobody always runs behind the same one.
    const first = round % contestants.length;
    for (const contestant of [...contestants.slice(first), ...contestants.slice(0, first)]) {
      const measure = await undisturbed(contestant, `${round}`, round < warmUps ? undefined : neighbours, options);
      if (round >= warmUps) results.get(contestant.name)!.push(measure);
    }
  }
  if (neighbours.disturbed > 0) {
    say(`${neighbours.disturbed} of ${rounds * contestants.length} runs shared the processors with something else`);
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

/** Runs one contestant, again where something else ran beside it and there is patience left. */
async function undisturbed(
  contestant: Contestant,
  round: string,
  neighbours: Neighbours | undefined,
  options: RoundOptions,
): Promise<Measure> {
  const serverCpu = async (): Promise<number> => await options.serverCpu?.() ?? NaN;
  for (let again = 0;; again++) {
    await contestant.prepare?.();
    await neighbours?.quiet();
    collectGarbage();
    const serverBefore = await serverCpu();
    const before = processCpu();
    neighbours?.start();
    const measure = await contestant.run(`${contestant.name}-${round}-${again}`);
    const server = await serverCpu() - serverBefore;
    const ownMs = (processCpu() - before + (Number.isNaN(server) ? 0 : server)) / 1_000;
    if (neighbours?.wasDisturbed(ownMs)) continue;
    return { ...measure, serverCpu: server / contestant.count };
  }
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
