/**
 * Who may run: one job at a time of each (topic, subject), `maxInFlight` of them at once, the longest ready first.
 *
 * @module
 */
import type { Clock } from "../clock.ts";
import { Fifo } from "../fifo.ts";
import type { Budget } from "./budget.ts";
import type { Job } from "./job.ts";
import { Lane } from "./lane.ts";
import { LaneIndex } from "./lane_index.ts";

/** What the lanes need of their surroundings. */
export interface LanesHost {
  readonly clock: Clock;
  readonly budget: Budget;
  readonly maxInFlight: number;
  /** Whether the store is thought to be up. Asked once a start. */
  mayStart(): boolean;
  /** Runs one attempt; ends it with {@link Lanes.done}, {@link Lanes.wait} or {@link Lanes.setAside}, at once or later. */
  start(lane: Lane, job: Job): void;
  /** A waiting job was found lost and forgotten. */
  lost(job: Job): void;
}

/** A queue longer than this is looked through for lost jobs before it grows to twice its size. */
const SWEEP_FROM = 256;

/** All lanes. */
export class Lanes {
  readonly #host: LanesHost;
  readonly #index = new LaneIndex();
  readonly #ready = new Fifo<Lane>();
  readonly #whenEmpty: (() => void)[] = [];
  readonly #whenQuiet: (() => void)[] = [];
  /** A lane whose only job ended at once: with handlers that answer at once, one lane serves all. */
  #spare: Lane | undefined;
  #free: number;
  #jobs = 0;
  #draining = false;
  #turning = false;

  constructor(host: LanesHost) {
    this.#host = host;
    this.#free = host.maxInFlight;
  }

  /** Jobs that have not ended. */
  get jobs(): number {
    return this.#jobs;
  }

  /** Jobs that run. */
  get running(): number {
    return this.#host.maxInFlight - this.#free;
  }

