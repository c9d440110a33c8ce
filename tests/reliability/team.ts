/**
 * A group under test: member and publisher processes, what the server knows of them, and the verdict at the end.
 *
 * @module
 */
import { shareOf } from "../../core/ownership/rendezvous.ts";
import { fresh, until } from "../support/test.ts";
import { check } from "./checker.ts";
import type { Findings } from "./findings.ts";
import type { Journal, Line } from "./history.ts";
import { journalOf } from "./journal.ts";
import { NatsView } from "./nats_view.ts";
import { isNats, makeBroker, type MemberSettings, type PublisherSettings, type TeamSettings } from "./settings.ts";
import { Member, Talker } from "./talker.ts";
import { ServerView, type TeamView } from "./view.ts";

/** How a team is set up. */
export interface TeamOptions {
  readonly url: string;
  readonly partitions?: number;
  readonly prefetch?: number;
  readonly ownerLeaseMs?: number;
  readonly isolation?: "worker" | "inline";
  readonly inFlight?: number;
  readonly workMs?: number;
}

/** The group. */
export class Team {
  readonly settings: TeamSettings;
  readonly server: TeamView;
  readonly members: Map<string, Member> = new Map();
  readonly #options: TeamOptions;
  readonly #journal: Journal;
  readonly #all: Talker[] = [];
  #publisher: Talker | undefined;
  #names = 0;

  constructor(options: TeamOptions) {
    const { url, partitions = 8, prefetch = 128, ownerLeaseMs = 1_000, isolation = "worker" } = options;
    const prefix = fresh("rel");
    const shared = { url, partitions, prefetch, ownerLeaseMs, isolation, prefix };
    this.settings = {
      ...shared,
      topic: isNats(url) ? `orders-${prefix}` : "orders",
      group: "billing",
      journal: `${prefix}:journal`,
    };
    this.#options = options;
    this.server = isNats(url) ? new NatsView(this.settings) : new ServerView(this.settings);
    this.#journal = journalOf(url, this.settings.journal);
  }

  /** Starts a member, with `env` added to its environment; resolves when it has subscribed. */
  async join(mode: MemberSettings["mode"] = "settle", env: Readonly<Record<string, string>> = {}): Promise<Member> {
    const name = `m${++this.#names}`;
    const { inFlight = 16, workMs = 5 } = this.#options;
    const member = new Member({ ...this.settings, name, inFlight, workMs, mode }, env);
    this.#all.push(member);
    this.members.set(name, member);
    await member.hear("ready");
    return member;
  }

  /** Starts publishing; resolves when it does. */
  async publish(options: Pick<PublisherSettings, "publishers" | "subjects" | "perSecond">): Promise<void> {
    const settings: PublisherSettings = { ...this.settings, ...options };
    this.#publisher = new Talker("./publisher.ts", settings);
    this.#all.push(this.#publisher);
    await this.#publisher.hear("ready");
  }

  /** Publishes `count` messages over as many subjects from this process. */
  async put(count: number): Promise<void> {
    const broker = makeBroker(this.settings, { isolation: "inline" });
    try {
      const messages = Array.from({ length: count }, (_, at) => ({ type: "n", subject: `s${at}`, data: 0 }));
      await broker.publishAll(this.settings.topic, messages);
    } finally {
      await broker.close();
    }
  }

  /** Ends a member in order; resolves when it has closed its broker, with how long that took from being told. */
  async leave(member: Member): Promise<number> {
    await this.#journal.write({ k: "fault", member: member.name, what: "close" });
    const from = performance.now();
    member.tell("stop");
    const { released, unconfirmed } = await member.hear("closed");
    const took = performance.now() - from;
    this.members.delete(member.name);
    if (unconfirmed > 0) {
      throw new Error(`${member.name} closed with ${unconfirmed} of ${released} settles unconfirmed`);
    }
    const { code, stderr } = await member.child.done;
    if (code !== 0) throw new Error(`${member.name} ended with ${code}: ${stderr}`);
    return took;
  }

  /** SIGKILL. */
  async kill(member: Member): Promise<void> {
    await this.#journal.write({ k: "fault", member: member.name, what: "kill" });
    this.members.delete(member.name);
    member.child.kill("SIGKILL");
  }

  /** SIGSTOP. */
  async freeze(member: Member): Promise<void> {
    await this.#journal.write({ k: "fault", member: member.name, what: "stop" });
    member.child.kill("SIGSTOP");
  }

  /** SIGCONT. */
  async thaw(member: Member): Promise<void> {
    await this.#journal.write({ k: "fault", member: member.name, what: "cont" });
    member.child.kill("SIGCONT");
  }

  /** Resolves when every member owns its share, and answers how long that took. */
  async balanced(timeoutMs = 10_000): Promise<number> {
    const from = performance.now();
    const names = [...this.members.keys()];
    const expected: string[] = [];
    for (const name of names) {
      for (const at of shareOf(name, names, this.settings.partitions)) expected[at] = name;
    }
    const what = `the shares ${expected.join(" ")}`;
    await until(async () => (await this.server.owners()).join() === expected.join(), { timeoutMs, what });
    return performance.now() - from;
  }

  /** Resolves when none of these partitions is its former owner's or nobody's, or `unless` answers true. */
  async takenOver(
    partitions: readonly number[],
    from: string,
    timeoutMs: number,
    unless: () => boolean = () => false,
  ): Promise<void> {
    await until(async () => {
      const owners = await this.server.owners();
      return unless() || partitions.every((at) => owners[at] !== undefined && owners[at] !== from);
    }, { timeoutMs, what: `partitions ${partitions.join(" ")} of ${from} to be taken over` });
  }

  /** Ends publishing, waits until all is settled, ends the members, and looks at what was written down. */
  async finish(drainMs = 30_000): Promise<Findings> {
    this.#publisher!.tell("stop");
    const { counts } = await this.#publisher!.hear("published");
    await until(async () => {
      const { pending, waiting } = await this.server.backlog();
      return pending === 0 && waiting === 0;
    }, { timeoutMs: drainMs, everyMs: 50, what: "everything to be settled" }).catch((error) => {
      // The history says more than that it is not done.
      console.error(String(error));
    });
    for (const member of [...this.members.values()]) await this.leave(member);
    const lines = await this.#journal.read();
    const findings = check(new Map(Object.entries(counts)), lines, this.settings.prefetch);
    for (const violation of findings.violations) this.#tell(violation, lines);
    return findings;
  }

  /** What was written down about the message that a violation names, and its neighbours. */
  #tell(violation: string, lines: readonly Line[]): void {
    const [, subject, n] = violation.match(/(\S+):(\d+)/) ?? [];
    console.error(violation);
    lines.forEach((line, at) => {
      const near = line.k === "fault" || (line.subject === subject && Math.abs(line.n - Number(n)) < 2);
      if (near) console.error(`  ${at} ${JSON.stringify(line)}`);
    });
  }

  /** Kills what still runs, and removes everything from the server. */
  async end(): Promise<void> {
    for (const { child } of this.#all) child.kill("SIGKILL");
    await Promise.all(this.#all.map(({ child }) => child.done));
    await this.server.clear();
    await this.#journal.close();
  }
}
