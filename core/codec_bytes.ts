/**
 * The bytes of a body in a place of its own, a zero behind them, and their text.
 *
 * @module
 */
import { Buffer } from "node:buffer";

/** Bodies up to this size share one array: no allocation, and engines see one kind of array at every access. */
const SHARED = 64 * 1024;
const shared = new Uint8Array(SHARED + 1);
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/** Where a body stands: valid until the next call of {@link place}. */
export interface Placed {
  readonly bytes: Uint8Array;
  /** How many bytes the body has; the one behind them is zero. */
  readonly size: number;
}

/** Copies a body, or the UTF-8 of a well-formed text, to where it can be read. */
export function place(body: Uint8Array | string): Placed {
  if (typeof body === "string") {
    // A UTF-16 unit is at most three bytes.
    const bytes = body.length * 3 <= SHARED ? shared : new Uint8Array(Buffer.byteLength(body) + 1);
    const size = encoder.encodeInto(body, bytes).written;
    bytes[size] = 0;
    return { bytes, size };
  }
  const size = body.length;
  const bytes = size <= SHARED ? shared : new Uint8Array(size + 1);
  bytes.set(body);
  bytes[size] = 0;
  return { bytes, size };
}

/** A text of one character a byte: that of bytes that are ASCII. Some runtimes decode UTF-8 in six times the time. */
export function latin1Text(body: Uint8Array): string {
  const buffer = body instanceof Buffer ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  return buffer.toString("latin1");
}

/** The text of bytes in UTF-8; `undefined` = they are not. */
export function utf8Text(body: Uint8Array): string | undefined {
  try {
    return decoder.decode(body);
  } catch {
    return undefined;
  }
}
