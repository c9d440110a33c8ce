/**
 * Members of one topic, processes of their own, that join, leave and die while messages are published.
 *
 * @module
 */
import { SqsBroker, type SqsBrokerOptions } from "../../adapters/sqs/mod.ts";
import { type Child, child, fresh, type TestContext, until } from "../support/test.ts";
import { SqsClient } from "./sqs_client.ts";
import type { MemberLine, MemberPlan } from "./sqs_member.ts";

/** A consumer in a process of its own. */
export class MemberProcess {
  readonly child: Child;

  constructor(context: TestContext | undefined, plan: MemberPlan, env: Readonly<Record<string, string>> = {}) {
    const script = new URL("./sqs_member.ts", import.meta.url);
    this.child = child(script, [JSON.stringify(plan)], env, { timeoutMs: 600_000 });
    context?.cleanup(() => this.kill());
  }

  /** All that it said so far. */
  get lines(): MemberLine[] {
    return this.child.stdout.split("\n").filter((line) => line.endsWith("}")).map((line) => JSON.parse(line));
  }

  async ready(): Promise<void> {
    await this.child.output('"ready"', 30_000);
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    this.child.kill("SIGKILL");
    await this.child.done;
  }

  /** Ends it in order; answers how many settles stayed unconfirmed. */
  async leave(): Promise<number> {
    this.child.kill("SIGTERM");
    await this.child.done;
    const last = this.lines.at(-1);
    if (last?.what !== "end") throw new Error(`A member did not end: ${this.child.stderr}`);
    return last.unconfirmed;
  }
}

/** What a run comes to. */
export interface MembersResult {
  readonly published: number;
  readonly kills: number;
  /** Hand-outs of messages that had been handed out before. */
  readonly again: number;
  /** Each line says what was promised and not kept. */
  readonly violations: readonly string[];
}

/** How a run is made. */
export interface MembersPlan {
  readonly broker: SqsBrokerOptions;
  readonly members: number;
  readonly rounds: number;
  readonly subjects: number;
  /** Messages a round. */
  readonly perRound: number;
  readonly prefetch: number;
}

/** Each round one member joins, and another leaves or, every second time, is killed. */
export async function runMembers(plan: MembersPlan): Promise<MembersResult> {
  const topic = fresh("members");
  const options = { source: "/members", logger: false as const, prefetch: plan.prefetch, ...plan.broker };
  const all: MemberProcess[] = [];
  const join = async (): Promise<MemberProcess> => {
    const member = new MemberProcess(undefined, { broker: options, topic, mode: "consume" });
    all.push(member);
    await member.ready();
    return member;
  };
  const broker = new SqsBroker(options);
  const counts = new Map<string, number>();
  const publish = async (): Promise<void> => {
    const messages = Array.from({ length: plan.perRound }, (_, at) => {
      const subject = `s${at % plan.subjects}`;
      const n = counts.get(subject) ?? 0;
      counts.set(subject, n + 1);
      return { type: "n", subject, data: n };
    });
    await broker.publishAll(topic, messages);
  };
  const violations: string[] = [];
  let kills = 0;
  try {
    await broker.connect();
    const team = await Promise.all(Array.from({ length: plan.members }, join));
    for (let round = 0; round < plan.rounds; round++) {
      const publishing = publish();
      team.push(await join());
      const gone = team.shift()!;
      if (round % 2 === 0) {
        kills++;
        await gone.kill();
      } else if (await gone.leave() > 0) violations.push("close: settles stayed unconfirmed");
      await publishing;
    }
    const client = new SqsClient(plan.broker.endpoint!);
    const queue = `${topic}.fifo`;
    const empty = async (): Promise<boolean> => await client.visible(queue) === 0 && await client.inFlight(queue) === 0;
    await until(empty, { timeoutMs: 60_000, everyMs: 200, what: "all to be settled" })
      .catch(() => violations.push("sets: not all was settled"));
    for (const member of team) if (await member.leave() > 0) violations.push("close: settles stayed unconfirmed");
    return { published: plan.perRound * plan.rounds, kills, ...check(all, counts, violations) };
  } finally {
    await Promise.all([broker.close(), ...all.map((member) => member.kill())]);
  }
}

function check(
  members: readonly MemberProcess[],
  counts: ReadonlyMap<string, number>,
  violations: string[],
): Pick<MembersResult, "again" | "violations"> {
  const got = members.flatMap(({ lines }) => lines.flatMap((line) => line.what === "got" ? line : []));
  got.sort((a, b) => a.at - b.at);
  const next = new Map<string, number>();
  let again = 0;
  for (const { subject, n } of got) {
    const expected = next.get(subject) ?? 0;
    if (n < expected) again++;
    else if (n > expected) violations.push(`order: ${subject}:${n} before ${subject}:${expected}`);
    next.set(subject, Math.max(expected, n + 1));
  }
  for (const [subject, count] of counts) {
    if (next.get(subject) !== count) violations.push(`sets: ${subject} ended at ${next.get(subject)} of ${count}`);
  }
  return { again, violations };
}
