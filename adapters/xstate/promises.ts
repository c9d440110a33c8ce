/**
 * Which of a machine's actors still have a promise to wait for.
 *
 * @module
 */
import { childrenOf, type TreeActor } from "./delays.ts";

/** The slice of actor logic that tells its kind. */
interface LogicLike {
  readonly config?: unknown;
  readonly start?: unknown;
  transition?(state: unknown, event: unknown, scope: unknown): unknown;
}

const known = new WeakMap<object, boolean>();

/**
 * Whether a logic is one of `fromPromise`. XState marks it nowhere, so it is asked what it makes of the event that ends
 * promises. Only logics that start something are asked: callbacks and observables do not know that event, and reducers
 * (`fromTransition`), which would have to answer it, start nothing.
 */
function isPromiseLogic(logic: unknown): boolean {
  if (typeof logic !== "object" || logic === null) return false;
  let answer = known.get(logic);
  if (answer === undefined) known.set(logic, answer = ask(logic));
  return answer;
}

function ask(logic: LogicLike): boolean {
  if (typeof logic.config !== "function" || typeof logic.start !== "function") return false;
  const token = {};
  try {
    const state = { status: "active", output: undefined, error: undefined, input: undefined };
    const next = logic.transition?.(state, { type: "xstate.promise.resolve", data: token }, { self: {} });
    return (next as { readonly output?: unknown } | undefined)?.output === token;
  } catch {
    return false;
  }
}

/** Actors below `actor` whose promise is pending, at any depth. */
export function pendingPromises(actor: TreeActor): readonly TreeActor[] {
  const pending: TreeActor[] = [];
  for (const child of Object.values(childrenOf(actor))) {
    const snapshot = child.getSnapshot() as { readonly status?: string } | undefined;
    if (snapshot?.status !== "active") continue;
    if (isPromiseLogic((child as { readonly logic?: unknown }).logic)) pending.push(child);
    else pending.push(...pendingPromises(child));
  }
  return pending;
}
