import type { EdaError } from "../errors.ts";

/**
 * Which messages of a `publishAll` go to the broker together.
 *
 * Where the transport ends a subject at its first failure by itself, whole runs go out. Where it cannot, because the broker
 * accepts what follows a refused message, one message a subject goes out at a time, other subjects beside it; messages
 * without a subject have no order and go together.
 */
export interface SendPlan {
  /** Messages that were not handed out by {@link next} yet, left out ones not counted. */
  readonly left: number;
  /** Positions of the next messages; empty when nothing is left. What they bring must be known before the next call. */
  next(): readonly number[];
  /** A message failed: positions of what follows of its subject and must not be sent. */
  fail(at: number, error: EdaError): void;
  /** Hands over what was left out because an earlier message of its subject failed, with that failure, since the last call. */
  leftOut(): readonly (readonly [at: number, first: EdaError])[];
}

type Subjects = readonly (string | undefined)[];

/** Whole runs of at most `size`, for a transport that ends a subject at its first failure by itself. */
export class RunPlan implements SendPlan {
  readonly #subjects: Subjects;
  readonly #size: number;
  readonly #ended = new Map<string, EdaError>();
  #leftOut: [number, EdaError][] = [];
  #from = 0;

  constructor(subjects: Subjects, size: number) {
    this.#subjects = subjects;
    this.#size = size;
  }

  get left(): number {
    return this.#subjects.length - this.#from;
  }

  next(): readonly number[] {
    const found: number[] = [];
    for (; this.left > 0 && found.length < this.#size; this.#from++) {
      const subject = this.#subjects[this.#from];
      const first = subject === undefined ? undefined : this.#ended.get(subject);
      if (first === undefined) found.push(this.#from);
      else this.#leftOut.push([this.#from, first]);
    }
    return found;
  }

  fail(at: number, error: EdaError): void {
    const subject = this.#subjects[at];
    if (subject !== undefined && !this.#ended.has(subject)) this.#ended.set(subject, error);
  }

  leftOut(): readonly (readonly [number, EdaError])[] {
    const found = this.#leftOut;
    this.#leftOut = [];
    return found;
  }
}

/** One message a subject at a time, at most `size` together, for a transport that cannot end a subject by itself. */
export class PacedPlan implements SendPlan {
  readonly #subjects: Subjects;
  readonly #size: number;
  /** Of each subject what was not handed out, last first. */
  readonly #waiting = new Map<string, number[]>();
  /** What may go now, in the order of the call. */
  #ready: number[] = [];
  #sent: readonly number[] = [];
  #leftOut: [number, EdaError][] = [];
  #left: number;

  constructor(subjects: Subjects, size: number) {
    this.#subjects = subjects;
    this.#size = size;
    this.#left = subjects.length;
    subjects.forEach((subject, at) => {
      const waiting = subject === undefined ? undefined : this.#waiting.get(subject);
      if (waiting !== undefined) return void waiting.push(at);
      this.#ready.push(at);
      if (subject !== undefined) this.#waiting.set(subject, []);
    });
    for (const waiting of this.#waiting.values()) waiting.reverse();
  }

  get left(): number {
    return this.#left;
  }

  next(): readonly number[] {
    for (const at of this.#sent) {
      const subject = this.#subjects[at];
      const follows = subject === undefined ? undefined : this.#waiting.get(subject)?.pop();
      if (follows !== undefined) this.#ready.push(follows);
    }
    this.#sent = this.#ready.slice(0, this.#size);
    this.#ready = this.#ready.slice(this.#size);
    this.#left -= this.#sent.length;
    return this.#sent;
  }

  fail(at: number, error: EdaError): void {
    const subject = this.#subjects[at];
    if (subject === undefined) return;
    const waiting = this.#waiting.get(subject)!.splice(0);
    this.#left -= waiting.length;
    for (const later of waiting.reverse()) this.#leftOut.push([later, error]);
  }

  leftOut(): readonly (readonly [number, EdaError])[] {
    const found = this.#leftOut;
    this.#leftOut = [];
    return found;
  }
}
