import { Fifo } from "../../core/fifo.ts";
import type { NatsNative } from "./context.ts";

/** Runs of sequences, both ends included, ascending. */
export type Runs = readonly (readonly [first: number, last: number])[];

/** How far a partition is: enough for another owner to go on without handing out again what was settled. */
export interface Snapshot {
  /** Everything up to this sequence is settled. */
  readonly floor: number;
  /** What is settled behind the floor. */
  readonly done: Runs;
}

/** More runs than these are not kept: what they hold may come again to the next owner. */
const MAX_RUNS = 500;

/** What becomes of a message that the server delivers. */
export type Arrival =
  | "new"
  /** We hold it already: it was only delivered again. */
  | "held"
  /** It was settled before, by us or by the owner before us. */
  | "settled";

/**
 * What was delivered of a partition since this member owns it, in order, and how far it is settled. The server keeps the same,
 * but forgets it with the durable, and tells of it no more than a floor.
 */
export class Progress {
  /** From the first unsettled one on. */
  readonly #delivered = new Fifo<NatsNative>();
  #floor = 0;
  #inherited: Runs = [];
  #held = 0;
  /** The highest sequence that ever came. */
  #last = 0;
  /** By sequence, while a durable delivers anew what we know already. */
  #known: Map<number, NatsNative> | undefined;

  /** How many are unsettled. */
  get held(): number {
    return this.#held;
  }

  /** Begins where another owner, or another durable, ended. */
  begin(from: Snapshot): void {
    this.clear();
    this.#floor = this.#last = from.floor;
    this.#inherited = from.done.filter(([, last]) => last > from.floor);
  }

  /** A new durable delivers from the floor on. */
  again(): void {
    this.#known = new Map();
    for (const native of this.#delivered) this.#known.set(native.seq, native);
  }

  /** Takes one delivery in; `native` is kept only where it is new or settled. */
  arrived(native: NatsNative, repeated: boolean): Arrival {
    if (repeated && this.#known === undefined && native.seq <= this.#last) this.again();
    const known = this.#known?.get(native.seq);
    if (known !== undefined) {
      known.reply = native.reply;
      return known.settled ? "settled" : "held";
    }
    if (native.seq <= this.#floor) return "settled";
    if (native.seq > this.#last) {
      this.#last = native.seq;
      this.#known = undefined;
    }
    this.#delivered.push(native);
    if (this.#isInherited(native.seq)) {
      native.settled = true;
      this.#advance();
      return "settled";
    }
    this.#held++;
    return "new";
  }

  #isInherited(seq: number): boolean {
    let [run] = this.#inherited;
    while (run !== undefined && run[1] < seq) {
      this.#inherited = this.#inherited.slice(1);
      [run] = this.#inherited;
    }
    return run !== undefined && run[0] <= seq;
  }

  /** These are settled at the server. */
  settle(natives: readonly NatsNative[]): void {
    for (const native of natives) {
      if (native.settled) continue;
      native.settled = true;
      this.#held--;
    }
    this.#advance();
  }

  #advance(): void {
    for (let first = this.#delivered.peek(); first?.settled === true; first = this.#delivered.peek()) {
      this.#floor = first.seq;
      this.#delivered.shift();
    }
  }

  /** Unsettled ones, in order. */
  unsettled(): NatsNative[] {
    return [...this.#delivered].filter((native) => !native.settled);
  }

  /** How far it is at this moment. */
  snapshot(): Snapshot {
    const done: [number, number][] = [];
    let run: [number, number] | undefined;
    for (const { seq, settled } of this.#delivered) {
      if (!settled) run = undefined;
      else if (run !== undefined) run[1] = seq;
      else if (done.length < MAX_RUNS) done.push(run = [seq, seq]);
      else break;
    }
    const ahead = this.#inherited.filter(([, last]) => last > this.#last);
    return { floor: this.#floor, done: [...done, ...ahead].slice(0, MAX_RUNS) };
  }

  /** Forgets everything. */
  clear(): void {
    while (this.#delivered.shift() !== undefined);
    this.#known = undefined;
    this.#held = 0;
    this.#inherited = [];
  }
}
