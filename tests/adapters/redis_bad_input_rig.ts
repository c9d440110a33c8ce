/**
 * What the tests of bad input share: the secret that must never show, and how an error is searched for it.
 *
 * @module
 */
import assert from "node:assert/strict";
import { inspect } from "node:util";
import { type EdaError, type ErrorCode, isEdaError } from "../../core/errors.ts";

/** Stands for every password, host and value that must not be shown. */
export const SECRET = "hunter2";

/** Everything that any printed form of an error shows, its causes included. */
export function fullText(error: unknown, depth = 0): string {
  if (depth > 20 || error === undefined) return "";
  const own = error as EdaError & { toJSON?: unknown };
  const parts = [String(error), inspect(error, { depth: 20, showHidden: true })];
  if (error instanceof Error) parts.push(String(own.stack), JSON.stringify(error), JSON.stringify(own.details ?? {}));
  return parts.join("\n") + fullText(own?.cause, depth + 1);
}

/** An error of ours with this code, whose text says what to look at, and nowhere shows a value. */
export function assertTyped(error: unknown, code: ErrorCode, says: RegExp): asserts error is EdaError {
  assert.ok(isEdaError(error), `not one of ours: ${String(error)}`);
  assert.equal(error.code, code, error.message);
  assert.match(error.message, says);
  assert.ok(!fullText(error).includes(SECRET), `a value is shown: ${fullText(error)}`);
}
