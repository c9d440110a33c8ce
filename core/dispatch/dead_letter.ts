/**
 * The record of an event that was given up.
 *
 * @module
 */
import { textOf } from "../codec.ts";
import { encodeBase64 } from "../codec_base64.ts";
import type { UndecodableRecord } from "../contract.ts";
import type { Envelope } from "../envelope.ts";
import { redact, redactText } from "../redact.ts";
import type { DeadLetter, DeadLetterReason, FailureCount } from "../store/contract.ts";
import type { Job } from "./job.ts";
import type { Services } from "./services.ts";

/** How much of an error's text is kept. */
const MESSAGE_CHARS = 1_000;
/** How many causes are followed. */
const CAUSES = 20;

type ErrorView = DeadLetter["errors"][number];

/** Describes an error and its causes, whatever was thrown, with secrets masked. Never throws. */
export function describeErrors(error: unknown): readonly ErrorView[] {
  const views: ErrorView[] = [];
  const seen = new Set<unknown>();
  for (let next: unknown = error; views.length < CAUSES && !seen.has(next); next = peek(next, "cause")) {
    if (views.length > 0 && next === undefined) break;
    seen.add(next);
    views.push(describe(next));
  }
  return views;
}

function describe(error: unknown): ErrorView {
  const name = peek(error, "name");
  const code = peek(error, "code");
  const isObject = typeof error === "object" && error !== null;
  return {
    name: typeof name === "string" ? name.slice(0, 100) : error === null ? "null" : typeof error,
    ...(typeof code === "string" || typeof code === "number" ? { code: String(code).slice(0, 100) } : {}),
    message: redactText(textFrom(isObject ? peek(error, "message") : error)).slice(0, MESSAGE_CHARS),
  };
}

/** Reads a member; a getter that throws, or a value without members, gives none. */
function peek(value: unknown, member: string): unknown {
  try {
    return (value as Record<string, unknown> | null | undefined)?.[member];
  } catch {
    return undefined;
  }
}

function textFrom(value: unknown): string {
  if (value === undefined) return "";
  try {
    return String(value);
  } catch {
    return "";
  }
}

/** The masked view of an envelope; the attributes alone where its data cannot be masked. Never throws. */
function maskedView(envelope: Envelope): string {
  try {
    return JSON.stringify(redact(JSON.parse(textOf(envelope))));
  } catch (error) {
    const { id, source, type, subject } = envelope;
    return JSON.stringify({ id, source, type, subject, _unrecorded: describe(error).name });
  }
}

/** The record of a job; replaying one keeps its id. */
export function makeDeadLetter(
  services: Services,
  job: Job,
  reason: DeadLetterReason,
  error: unknown,
  count: FailureCount | undefined,
): DeadLetter {
  const { envelope } = job;
  const before = job.origin.replays;
  const now = services.clock.now();
  return {
    id: before?.id ?? services.nextId(),
    reason,
    consumer: services.consumer,
    topic: job.topic,
    firstFailedAt: before?.firstFailedAt ?? count?.firstFailedAt ?? now,
    lastFailedAt: now,
    failures: (before?.failures ?? 0) + Math.max(1, count?.failures ?? 1),
    errors: describeErrors(error),
    source: envelope.source,
    eventId: envelope.id,
    type: envelope.type,
    ...(envelope.subject === undefined ? {} : { subject: envelope.subject }),
    redacted: maskedView(envelope),
    ...(services.keepBodies ? { body: textOf(envelope) } : {}),
    replays: before === undefined ? 0 : before.replays + 1,
  };
}

/** The record of a message that is no envelope. */
export function corruptLetter(services: Services, record: UndecodableRecord): DeadLetter {
  const now = services.clock.now();
  return {
    id: services.nextId(),
    reason: "corrupt",
    consumer: services.consumer,
    topic: record.topic,
    firstFailedAt: now,
    lastFailedAt: now,
    failures: record.attempt + 1,
    errors: describeErrors(record.error),
    redacted: JSON.stringify({ bytes: record.bytes, sha256: record.sha256 }),
    bytes: record.bytes,
    sha256: record.sha256,
    ...(record.body === undefined ? {} : { bodyBase64: encodeBase64(record.body) }),
    replays: 0,
  };
}
