/**
 * Says how far the demo is: on a terminal with a line that is written over, elsewhere with plain lines.
 *
 * @module
 */
import process from "node:process";
import type { OutcomeReport } from "@xsm/eda";
import type { Observer } from "./observer.ts";

/** Which counts are shown, by event type. */
const STEPS: readonly (readonly [type: string, word: string])[] = [
  ["shop.order.placed", "placed"],
  ["shop.order.paid", "paid"],
  ["shop.order.packed", "packed"],
  ["shop.order.shipped", "shipped"],
  ["shop.order.refunded", "refunded"],
];

/** Prints while the service runs. */
export class Progress {
  readonly #terminal = process.stdout.isTTY === true;
  readonly #told = new Set<string>();
  #nextAt = 0;

  /** Prints a line of its own. */
  say(line: string): void {
    if (this.#terminal) process.stdout.write("\r\x1b[2K");
    console.log(line);
  }

  /** Prints what a report is worth. */
  show(report: OutcomeReport, observer: Observer): void {
    this.#setback(report);
    if (!this.#terminal) return;
    const now = performance.now();
    if (now < this.#nextAt) return;
    this.#nextAt = now + 50;
    process.stdout.write(`\r\x1b[2K  ${counts(observer)}`);
  }

  /** The first failure of each event, with what the handler threw. */
  #setback({ outcome, envelope, error }: OutcomeReport): void {
    if (error === undefined || this.#told.has(envelope.id)) return;
    this.#told.add(envelope.id);
    const what = error instanceof Error ? error.message : String(error);
    this.say(`  ${envelope.subject}  ${envelope.type}  ${outcome}: ${what}`);
  }

  /** The last word of a stretch of work. */
  end(observer: Observer): void {
    this.say(`  ${counts(observer)}`);
  }
}

function counts({ processed }: Observer): string {
  return STEPS.map(([type, word]) => `${word} ${processed.get(type) ?? 0}`).join(" · ");
}
