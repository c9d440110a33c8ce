/**
 * What a failed attempt means, and storing it: the dispatcher's own count, and the dead letter.
 *
 * @module
 */
import { fingerprint } from "../digest.ts";
import { type EventRejectedError, isEdaError } from "../errors.ts";
import type { DeadLetterReason } from "../store/contract.ts";
import { makeDeadLetter } from "./dead_letter.ts";
import type { Job, Verdict } from "./job.ts";
import type { Outcome } from "./outcomes.ts";
import type { Services } from "./services.ts";

/** Reasons that a route can give by name in an {@link EventRejectedError}, also across copies of this package. */
const REJECT_REASONS: readonly string[] = ["invalid", "unhandled", "no_instance", "instance_done"];

/**
 * What an error of a handler leads to; `transient` = something it needs is down: not counted, and only its own lane waits. A
 * handler that ran out of time counts, though its error may be tried again: it would hold its subject for ever.
 */
export function judge(error: unknown): Verdict | "transient" {
  if (!isEdaError(error)) return failure(error, "max_attempts");
  if (error.code === "event-rejected") {
    const { reason, retry } = error as EventRejectedError;
    const known: DeadLetterReason = REJECT_REASONS.includes(reason) ? reason : "invalid";
    return retry ? { ...failure(error, known), missing: true } : { ...failure(error, known), kind: "at_once" };
  }
  if (error.code === "snapshot-incompatible") return { ...failure(error, "snapshot_incompatible"), kind: "at_once" };
  if (error.retriable && error.code !== "handler-timeout") return "transient";
  return failure(error, "max_attempts");
}

function failure(error: unknown, reason: DeadLetterReason): Verdict {
  return { error, kind: "failures", reason, missing: false };
}

/** The event was delivered too often without anybody living to count it. */
export function deliveredTooOften(deliveries: number): Verdict {
  const error = new Error(`Delivered ${deliveries} times without an outcome; it may end the process that handles it`);
  return { ...failure(error, "max_attempts"), kind: "at_once" };
}

/** Whether the attempts of a verdict are used up, once its count is stored. */
export async function isFinal(services: Services, job: Job, verdict: Verdict, maxAttempts: number): Promise<boolean> {
  const { failures } = services.store;
  if (verdict.count === undefined) {
    verdict.count = verdict.kind === "failures"
      ? await failures.bump(job.key, services.clock.now())
      : await failures.get(job.key) ?? { failures: 1, firstFailedAt: services.clock.now() };
    job.failures = verdict.count.failures;
  }
  return verdict.kind === "at_once" || job.origin.replays !== undefined || verdict.count.failures >= maxAttempts;
}

/** Stores the dead letter and the receipt in one unit. Rejects where it cannot: then nothing may be acked. */
export async function bury(services: Services, job: Job, verdict: Verdict): Promise<Outcome> {
  const letter = verdict.letter ??= makeDeadLetter(services, job, verdict.reason, verdict.error, verdict.count);
  const { timer } = job.origin;
  const key = timer === undefined ? { receipt: job.key } : { timer: { owner: timer.owner, id: timer.id } };
  return await services.store.transact<Outcome>(key, (unit) => {
    // Another consumer of the group finished it meanwhile; there is nothing to give up.
    if (unit.receipt !== undefined && unit.receipt.deadLetter !== letter.id) return "duplicate";
    if (timer !== undefined && unit.timer === undefined) return "ignored";
    if (timer !== undefined) unit.deleteTimer(timer.owner, timer.id);
    else {
      const at = services.clock.now();
      unit.addReceipt({ ...job.key, fingerprint: fingerprint(job.envelope), at, deadLetter: letter.id });
    }
    unit.addDeadLetter(letter);
    unit.clearFailures(job.key);
    return `dead_lettered:${letter.reason}`;
  });
}
