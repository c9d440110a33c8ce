/**
 * What a caller gives us to call, and what it throws, is not ours: it must not take anything down with it.
 *
 * @module
 */
import type { Logger } from "./logger.ts";

/** The name of whatever was thrown, for the log. Never throws, whatever getters it has. */
export function errorName(thrown: unknown): string {
  try {
    return thrown instanceof Error ? String(thrown.name) : typeof thrown;
  } catch {
    return "unreadable";
  }
}

/** Whether a value is a promise, or anything with a `then` that must be waited for. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (typeof value === "object" || typeof value === "function") && value !== null &&
    typeof (value as { then?: unknown }).then === "function";
}

/** Calls a callback of the caller. What it throws or rejects with is logged under its name; nobody waits for it. */
export function guard(log: Logger, name: string, run: () => unknown): void {
  const failed = (thrown: unknown): void => log.error(`${name} threw`, { error: errorName(thrown) });
  try {
    const result = run();
    if (isThenable(result)) result.then(undefined, failed);
  } catch (thrown) {
    failed(thrown);
  }
}
