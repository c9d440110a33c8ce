/**
 * What messages carry at SQS: the message group of a subject, the deduplication id of an event.
 *
 * @module
 */
import { sha256Hex } from "../../core/sha256.ts";

/** What SQS takes as a group or deduplication id. Source: SendMessage, `MessageGroupId`. */
const ID = /^[A-Za-z0-9!-/:-@[-`{-~]{1,128}$/;

/**
 * The message group of a subject: the subject itself, or a hash of one that SQS does not take. An event without a subject has
 * no order, so it has a group of its own.
 */
export function groupOf(subject: string | undefined, event: string): string {
  if (subject === undefined) return event;
  return ID.test(subject) ? subject : sha256Hex(subject);
}

/** The deduplication id of an event: of its source and id, which name it, and of the number of the replay. */
export function dedupOf(source: string, id: string, replay: number | undefined): string {
  const event = sha256Hex(`${source}\0${id}`);
  return replay === undefined || replay === 0 ? event : `${event}-${replay}`;
}
