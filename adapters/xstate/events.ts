/**
 * Envelopes to machine events, and emitted events to outbox rows.
 *
 * @module
 */
import type { Envelope, EnvelopeInit } from "../../core/envelope.ts";
import { EventRejectedError, InvalidOptionError } from "../../core/errors.ts";

/** An event as machines take it. */
export interface MachineEvent {
  readonly type: string;
  readonly [member: string]: unknown;
}

/** The default: the envelope's type as it is, its data, and the envelope itself. */
export function asEvent(envelope: Envelope): MachineEvent {
  return { type: envelope.type, data: envelope.data, envelope };
}

/**
 * For types of the form `xsm.<machine>.<EVENT>`: `<EVENT>` becomes the type (dots in it stay), and the members of `data` the
 * event's own. Other types stay as they are. Give it as `toEvent`.
 *
 * @throws EventRejectedError (`invalid`) where `data` is neither an object nor absent.
 */
export function byEventName(envelope: Envelope): MachineEvent {
  const data: unknown = envelope.data ?? {};
  if (typeof data !== "object" || Array.isArray(data) || data instanceof Uint8Array) {
    throw new EventRejectedError("invalid", "data must be an object, because its members become those of the event");
  }
  return { ...data, type: eventName(envelope.type) };
}

function eventName(type: string): string {
  const match = /^xsm\.[^.]*\.([^]+)$/.exec(type);
  return match?.[1] ?? type;
}

/**
 * What a machine emits, as an event to publish: `type`, `topic` (else the route's), `subject` (else the instance's), and
 * `data`, or where there is no member `data`, all other members as an object.
 */
export function fromEmitted(
  emitted: MachineEvent,
  topic: string | undefined,
  subject: string,
): { readonly topic: string; readonly init: EnvelopeInit } {
  const { type, topic: ownTopic, subject: ownSubject, ...rest } = emitted;
  const to = typeof ownTopic === "string" ? ownTopic : topic;
  if (to === undefined) {
    throw new InvalidOptionError("an emitted event names no topic; give it one, or the route: machine(m, { topic })");
  }
  const data = "data" in rest ? rest["data"] : Object.keys(rest).length > 0 ? rest : undefined;
  return {
    topic: to,
    init: {
      type,
      subject: typeof ownSubject === "string" ? ownSubject : subject,
      ...(data === undefined ? {} : { data }),
    },
  };
}
