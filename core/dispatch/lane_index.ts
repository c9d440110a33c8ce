/**
 * Finds lanes by topic and subject.
 *
 * @module
 */
import type { Job } from "./job.ts";
import type { Lane, LaneMap } from "./lane.ts";

interface TopicLanes {
  readonly bySubject: LaneMap;
  /** Lanes of events without a subject, one an event. */
  readonly byEvent: LaneMap;
}

/** Lanes by topic, then by subject or event. */
export class LaneIndex implements Iterable<Lane> {
  readonly #topics = new Map<string, TopicLanes>();

  /** Where the lane of a job is listed. */
  homeOf(job: Job): LaneMap {
    let topic = this.#topics.get(job.topic);
    if (topic === undefined) this.#topics.set(job.topic, topic = { bySubject: new Map(), byEvent: new Map() });
    return job.envelope.subject === undefined ? topic.byEvent : topic.bySubject;
  }

  /** Under which key. An event without a subject has no order, but its own redelivery must not run beside it. */
  keyOf(job: Job): string {
    const { subject, source, id } = job.envelope;
    return subject ?? `${source.length}:${source}${id}`;
  }

  *[Symbol.iterator](): Iterator<Lane> {
    for (const { bySubject, byEvent } of this.#topics.values()) {
      yield* bySubject.values();
      yield* byEvent.values();
    }
  }

  /** How many lanes there are, and when the oldest waiting job arrived (monotonic ms). */
  stats(): { readonly lanes: number; readonly oldest: number | undefined } {
    let lanes = 0;
    let oldest: number | undefined;
    for (const lane of this) {
      lanes++;
      const jobs = lane.state === "running" ? lane.waiting() : [lane.current, ...lane.waiting()];
      for (const job of jobs) {
        if (job !== undefined && (oldest === undefined || job.arrivedAt < oldest)) oldest = job.arrivedAt;
      }
    }
    return { lanes, oldest };
  }
}
