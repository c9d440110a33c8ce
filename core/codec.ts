/**
 * The codec: building envelopes, reading received ones, and their exact text. Structured-mode CloudEvents JSON, data kept
 * literally.
 *
 * @module
 */
export { createEnvelope, type EnvelopeDefaults, toEnvelope, withCause } from "./codec_create.ts";
export {
  freshEnvelope,
  fromInspected,
  isEnvelope,
  textOf,
  type WireData,
  wireDataOf,
  withData,
} from "./codec_envelope.ts";
export { decodeEnvelope, inspect, type ReadLimits } from "./codec_inspect.ts";
export type { Inspected } from "./codec_canonical.ts";