  /** Adds a job; it may run and end before this returns. */
  offer(job: Job): void {
    this.#jobs++;
    const home = this.#index.homeOf(job);
    const key = this.#index.keyOf(job);
    const known = home.size === 0 ? undefined : home.get(key);
    if (known !== undefined) return this.#join(known, job);
    let lane = this.#spare;
    if (lane === undefined) lane = new Lane(home, key, job);
    else lane.reuse(home, key, job);
    this.#spare = undefined;
    if (this.#free > 0 && this.#ready.length === 0 && !this.#draining && !this.#turning && this.#host.mayStart()) {
      this.#draining = true;
      this.#run(lane, job);
      this.#draining = false;
      if (lane.state !== "closed") this.#list(lane);
      else this.#spare = lane;
      if (this.#ready.length > 0) this.drain();
    } else {
      this.#list(lane);
      this.#ready.push(lane);
    }
  }

  /** The job ended. `handled` = its unit is stored, so that jobs set aside may find their instance. */
  done(lane: Lane, handled: boolean): void {
    this.#jobs--;
    this.#leave(lane);
    lane.current = undefined;
    if (handled) lane.handled();
    this.#next(lane);
    this.#announce();
  }

  /** The job is tried again after `ms`; `forStore` = sooner if the store is back. */
  wait(lane: Lane, ms: number, forStore: boolean): void {
    this.#leave(lane);
    lane.state = "waiting";
    lane.forStore = forStore;
    if (lane.current !== undefined) lane.current.dueAt = this.#host.clock.monotonic() + ms;
    lane.timer = this.#host.clock.timer(ms, () => this.#wake(lane));
    this.drain();
    this.#announce();
  }

  /** The job is tried again after `ms`, or as soon as another of its lane was handled; later ones go first. */
  setAside(lane: Lane, job: Job, ms: number): void {
    this.#leave(lane);
    job.dueAt = this.#host.clock.monotonic() + ms;
    lane.setAside(job);
    this.#next(lane);
    this.#announce();
  }

  /** The store is back: lanes that waited for it go on. */
  storeIsBack(): void {
    for (const lane of this.#index) if (lane.state === "waiting" && lane.forStore) this.#wake(lane);
    this.drain();
  }

  /** Starts what may start. */
  drain(): void {
    if (this.#draining || this.#turning) return;
    this.#draining = true;
    while (this.#free > 0 && this.#ready.length > 0) {
      if (this.#host.budget.spent()) {
        this.#turning = true;
        this.#host.budget.turn(() => {
          this.#turning = false;
          this.drain();
        });
        break;
      }
      const lane = this.#ready.peek()!;
      // A lane that was emptied meanwhile stands here no more.
      if (lane.state === "ready" && !this.#host.mayStart()) break;
      this.#ready.shift();
      if (lane.state === "ready" && lane.current !== undefined) this.#run(lane, lane.current);
    }
    this.#draining = false;
  }

  /** Resolves when no job is left. */
  empty(): Promise<void> {
    if (this.#jobs === 0) return Promise.resolve();
    return new Promise((resolve) => void this.#whenEmpty.push(resolve));
  }

  /** Resolves when nothing runs and nothing is ready: what is left waits for a moment to try again, or for the store. */
  quiet(): Promise<void> {
    if (this.#isQuiet()) return Promise.resolve();
    return new Promise((resolve) => void this.#whenQuiet.push(resolve));
  }

  /** Milliseconds until something can happen by itself; 0 = something runs or is ready, `Infinity` = no job is left. */
  nextIn(): number {
    let next = Infinity;
    const now = this.#host.clock.monotonic();
    for (const lane of this.#index) {
      if (lane.state !== "waiting") return 0;
      const due = lane.current?.dueAt ?? lane.nextDueAt ?? now;
      next = Math.min(next, Math.max(0, due - now));
    }
    return next;
  }

  /** Takes out every job that came from a broker, in the order of arrival; what runs goes on without a lane. */
  clear(): Job[] {
    const jobs: Job[] = [];
    for (const lane of [...this.#index]) {
      lane.timer?.cancel();
      if (lane.state === "running") this.#free++;
      lane.state = "closed";
      lane.home.delete(lane.key);
      jobs.push(...lane.clear());
    }
    this.#jobs -= jobs.length;
    this.#announce();
    return jobs.sort((a, b) => a.seq - b.seq);
  }

  /** Lanes, waiting jobs and when the oldest of them arrived (monotonic ms). */
  stats(): { readonly lanes: number; readonly waiting: number; readonly oldest: number | undefined } {
    const { lanes, oldest } = this.#index.stats();
    return { lanes, waiting: this.#jobs - this.running, oldest };
  }

  #isQuiet(): boolean {
    return this.running === 0 && (this.#ready.length === 0 || this.#jobs === 0);
  }

  #announce(): void {
    if (this.#jobs === 0 && this.#whenEmpty.length > 0) { for (const tell of this.#whenEmpty.splice(0)) tell(); }
    if (this.#whenQuiet.length > 0 && this.#isQuiet()) { for (const tell of this.#whenQuiet.splice(0)) tell(); }
  }

  #list(lane: Lane): void {
    lane.listed = true;
    lane.home.set(lane.key, lane);
  }

  #join(lane: Lane, job: Job): void {
    lane.push(job);
    if (lane.size >= SWEEP_FROM && (lane.size & (lane.size - 1)) === 0) this.#sweep(lane);
    if (lane.state !== "waiting") return;
    // A lane without a current job waits for its instance; this one may create it.
    if (lane.current === undefined) this.#next(lane);
    // What was lost while it waited to be tried again need not be waited for; this may be its redelivery.
    else if (lane.current.lost) this.#wake(lane);
  }

  #sweep(lane: Lane): void {
    for (const job of lane.sweep()) {
      this.#jobs--;
      this.#host.lost(job);
    }
  }

  #run(lane: Lane, job: Job): void {
    this.#free--;
    lane.state = "running";
    this.#host.start(lane, job);
  }

  /** Gives the slot back. */
  #leave(lane: Lane): void {
    this.#free++;
    lane.state = "waiting";
  }

  #wake(lane: Lane): void {
    lane.timer?.cancel();
    lane.timer = undefined;
    lane.forStore = false;
    if (lane.current === undefined) return this.#next(lane);
    lane.state = "ready";
    this.#ready.push(lane);
    this.drain();
  }

  /** The lane has no current job: takes the next one, waits for it, or closes. */
  #next(lane: Lane): void {
    lane.timer?.cancel();
    lane.timer = undefined;
    if (lane.size > 0) {
      const now = this.#host.clock.monotonic();
      if (lane.advance(now)) {
        lane.state = "ready";
        this.#ready.push(lane);
      } else {
        lane.state = "waiting";
        lane.timer = this.#host.clock.timer((lane.nextDueAt ?? now) - now, () => this.#wake(lane));
      }
    } else {
      lane.state = "closed";
      if (lane.listed) lane.home.delete(lane.key);
    }
    this.drain();
  }
}
