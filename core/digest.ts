/**
 * What tells events apart: hashes of their wire data.
 *
 * @module
 */
import { wireDataOf } from "./codec_envelope.ts";
import type { Envelope } from "./envelope.ts";
import { sha256Hex } from "./sha256.ts";

export { sha256Hex } from "./sha256.ts";

/**
 * What an event says, as 64 hex digits: SHA-256 of its type and of the data as it stands on the wire. The same event
 * delivered twice has the same fingerprint; another event under the same id has another one. It is the hash of the literal
 * before any schema filled in defaults, so a change of the schema changes no fingerprint; data that a sender wrote with
 * other white space or number forms (`1.0` for `1`) counts as other data.
 *
 * @throws EnvelopeInvalidError for an object that only looks like an envelope.
 */
export function fingerprint(envelope: Envelope): string {
  const data = wireDataOf(envelope);
  // A type holds no control character, so the line feed ends it without ambiguity.
  const kind = data === undefined ? "none" : data.binary ? "base64" : "json";
  return sha256Hex(`${envelope.type}\n${kind}\n${data?.literal ?? ""}`);
}
