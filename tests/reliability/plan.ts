/**
 * A run of many rounds: teams one after another, each through its share of the faults and a rolling restart.
 *
 * @module
 */
import type { Findings } from "./findings.ts";
import { randomFrom } from "../support/test.ts";
import { type FaultKind, type Round, runFault } from "./faults.ts";
import { Team, type TeamOptions } from "./team.ts";

/** What is to be run. */
export interface Plan {
  readonly team: TeamOptions;
  readonly kinds: readonly FaultKind[];
  /** Rounds of each kind. */
  readonly rounds: number;
  /** Most rounds of each kind that one team goes through. */
  readonly roundsPerTeam: number;
  readonly seed: number;
  readonly publishers: number;
  readonly subjects: number;
  readonly perSecond: number;
}

/** What a run comes to. */
export interface PlanResult {
  readonly rounds: readonly Round[];
  readonly findings: readonly Findings[];
  /** Members that were ended in order and replaced, one after another, while all others worked. */
  readonly rolled: number;
}

/** The usual load. */
export const LOAD: Pick<Plan, "publishers" | "subjects" | "perSecond"> = {
  publishers: 4,
  subjects: 200,
  perSecond: 300,
};

/** Runs it. `say` is told each round as it ends. */
export async function runPlan(plan: Plan, say: (line: string) => void = () => {}): Promise<PlanResult> {
  const random = randomFrom(plan.seed);
  const rounds: Round[] = [];
  const findings: Findings[] = [];
  let rolled = 0;
  for (let left = plan.rounds; left > 0; left -= plan.roundsPerTeam) {
    const each = Math.min(left, plan.roundsPerTeam);
    const team = new Team(plan.team);
    try {
      for (let n = 0; n < 3; n++) await team.join();
      await team.publish(plan);
      await team.balanced();
      for (const kind of shuffled(plan.kinds.flatMap((kind) => Array<FaultKind>(each).fill(kind)), random)) {
        const round = await runFault(team, kind, random);
        rounds.push(round);
        const numbers = `taken over in ${Math.round(round.takeOverMs)} ms, balanced ${
          Math.round(round.balancedMs)
        } ms later`;
        say(`${String(rounds.length).padStart(4)} ${kind}: ${numbers}, ${team.members.size} members`);
      }
      for (const member of [...team.members.values()]) {
        await team.leave(member);
        await team.join();
        await team.balanced();
        rolled++;
      }
      findings.push(await team.finish());
      say(`     checked ${findings.at(-1)!.messages} messages: ${findings.at(-1)!.violations.length} violations`);
    } finally {
      await team.end();
    }
  }
  return { rounds, findings, rolled };
}

function shuffled<T>(list: readonly T[], random: () => number): T[] {
  const out = [...list];
  for (let at = out.length - 1; at > 0; at--) {
    const other = Math.floor(random() * (at + 1));
    [out[at], out[other]] = [out[other]!, out[at]!];
  }
  return out;
}

/** What of a result breaks a promise; `graceMs` = how much a take-over may be late on this machine. */
export function broken({ rounds, findings }: PlanResult, graceMs: number): string[] {
  const late = rounds.filter(({ takeOverMs, limitMs }) => takeOverMs > limitMs + graceMs);
  return [
    ...findings.flatMap(({ violations }) => violations),
    ...late.map(({ kind, takeOverMs, limitMs }) =>
      `take-over: ${Math.round(takeOverMs)} ms after a ${kind}, promised are ${limitMs} ms`
    ),
  ];
}
