/**
 * What a handler is given besides the envelope, and the types that make `routes` typed.
 *
 * @module
 */
import type { Envelope } from "../envelope.ts";
import type { Logger } from "../logger.ts";
import type { AnyTopics, EnvelopeOf, InitOf, TopicName, Topics } from "../topics.ts";
import type { Route } from "./route.ts";

/**
 * The unit that a handler works in. What it asks for here is stored together with the proof that the event was handled, or
 * not at all. It ends with the handler: later calls throw.
 */
export interface Context<T extends Topics = AnyTopics, Tx = unknown> {
  /** Aborts when the time is up, the delivery is lost, or the run ends and does not wait any longer. */
  readonly signal: AbortSignal;
  /** Attempts before this one as far as known; 0 on the first. A hint, never a verdict. */
  readonly attempt: number;
  /** Where the envelope came from. */
  readonly topic: string;
  /** The store's open transaction where it works in transaction mode, else undefined. */
  readonly tx: Tx;
  readonly log: Logger;
  /**
   * Writes an event into the unit's outbox, with this event as its cause. It is published once the unit is stored. The
   * unit may run again after a conflict; then this is a new event with a new id, and the old one never existed.
   *
   * @returns The envelope as it will be sent.
   */
  publish<N extends TopicName<T>>(topic: N, init: InitOf<T, N>): Envelope;
  /**
   * As {@link publish}, but not before `at`: a Date, or wall clock milliseconds since 1970.
   *
   * @returns The envelope as it will be sent.
   */
  schedule<N extends TopicName<T>>(at: Date | number, topic: N, init: InitOf<T, N>): Envelope;
  /** Reports the event as `ignored`. What the handler asked for is stored all the same. */
  ignore(): void;
}

/**
 * A plain handler. Returning, or resolving, means handled; throwing means try again; an `EventRejectedError` means give up.
 *
 * What it asks for through the context is stored once. Anything else it does may happen again: after a failure, after a
 * conflict with another writer, and where a process ends before its unit is stored.
 */
export type Handler<E extends Envelope = Envelope, C = Context> = (envelope: E, ctx: C) => unknown;

/**
 * Runs around every handler, inside its unit, the first one outermost. Not calling `next` skips the handler, and the event
 * counts as handled.
 */
export type Middleware<C = Context> = (
  envelope: Envelope,
  ctx: C,
  next: () => Promise<void>,
) => void | Promise<void>;

/** The types that a pattern can match, as a template literal type. */
type Glob<P extends string> = P extends `${infer A}*${infer B}` ? `${Glob<A>}${string}${Glob<B>}`
  : P extends `${infer A}?${infer B}` ? `${Glob<A>}${string}${Glob<B>}`
  : P;

/** The envelopes among E that a route key matches; any envelope where E knows none. */
export type Matching<E extends Envelope, K extends string> = [Extract<E, { type: Glob<K> }>] extends [never]
  ? Envelope<K extends Glob<K> ? string extends Glob<K> ? string : K : string>
  : Extract<E, { type: Glob<K> }>;

/** Routes by event type or pattern: a handler whose envelope type follows from the key, or a {@link Route}. */
export type Routes<T extends Topics, R, Tx> = {
  readonly [K in keyof R]: Handler<Matching<EnvelopeOf<T>, K & string>, Context<T, Tx>> | Route;
};
