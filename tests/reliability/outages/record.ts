/**
 * What was published and what was handed out, as sets and per subject.
 *
 * @module
 */

/** How a stretch of load went, since the last look. */
export interface Counts {
  /** Messages that the broker confirmed. */
  readonly sent: number;
  /** Publishes tried again, because the first try was not confirmed. */
  readonly retried: number;
  /** Hand-outs of messages seen before that were published once: the broker delivered them again. */
  readonly redelivered: number;
  /** Hand-outs of messages seen before whose publish was tried again: the broker may hold two. */
  readonly copies: number;
  /** First hand-outs behind a later message of their subject, or before an earlier one, where {@link Record.reorders} is set. */
  readonly reordered: number;
}

/** How many violations of a kind are told. */
const MOST = 5;

/** Keeps count for all publishers and consumers of one process. */
export class Record {
  readonly violations: string[] = [];
  /** Whether the broker is known to reorder what goes on now: it is counted, and no violation. */
  reorders = false;
  readonly #sent = new Map<string, number>();
  readonly #next = new Map<string, number>();
  readonly #seen = new Set<string>();
  readonly #confirmed = new Set<string>();
  readonly #tries = new Map<string, number>();
  /** What was first published since {@link mark}. */
  #young = new Set<string>();
  #youngHanded = false;
  #counts = { sent: 0, retried: 0, redelivered: 0, copies: 0, reordered: 0 };

  /** The number of the next message of a subject; they count up from 0. */
  number(subject: string): number {
    const n = this.#sent.get(subject) ?? 0;
    this.#sent.set(subject, n + 1);
    return n;
  }

  /** A publish is tried; `again` = after a try that was not confirmed. */
  tried(name: string, again: boolean): void {
    this.#tries.set(name, (this.#tries.get(name) ?? 0) + 1);
    if (!again) this.#young.add(name);
    if (again) this.#counts.retried++;
  }

  confirmed(name: string): void {
    this.#confirmed.add(name);
    this.#counts.sent++;
  }

  /** A message was handed out. */
  handed(subject: string, n: number): void {
    const name = `${subject}:${n}`;
    if (this.#young.has(name)) this.#youngHanded = true;
    if (this.#seen.has(name)) {
      if (this.#tries.get(name)! > 1) this.#counts.copies++;
      else this.#counts.redelivered++;
      return;
    }
    this.#seen.add(name);
    if (!this.#tries.has(name)) return this.violation("sets", `${name} was never published`);
    const next = this.#next.get(subject) ?? 0;
    if (n !== next && this.reorders) this.#counts.reordered++;
    else if (n !== next) this.violation("order", `${name} before ${subject}:${next}`);
    this.#next.set(subject, Math.max(next, n + 1));
  }

  violation(kind: string, text: string): void {
    const before = this.violations.filter((told) => told.startsWith(`${kind}:`)).length;
    if (before < MOST) this.violations.push(`${kind}: ${text}`);
    else if (before === MOST) this.violations.push(`${kind}: … and more`);
  }

  /** From now on {@link flows} waits for messages of which nothing was sent yet. */
  mark(): void {
    this.#young = new Set();
    this.#youngHanded = false;
  }

  /** Whether a message that was first published after the mark was handed out. */
  get flows(): boolean {
    return this.#youngHanded;
  }

  /** Confirmed messages that nobody was handed yet. */
  missing(): string[] {
    return [...this.#confirmed].filter((name) => !this.#seen.has(name));
  }

  /** Whether everything confirmed was handed out. */
  get whole(): boolean {
    return this.#seen.size >= this.#confirmed.size && this.missing().length === 0;
  }

  /** What was counted since the last call. */
  take(): Counts {
    const counts = this.#counts;
    this.#counts = { sent: 0, retried: 0, redelivered: 0, copies: 0, reordered: 0 };
    return counts;
  }
}
