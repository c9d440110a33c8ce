/**
 * The kinds of server that the bed knows. A further one is one more file and one more line here.
 *
 * @module
 */
import type { ServerKind } from "./kind.ts";
import { redis, redis8, valkey } from "./redis_kind.ts";

/** All kinds, in the order in which they are started. */
export const kinds: readonly ServerKind[] = [redis, redis8, valkey];

/** The kind called `name`. */
export function kindOf(name: string): ServerKind {
  const kind = kinds.find((kind) => kind.name === name);
  if (kind === undefined) {
    throw new TypeError(`The bed knows no server "${name}": use ${kinds.map((k) => k.name).join(", ")}`);
  }
  return kind;
}
