/**
 * The queue of one subject.
 *
 * @module
 */
import type { Timer } from "../clock.ts";
import { Fifo } from "../fifo.ts";
import type { Job } from "./job.ts";

/**
 * `ready` = stands in line for a slot · `running` = has one · `waiting` = for a moment to try again · `closed` = empty and
 * forgotten.
 */
export type LaneState = "ready" | "running" | "waiting" | "closed";

/** Where lanes are found by key. */
export type LaneMap = Map<string, Lane>;

/** The jobs of one (topic, subject), one at a time, in order. */
export class Lane {
  home: LaneMap;
  key: string;
  state: LaneState = "ready";
  /** Whether {@link home} holds it; a job that ends at once never gets there. */
  listed = false;
  /** The job whose turn it is, kept through its retries. */
  current: Job | undefined;
  timer: Timer | undefined;
  /** Waits because the store is down: goes on as soon as it is back. */
  forStore = false;
  #queue: Fifo<Job> | undefined;
  /** Jobs that wait for the event that creates their instance, in order; later ones go first. */
  #missing: Job[] | undefined;
  /** Something was handled since, so those that wait may try again. */
  #revisit = false;

  constructor(home: LaneMap, key: string, first: Job) {
    this.home = home;
    this.key = key;
    this.current = first;
  }

  /** Makes a lane that closed unlisted, and so is known to nobody, ready for another first job. */
  reuse(home: LaneMap, key: string, first: Job): void {
    this.home = home;
    this.key = key;
    this.state = "ready";
    this.current = first;
  }

  /** Jobs here, the current one included. */
  get size(): number {
    return (this.current === undefined ? 0 : 1) + (this.#missing?.length ?? 0) + (this.#queue?.length ?? 0);
  }

  push(job: Job): void {
    (this.#queue ??= new Fifo()).push(job);
  }

  /** Sets the current job behind those that come, because the event that creates its instance may be among them. */
  setAside(job: Job): void {
    this.current = undefined;
    this.#revisit = false;
    const missing = this.#missing ??= [];
    const at = missing.findIndex((other) => other.seq > job.seq);
    missing.splice(at < 0 ? missing.length : at, 0, job);
  }

  /** Makes the next job the current one, if there is one whose turn it is; the first one set aside only when it is due. */
  advance(now: number): boolean {
    const waiting = this.#missing?.[0];
    if (waiting !== undefined && (this.#revisit || waiting.dueAt <= now)) this.current = this.#missing?.shift();
    else this.current = this.#queue?.shift();
    return this.current !== undefined;
  }

  /** A job of this lane was handled: those set aside may find their instance now. */
  handled(): void {
    this.#revisit = this.#missing !== undefined && this.#missing.length > 0;
  }

  /** When the first job set aside may try again by itself, monotonic ms. */
  get nextDueAt(): number | undefined {
    return this.#missing?.[0]?.dueAt;
  }

  /** Takes out all jobs, in the order they arrived. */
  clear(): Job[] {
    const jobs = [
      ...(this.current === undefined ? [] : [this.current]),
      ...(this.#missing ?? []),
      ...(this.#queue ?? []),
    ];
    this.current = undefined;
    this.#missing = undefined;
    this.#queue = undefined;
    return jobs.sort((a, b) => a.seq - b.seq);
  }

  /** The jobs that wait behind the current one. */
  *waiting(): Iterable<Job> {
    if (this.#missing !== undefined) yield* this.#missing;
    if (this.#queue !== undefined) yield* this.#queue;
  }

  /** Forgets waiting jobs that the broker took away, if there are many; answers them. */
  sweep(): readonly Job[] {
    const queue = this.#queue;
    return queue === undefined ? [] : queue.filter((job) => !job.lost);
  }
}
