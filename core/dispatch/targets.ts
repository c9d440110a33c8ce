/**
 * Handlers and routes as the engine calls them.
 *
 * @module
 */
import type { Target } from "./attempt.ts";
import type { Handler, Middleware } from "./context.ts";
import { compose, type Invoke } from "./middleware.ts";
import { isRoute, type Route } from "./route.ts";
import type { UnitContext } from "./unit_context.ts";

/** Puts the middleware around each handler or route, once. */
export function makeTargets(
  routes: Readonly<Record<string, Handler | Route>>,
  use: readonly Middleware[],
): Record<string, Target> {
  const targets: Record<string, Target> = Object.create(null);
  const known = new Map<Handler | Route, Target>();
  for (const [key, entry] of Object.entries(routes)) {
    let target = known.get(entry);
    if (target === undefined) known.set(entry, target = makeTarget(entry, use));
    targets[key] = target;
  }
  return targets;
}

function makeTarget(entry: Handler | Route, use: readonly Middleware[]): Target {
  const handler: Invoke<UnitContext, unknown> = isRoute(entry)
    ? (envelope, context) => entry.handle(envelope, context)
    : entry;
  const invoke = compose(use as readonly Middleware<UnitContext>[], handler, undefined);
  if (!isRoute(entry)) return { invoke, plain: true };
  return {
    invoke,
    plain: false,
    snapshotKey: (envelope) => entry.snapshotKey(envelope),
    ownsTimer: (owner) => entry.ownsTimer(owner),
  };
}
