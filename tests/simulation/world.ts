/**
 * Virtual time, and the order in which things happen in it: one event at a time, chosen by the dice among those that are due.
 *
 * @module
 */
import { setImmediate } from "node:timers";
import type { Clock, Timer } from "../../core/clock.ts";
import type { Dice } from "./dice.ts";

/** All times are multiples of this, so that sums are exact. */
const GRAIN_MS = 2 ** -20;

/** What happens in the order in which it was scheduled, such as the messages of one connection. */
export class Lane {
  readonly queue: (() => void)[] = [];
  /** When the last one is due. */
  last = 0;
}

/** Something that is going to happen. */
export interface Job {
  at: number;
  tie: number;
  readonly order: number;
  readonly actor: Actor | undefined;
  run: (() => void) | undefined;
}

/** What can stand still while everything else goes on: a thread. */
export class Actor {
  readonly name: string;
  frozen = false;
  /** Time that its monotonic clock missed, as on a suspended machine. */
  missedMs = 0;
  /** What came due meanwhile. */
  readonly parked: Job[] = [];
  dead = false;

  constructor(name: string) {
    this.name = name;
  }
}

/** Why {@link World.run} ended: the condition came true, nothing was left to do, time was up, or it went round in circles. */
export type Ending = "done" | "idle" | "late" | "circles";

/** More events than this in one run get nowhere. */
export const MOST_STEPS = 30_000;

/** Orders by time, then by the dice. */
function before(a: Job, b: Job): boolean {
  return a.at !== b.at ? a.at < b.at : a.tie !== b.tie ? a.tie < b.tie : a.order < b.order;
}

/** The queue of everything that is going to happen. */
export class World {
  /** Milliseconds. */
  now = 0;
  /** Events that happened. */
  steps = 0;
  /** Where a run that is looked at closely writes what happens. */
  trace: ((line: string) => void) | undefined;
  readonly #dice: Dice;
  readonly #heap: Job[] = [];
  #order = 0;

  constructor(dice: Dice) {
    this.#dice = dice;
  }

  /** `run` happens after `delayMs`, on `actor`'s thread if one is given. */
  schedule(delayMs: number, actor: Actor | undefined, run: () => void): Job {
    const at = this.now + Math.ceil(Math.max(0, delayMs) / GRAIN_MS) * GRAIN_MS;
    const job: Job = { at, tie: this.#dice.next(), order: this.#order++, actor, run };
    this.#push(job);
    return job;
  }

  /** The same, behind everything that the lane was given before. */
  enqueue(lane: Lane, delayMs: number, actor: Actor | undefined, run: () => void): void {
    lane.queue.push(run);
    lane.last = Math.max(lane.last, this.now + delayMs);
    this.schedule(lane.last - this.now, actor, () => lane.queue.shift()!());
  }

  #push(job: Job): void {
    const heap = this.#heap;
    let at = heap.push(job) - 1;
    while (at > 0) {
      const up = (at - 1) >> 1;
      if (!before(job, heap[up]!)) break;
      heap[at] = heap[up]!;
      at = up;
    }
    heap[at] = job;
  }

  #pop(): Job | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === first) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++;
      if (!before(heap[child]!, last!)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last!;
    return first;
  }

  /** Writes what happens, where somebody looks. */
  note(what: () => string): void {
    this.trace?.(`${String(Math.round(this.now)).padStart(6)} ${what()}`);
  }

  /** Lets an actor stand still. */
  freeze(actor: Actor): void {
    this.note(() => `${actor.name} stands still`);
    actor.frozen = true;
  }

  /** Lets it go on: what came due meanwhile happens now, in any order that lanes allow. */
  thaw(actor: Actor): void {
    this.note(() => `${actor.name} goes on`);
    actor.frozen = false;
    for (const job of actor.parked.splice(0)) {
      job.at = this.now;
      job.tie = this.#dice.next();
      this.#push(job);
    }
  }

  /** Lets happen what happens until `done`, nothing is left, or `limitMs` have passed. */
  async run(done: () => boolean, limitMs: number): Promise<Ending> {
    const end = this.now + limitMs;
    for (;;) {
      if (done()) return "done";
      if (this.steps > MOST_STEPS) return "circles";
      const job = this.#pop();
      if (job === undefined) return "idle";
      const { run, actor } = job;
      if (run === undefined || actor?.dead === true) continue;
      if (job.at > end) {
        this.#push(job);
        this.now = end;
        return "late";
      }
      this.now = Math.max(this.now, job.at);
      if (actor?.frozen === true) {
        actor.parked.push(job);
        continue;
      }
      job.run = undefined;
      this.steps++;
      run();
      // What follows in microtasks belongs to the same turn of the event loop.
      await new Promise<void>((resolve) => void setImmediate(resolve));
    }
  }
}

/** The clock of one thread in the world. */
export class ActorClock implements Clock {
  /** Broken on purpose: timers cannot be stopped. */
  readonly #leaky: boolean;
  readonly #world: World;
  readonly #actor: Actor;
  readonly #dice: Dice;
  readonly #turns = new Lane();
  readonly #armed = new Set<Job>();

  constructor(world: World, actor: Actor, dice: Dice, leaky: boolean = false) {
    this.#world = world;
    this.#leaky = leaky;
    this.#actor = actor;
    this.#dice = dice;
  }

  /** Timers that are armed. */
  get armed(): number {
    return this.#armed.size;
  }

  now(): number {
    return Date.UTC(2030, 0, 1) + this.#world.now;
  }

  monotonic(): number {
    return this.#world.now - this.#actor.missedMs;
  }

  random(): number {
    return this.#dice.next();
  }

  timer(delayMs: number, run: () => void): Timer {
    const due = this.monotonic() + Math.max(0, delayMs);
    const armed: { job?: Job } = {};
    const arm = (ms: number): void => {
      const job = armed.job = this.#world.schedule(ms, this.#actor, () => {
        this.#armed.delete(job);
        // A clock that stood still is not there yet.
        const left = due - this.monotonic();
        if (left > 0) arm(left);
        else run();
      });
      this.#armed.add(job);
    };
    arm(due - this.monotonic());
    return {
      cancel: () => {
        if (this.#leaky) return;
        armed.job!.run = undefined;
        this.#armed.delete(armed.job!);
      },
    };
  }

  turn(run: () => void): void {
    this.#world.enqueue(this.#turns, 0, this.#actor, run);
  }
}
