/**
 * Idempotency keys for what a machine invokes.
 *
 * @module
 */
import { sha256Hex } from "../../core/digest.ts";
import { InvalidOptionError } from "../../core/errors.ts";

/** The slice of an XState actor that keys are made from. */
export interface ActorLike {
  readonly id: string;
  readonly system: object;
  /** XState's own; undefined on the root actor. */
  readonly _parent?: ActorLike | undefined;
}

interface Cause {
  readonly source: string;
  readonly id: string;
}

const causes = new WeakMap<object, Cause>();

/** Remembers which event the actors of a system work on. */
export function setCause(system: object, cause: Cause): void {
  causes.set(system, { source: cause.source, id: cause.id });
}

/** The ids from below the root actor down to this one. */
export function pathOf(actor: ActorLike): readonly string[] {
  const path: string[] = [];
  for (let at = actor; at._parent !== undefined; at = at._parent) path.unshift(at.id);
  return path;
}

/**
 * A key for the effect of an invoked promise, the same each time that the same event makes the same machine invoke it again:
 * SHA-256 of the event's source and id and of the ids of the invoking actors, as 64 hex digits. Give it to what the promise
 * calls (a payment service's `Idempotency-Key`), so that an event which is handled again after a crash has its effect once.
 * An invocation that one event enters several times has one key.
 *
 * @example
 * ```ts ignore
 * fromPromise(({ input, self }) => payments.charge(input, { idempotencyKey: invokeKey(self) }))
 * ```
 * @throws InvalidOptionError outside of a machine that the dispatcher runs.
 */
export function invokeKey(self: ActorLike): string {
  const cause = causes.get(self.system);
  if (cause === undefined) throw new InvalidOptionError("self must be an actor of a machine that the dispatcher runs");
  return sha256Hex(JSON.stringify([cause.source, cause.id, ...pathOf(self)]));
}
