/**
 * From the `data` that a caller gives to the literal that travels.
 *
 * @module
 */
import { encodeBase64 } from "./codec_base64.ts";
import type { WireData } from "./codec_envelope.ts";
import { isDeeperThan, MAX_DATA_DEPTH } from "./codec_scan.ts";
import { EnvelopeInvalidError } from "./errors.ts";

function refuse(what: string, cause?: unknown): EnvelopeInvalidError {
  return new EnvelopeInvalidError(`data ${what}`, { details: { attribute: "data" }, cause });
}

function tagOf(value: object): string {
  return Object.prototype.toString.call(value).slice(8, -1);
}

/** What JSON.stringify turns into `{}` without a word. */
const EMPTY_AS_JSON: ReadonlySet<string> = new Set([
  "Blob",
  "Error",
  "File",
  "FormData",
  "Map",
  "Promise",
  "ReadableStream",
  "RegExp",
  "Request",
  "Response",
  "Set",
  "WeakMap",
  "WeakSet",
]);

/** The bytes, where `data` is binary; refuses what has no JSON form. */
function bytesOf(data: object): ArrayBufferView | undefined {
  if (ArrayBuffer.isView(data)) return data;
  const prototype: unknown = Object.getPrototypeOf(data);
  if (prototype === Object.prototype || prototype === Array.prototype || prototype === null) return undefined;
  const tag = tagOf(data);
  if (tag === "ArrayBuffer" || tag === "SharedArrayBuffer") return new Uint8Array(data as ArrayBuffer);
  const shape = data as { toJSON?: unknown; pipe?: unknown; then?: unknown };
  if (typeof shape.toJSON === "function") return undefined;
  if (typeof shape.then === "function") throw refuse("is a promise: await it first");
  if (EMPTY_AS_JSON.has(tag) || typeof shape.pipe === "function" || Symbol.asyncIterator in data) {
    throw refuse("has no JSON form: give a JSON value, or the bytes of it as Uint8Array or ArrayBuffer");
  }
  return undefined;
}

/** Where a BigInt stands, as a path of member names; `undefined` = not found. `seen` ends cycles. */
function bigIntPath(value: unknown, path: string, seen: Set<object>): string | undefined {
  if (typeof value === "bigint") return path;
  if (typeof value !== "object" || value === null || seen.has(value)) return undefined;
  seen.add(value);
  for (const [name, member] of Object.entries(value)) {
    const found = bigIntPath(member, Array.isArray(value) ? `${path}[${name}]` : `${path}.${name}`, seen);
    if (found !== undefined) return found;
  }
  return undefined;
}

const MAX_PATH = 200;

/** Why JSON.stringify refused. */
function refusal(data: unknown, error: unknown): EnvelopeInvalidError {
  if (error instanceof RangeError) return refuse("is too deep or too long to be JSON", error);
  let path: string | undefined;
  try {
    path = bigIntPath(data, "data", new Set());
  } catch {
    path = undefined;
  }
  if (path !== undefined) {
    return new EnvelopeInvalidError(
      `${path.slice(0, MAX_PATH)} is a BigInt, which JSON cannot hold: convert it to a number or a string`,
      { details: { attribute: "data" } },
    );
  }
  return refuse("cannot be written as JSON: it is cyclic, or a toJSON or getter in it throws", error);
}

/**
 * The literal of `data`, `undefined` for none. Bytes become base64; everything else goes through JSON.stringify, `toJSON`
 * included.
 *
 * @throws EnvelopeInvalidError where it has no JSON form or nests deeper than 64 levels.
 */
export function dataLiteral(data: unknown): WireData | undefined {
  if (data === undefined) return undefined;
  if (typeof data === "object" && data !== null) {
    const bytes = bytesOf(data);
    if (bytes !== undefined) return { literal: `"${encodeBase64(bytes)}"`, binary: true };
  }
  let literal: string | undefined;
  try {
    literal = JSON.stringify(data);
  } catch (error) {
    throw refusal(data, error);
  }
  if (literal === undefined) throw refuse("has no JSON form: a function, a symbol, or a toJSON that answers undefined");
  if (isDeeperThan(literal, MAX_DATA_DEPTH)) throw refuse(`is nested deeper than ${MAX_DATA_DEPTH} levels`);
  return { literal, binary: false };
}
