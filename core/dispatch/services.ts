/**
 * What all parts of one dispatcher share.
 *
 * @module
 */
import type { Circuit } from "../circuit.ts";
import type { Clock } from "../clock.ts";
import { createEnvelope, decodeEnvelope, type EnvelopeDefaults, textOf, withCause } from "../codec.ts";
import type { Envelope, EnvelopeInit } from "../envelope.ts";
import type { Logger } from "../logger.ts";
import { validateIncoming } from "../schema.ts";
import type { Store } from "../store/contract.ts";
import type { Topics } from "../topics.ts";
import type { Deadlines } from "./deadlines.ts";

/** Shared parts and settings. */
export interface Services {
  readonly clock: Clock;
  readonly log: Logger;
  readonly store: Store<unknown>;
  readonly circuit: Circuit;
  readonly deadlines: Deadlines;
  readonly consumer: string;
  /** The broker's; their schemas check what is published and what is read anew. */
  readonly topics: Topics;
  /** Fills in what a handler leaves out of an event. */
  readonly defaults: EnvelopeDefaults;
  readonly nextId: () => string;
  readonly maxBytes: number;
  readonly inboxRetentionMs: number;
  readonly handlerTimeoutMs: number;
  readonly keepBodies: boolean;
  /** A unit sets a timer for this moment, wall clock ms. */
  timerSet(dueAt: number): void;
}

/** Builds an event caused by `cause`. */
export function buildEvent(services: Services, init: EnvelopeInit, cause: Envelope): Envelope {
  return createEnvelope(withCause(init, cause), services.defaults, services.maxBytes);
}

/**
 * The same envelope, read anew from its text, so that no attempt sees what another did to its data. A promise where the
 * topic's schema is asynchronous.
 */
export function readAnew(services: Services, topic: string, envelope: Envelope): Envelope | Promise<Envelope> {
  // What was let in once is not refused for its size now.
  const fresh = decodeEnvelope(textOf(envelope), { maxBytes: Number.MAX_SAFE_INTEGER });
  return validateIncoming(services.topics, topic, fresh);
}
