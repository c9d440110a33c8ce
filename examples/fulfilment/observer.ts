/**
 * Watches the service: counts what became of each event, remembers in which order, and tells when orders have reached their end.
 *
 * @module
 */
import type { Envelope, OutcomeReport } from "@xsm/eda";
import type { OrderLine } from "./order.ts";

/** What an order's last event is, when all goes well. */
const LAST = "shop.mail.requested";

/** The key of a sequence: events of one subject on one topic are in order, and no others promise to be. */
export const sequenceOf = (topic: string, { subject = "" }: Envelope): string => `${topic} ${subject}`;

/** Give its {@link Observer.see} to the dispatcher as `onOutcome`. */
export class Observer {
  /** Outcome to count. */
  readonly outcomes: Map<string, number> = new Map();
  /** Event type to how many were processed. */
  readonly processed: Map<string, number> = new Map();
  /** Sequence to the ids of its events, in the order in which they were done with. */
  readonly sequences: Map<string, string[]> = new Map();
  /** Events that the broker had delivered before when they first came to a handler. */
  redeliveries = 0;
  readonly #met = new Set<string>();
  readonly #onSeen: (report: OutcomeReport) => void;
  #waiting: ReadonlySet<string> = new Set();
  readonly #ended = new Set<string>();
  #resolve: () => void = () => {};

  /** @param onSeen Told each report too, once it is counted. */
  constructor(onSeen: (report: OutcomeReport) => void) {
    this.#onSeen = onSeen;
  }

  readonly see = (report: OutcomeReport): void => {
    const { outcome, topic, envelope, attempt } = report;
    increment(this.outcomes, outcome);
    const id = `${topic} ${envelope.source} ${envelope.id}`;
    if (!this.#met.has(id) && attempt > 0) this.redeliveries++;
    this.#met.add(id);
    if (outcome === "processed") increment(this.processed, envelope.type);
    const givenUp = outcome.startsWith("dead_lettered:");
    // `retry` and `unavailable` are not the end of an event: its lane waits and tries again.
    if (outcome === "processed" || outcome === "duplicate" || givenUp) this.#done(report);
    if (givenUp || (outcome === "processed" && envelope.type === LAST)) this.#end(envelope.subject);
    this.#onSeen(report);
  };

  /** The orders of these lines are to reach their end from now on. */
  expect(lines: readonly OrderLine[]): void {
    this.#waiting = new Set(lines.map((line) => line.subject));
    this.#ended.clear();
  }

  /** Resolves when each expected order has sent its last event or has an event that was given up; rejects with `signal`. */
  allEnded(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      if (signal.aborted) reject(signal.reason);
      this.#end();
    });
  }

  #done({ topic, envelope }: OutcomeReport): void {
    const key = sequenceOf(topic, envelope);
    const known = this.sequences.get(key);
    if (known === undefined) this.sequences.set(key, [envelope.id]);
    else known.push(envelope.id);
  }

  #end(order?: string): void {
    if (order !== undefined && this.#waiting.has(order)) this.#ended.add(order);
    if (this.#ended.size === this.#waiting.size) this.#resolve();
  }
}

function increment(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
