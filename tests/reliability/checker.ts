/**
 * Whether a history keeps what is promised: a pure function over what was written down.
 *
 * @module
 */
import type { SettleOutcome } from "../../core/contract.ts";
import type { Cause, Findings } from "./findings.ts";
import type { Hand, Line } from "./history.ts";

/** How many violations of a kind are told. */
const MOST = 5;

interface Message {
  readonly name: string;
  /** Index of its last hand-out in the whole history. */
  lastHanded: number;
  /** Who had it last. */
  holder: Holder | undefined;
  done: boolean;
  /** A confirmed settle has come back. */
  confirmed: boolean;
}

/** One hand-out of a message. */
interface Holder {
  readonly member: string;
  /** `gone` = told that it is lost, or another member was handed it. */
  state: "has" | "settled" | "held" | "gone";
  /** The fault that allows somebody else to be handed it. */
  excuse: Incident | undefined;
  /** Whether the member heard that it is lost, by its signal or by a stale settle; or nobody waited to hear of a settle. */
  told: boolean;
}

/** One fault of one member. */
interface Incident {
  readonly cause: Cause;
  duplicates: number;
}

interface Member {
  /** Its hand-outs by number, but for those that are settled. */
  readonly hands: Map<number, Holder>;
  /** The last one of each message. */
  readonly latest: Map<Message, Holder>;
  /** What goes on now; a stopped member's excuse ends when it goes on. */
  down: Incident | undefined;
}

/**
 * Checks a history.
 *
 * - sets: every published message was handed out and settled, and nothing else was handed out;
 * - order: first hand-outs of a subject count up one by one;
 * - one owner: nobody is handed a message while an earlier one of its subject is neither settled nor in his own hands, nor one
 *   that another member has;
 * - once: a message comes again only if it was held back, or its holder was killed, stopped, closed or hears sooner or later that
 *   it is lost;
 * - bound: one fault leads to no more duplicates than the member could have in flight (`prefetch`);
 * - fence: a settle takes effect only for whoever was handed the message last, once, and nothing is handed out after it.
 *
 * @param counts How many messages were published by subject.
 */
export function check(counts: ReadonlyMap<string, number>, lines: readonly Line[], prefetch: number): Findings {
  return new Checker(counts, lines, prefetch).run();
}

class Checker {
  readonly #counts: ReadonlyMap<string, number>;
  readonly #lines: readonly Line[];
  readonly #prefetch: number;
  readonly #messages = new Map<string, Message[]>();
  readonly #members = new Map<string, Member>();
  readonly #next = new Map<string, number>();
  readonly #settledUpTo = new Map<string, number>();
  readonly #incidents: Incident[] = [];
  /** Hand-outs that were followed by another, and what to say if nobody ever tells their member. */
  readonly #untold: { readonly holder: Holder; readonly text: string }[] = [];
  /** What came of each settle, by the index of its line; absent = nobody heard. */
  readonly #outcomes = new Map<number, SettleOutcome>();
  readonly #told = new Map<string, string[]>();
  #stale = 0;

  constructor(counts: ReadonlyMap<string, number>, lines: readonly Line[], prefetch: number) {
    this.#counts = counts;
    this.#lines = lines;
    this.#prefetch = prefetch;
    for (const [subject, count] of counts) {
      const messages = Array.from({ length: count }, (_, n): Message => ({
        name: `${subject}:${n}`,
        lastHanded: -1,
        holder: undefined,
        done: false,
        confirmed: false,
      }));
      this.#messages.set(subject, messages);
    }
    const sent = new Map<string, number>();
    lines.forEach((line, at) => {
      if (line.k === "handed") {
        const message = this.#messages.get(line.subject)?.[line.n];
        if (message !== undefined) message.lastHanded = at;
      } else if (line.k === "settling") {
        sent.set(`${line.member} ${line.d}`, at);
      } else if (line.k === "settled") {
        this.#outcomes.set(sent.get(`${line.member} ${line.d}`) ?? -1, line.outcome);
      }
    });
  }

