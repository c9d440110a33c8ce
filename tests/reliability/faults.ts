/**
 * One round of each fault: something happens to a member, and the group must be whole again in time.
 *
 * @module
 */
import type { Member } from "./talker.ts";
import type { Team } from "./team.ts";

/** What can happen in a round. */
export type FaultKind = "kill" | "freeze" | "restart" | "join and leave";

/** All kinds. */
export const FAULT_KINDS: readonly FaultKind[] = ["kill", "freeze", "restart", "join and leave"];

/** How a round went, milliseconds. */
export interface Round {
  readonly kind: FaultKind;
  /** Until the partitions of the member were another's: after the signal, or after an orderly end was done. */
  readonly takeOverMs: number;
  /** How long that may take: the lease and a second, or a second where it ended in order. */
  readonly limitMs: number;
  /** From then on until every member owned its share. */
  readonly balancedMs: number;
}

/** A member that owns something, and what. */
async function victimOf(team: Team, random: () => number): Promise<{ member: Member; partitions: number[] }> {
  const owners = await team.server.owners();
  const names = [...team.members.keys()].filter((name) => owners.includes(name));
  const name = names[Math.floor(random() * names.length)]!;
  const partitions = owners.flatMap((owner, at) => owner === name ? [at] : []);
  return { member: team.members.get(name)!, partitions };
}

async function timed(work: Promise<unknown>): Promise<number> {
  const from = performance.now();
  await work;
  return performance.now() - from;
}

/** Runs one round. The team is balanced before and after. */
export async function runFault(team: Team, kind: FaultKind, random: () => number): Promise<Round> {
  const { ownerLeaseMs } = team.settings;
  const { member, partitions } = await victimOf(team, random);
  const { name } = member;
  const takeOver = (limitMs: number, unless?: () => boolean): Promise<number> =>
    timed(team.takenOver(partitions, name, limitMs + 5_000, unless));
  const after = async (takeOverMs: number, limitMs: number): Promise<Round> => {
    const balancedMs = await team.balanced();
    return { kind, takeOverMs, limitMs, balancedMs };
  };
  switch (kind) {
    case "kill": {
      await team.kill(member);
      const takeOverMs = await takeOver(ownerLeaseMs + 1_000);
      // The group shrinks and grows between 2 and 5.
      const least = 2 + Math.floor(random() * 3);
      while (team.members.size < least) await team.join();
      return await after(takeOverMs, ownerLeaseMs + 1_000);
    }
    case "freeze": {
      await team.freeze(member);
      let awake = false;
      const taken = takeOver(ownerLeaseMs + 1_000, () => awake);
      // As it wakes, others are just about to take over, or have done so for some time; it may even be first.
      await new Promise((resolve) => setTimeout(resolve, ownerLeaseMs * (1.05 + random())));
      await team.thaw(member);
      awake = true;
      return await after(await taken, ownerLeaseMs + 1_000);
    }
    case "restart": {
      await team.leave(member);
      const takeOverMs = await takeOver(1_000);
      await team.join();
      return await after(takeOverMs, 1_000);
    }
    case "join and leave": {
      if (team.members.size < 5) await team.join();
      await team.balanced();
      const { member: leaver, partitions: left } = await victimOf(team, random);
      await team.leave(leaver);
      const takeOverMs = await timed(team.takenOver(left, leaver.name, 6_000));
      return await after(takeOverMs, 1_000);
    }
  }
}
