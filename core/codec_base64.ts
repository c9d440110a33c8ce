/**
 * Base64 (RFC 4648, section 4) as `data_base64` has it: padded, no other characters, the same on every runtime. The decoders
 * of the runtimes skip what they do not know, so the text is checked first.
 *
 * @module
 */
import { Buffer } from "node:buffer";

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** Whether a text is padded base64 and nothing else. */
export function isBase64(text: string): boolean {
  return text.length % 4 === 0 && BASE64.test(text);
}

/** Base64 of exactly the viewed bytes. */
export function encodeBase64(view: ArrayBufferView): string {
  return Buffer.from(view.buffer as ArrayBuffer, view.byteOffset, view.byteLength).toString("base64");
}

/** The bytes of a text that passed {@link isBase64}, in a buffer of their own. */
export function decodeBase64(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, "base64"));
}