  #violation(kind: string, text: string): void {
    const told = this.#told.get(kind) ?? [];
    this.#told.set(kind, told);
    told.push(`${kind}: ${text}`);
  }

  #member(name: string): Member {
    let member = this.#members.get(name);
    if (member === undefined) {
      this.#members.set(name, member = { hands: new Map(), latest: new Map(), down: undefined });
    }
    return member;
  }

  run(): Findings {
    this.#lines.forEach((line, at) => {
      if (line.k === "fault") return this.#fault(line);
      const message = this.#messages.get(line.subject)?.[line.n];
      if (message === undefined) return this.#violation("sets", `${line.subject}:${line.n} was never published`);
      switch (line.k) {
        case "handed":
          return this.#handed(line, message);
        case "settling":
          return this.#settling(line, message, at);
        case "settled":
          if (line.outcome === "settled") message.confirmed = true;
          if (line.outcome !== "stale") return;
          this.#stale++;
          return this.#gaveUp(line, "gone");
        case "held":
          return this.#gaveUp(line, "held");
        case "lost":
          return this.#gaveUp(line, "gone");
      }
    });
    this.#end();
    const duplicates: Record<Cause, number> = { kill: 0, stop: 0, close: 0, lost: 0 };
    for (const { cause, duplicates: count } of this.#incidents) duplicates[cause] += count;
    let messages = 0;
    for (const count of this.#counts.values()) messages += count;
    return {
      violations: [...this.#told.values()].flatMap((texts) =>
        texts.length > MOST ? [...texts.slice(0, MOST), `… and ${texts.length - MOST} more`] : texts
      ),
      messages,
      duplicates,
      worst: Math.max(0, ...this.#incidents.map((incident) => incident.duplicates)),
      stale: this.#stale,
    };
  }

  #fault({ member: name, what }: Extract<Line, { k: "fault" }>): void {
    const member = this.#member(name);
    if (what !== "cont") this.#incidents.push(member.down = { cause: what, duplicates: 0 });
    // What was in its hands may come again, also what it was handed between the line and the signal.
    for (const holder of member.hands.values()) holder.excuse ??= member.down;
    if (what === "cont") member.down = undefined;
  }

  #handed({ member: name, d, subject, n }: Extract<Line, { k: "handed" }>, message: Message): void {
    const member = this.#member(name);
    const to = `${message.name} to ${name}`;
    const next = this.#next.get(subject) ?? 0;
    if (message.holder === undefined) {
      if (n !== next) this.#violation("order", `${to} before ${subject}:${next}`);
      this.#next.set(subject, Math.max(next, n + 1));
    } else {
      this.#again(message, message.holder, name, to);
    }
    if (message.confirmed) this.#violation("fence", `${to} after it was settled`);
    const messages = this.#messages.get(subject)!;
    for (let earlier = this.#doneUpTo(subject); earlier < n; earlier++) {
      const other = messages[earlier]!;
      if (other.done || member.latest.get(other)?.state === "has") continue;
      this.#violation("one owner", `${to} while ${other.name} is not settled and not in its hands`);
      break;
    }
    if (message.holder !== undefined) message.holder.state = "gone";
    message.holder = { member: name, state: "has", excuse: undefined, told: false };
    member.hands.set(d, message.holder);
    member.latest.set(message, message.holder);
  }

  /** The first number of a subject that is not settled. */
  #doneUpTo(subject: string): number {
    const messages = this.#messages.get(subject)!;
    let at = this.#settledUpTo.get(subject) ?? 0;
    while (messages[at]?.done) at++;
    this.#settledUpTo.set(subject, at);
    return at;
  }

  #again(message: Message, before: Holder, name: string, to: string): void {
    if (before.state === "held" && before.member === name) return;
    const excuse = before.excuse ?? this.#member(before.member).down;
    if (excuse !== undefined) return void excuse.duplicates++;
    this.#incidents.push({ cause: "lost", duplicates: 1 });
    if (!message.confirmed) {
      this.#untold.push({ holder: before, text: `${to} while ${before.member} has or settles it` });
    }
  }

  #settling(line: Extract<Line, { k: "settling" }>, message: Message, at: number): void {
    const { hands } = this.#member(line.member);
    const holder = hands.get(line.d);
    const outcome = this.#outcomes.get(at);
    const last = message.holder === holder;
    // Of one that nobody waited for, or whose answer nobody was left to hear, we know by what followed.
    const effective = outcome === "settled" || (outcome !== "stale" && last && message.lastHanded < at);
    if (holder !== undefined && !effective && !line.confirm) holder.told = true;
    if (!effective) return;
    if (holder?.state === "has") holder.state = "settled";
    hands.delete(line.d);
    if (!last) this.#violation("fence", `the settle of ${message.name} by ${line.member}, a former owner, took effect`);
    if (message.done) this.#violation("fence", `${message.name} was settled twice`);
    message.done = true;
  }

  #gaveUp({ member, d }: Hand, how: "held" | "gone"): void {
    const holder = this.#member(member).hands.get(d);
    if (holder === undefined) return;
    holder.state = how;
    if (how === "gone") holder.told = true;
  }

  #end(): void {
    for (const { holder, text } of this.#untold) {
      // One that was killed afterwards had nobody left to tell.
      if (!holder.told && holder.excuse?.cause !== "kill") this.#violation("once", text);
    }
    for (const messages of this.#messages.values()) {
      for (const message of messages) {
        if (message.holder === undefined) this.#violation("sets", `${message.name} was never handed out`);
        else if (!message.done) {
          this.#violation("sets", `${message.name} was never settled by ${message.holder.member}, who had it last`);
        }
      }
    }
    for (const { cause, duplicates } of this.#incidents) {
      if (duplicates > this.#prefetch) {
        this.#violation(
          "bound",
          `one ${cause} led to ${duplicates} duplicates, more than the ${this.#prefetch} in flight`,
        );
      }
    }
  }
}
