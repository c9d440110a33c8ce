/**
 * Building envelopes from what a caller gives.
 *
 * @module
 */
import {
  extensionNameProblem,
  extensionValueProblem,
  isCredentialName,
  isJsonContentType,
  isTraceparent,
  NAMED_ATTRIBUTES,
  type NamedAttribute,
  namedProblem,
  quoteName,
} from "./codec_attributes.ts";
import { encodeBase64 } from "./codec_base64.ts";
import { dataLiteral } from "./codec_data.ts";
import { envelopeOver, isEnvelope, textOf, type WireData } from "./codec_envelope.ts";
import { NO_EXTENSIONS, writeHead } from "./codec_head.ts";
import type { Envelope, EnvelopeInit, Scalar } from "./envelope.ts";
import { EnvelopeInvalidError, EnvelopeTooLargeError } from "./errors.ts";
import { closestName, grouped } from "./options.ts";

/** What fills in the attributes that a caller left out. */
export interface EnvelopeDefaults {
  /** `source` where the init has none; without both, building fails. */
  readonly source?: string | undefined;
  /** Wall clock, milliseconds since 1970. */
  now(): number;
  /** A fresh id. */
  nextId(): string;
}

function invalid(attribute: string, message: string): EnvelopeInvalidError {
  return new EnvelopeInvalidError(message, { details: { attribute } });
}

const INIT_MEMBERS: readonly string[] = ["specversion", "data", "extensions", ...NAMED_ATTRIBUTES];
const KNOWN: ReadonlySet<string> = new Set(INIT_MEMBERS);

/** A misspelt attribute must not vanish: it would be missing on the wire without a word. */
function checkMembers(init: object): void {
  for (const name of Object.keys(init)) {
    if (KNOWN.has(name)) continue;
    let hint = "";
    const close = closestName(name, INIT_MEMBERS);
    if (name.startsWith("data_")) hint = ": bytes go into data as they are";
    else if (close !== undefined) hint = `: did you mean ${close}?`;
    else if (extensionNameProblem(name) === undefined) hint = ": extension attributes go into extensions";
    throw invalid(name.slice(0, 64), `${quoteName(name)} is no member of an envelope${hint}`);
  }
}

/** The last stamp made; many envelopes share a millisecond. */
let stamp = { at: NaN, text: "" };

function timeText(at: number): string {
  if (stamp.at !== at) stamp = { at, text: new Date(at).toISOString() };
  return stamp.text;
}

/** 1 January of the year 0: before it and after 9999, dates need more than the four digits of RFC 3339. */
const FIRST_DATE = Date.parse("0000-01-01T00:00:00Z");

function dateText(attribute: string, date: Date): string {
  const at = date.getTime();
  if (!(at >= FIRST_DATE && at < Date.UTC(10_000, 0))) {
    throw invalid(attribute, `${attribute} must be a valid Date of the years 0 to 9999`);
  }
  return date.toISOString();
}

function checked(name: NamedAttribute, value: unknown): string {
  const problem = namedProblem(name, value);
  if (problem !== undefined) throw invalid(name, `${name} ${problem}`);
  return value as string;
}

function optional(name: NamedAttribute, value: unknown): string | undefined {
  return value === undefined || value === null ? undefined : checked(name, value);
}

function extensionValue(name: string, value: unknown): Scalar {
  const scalar = value instanceof Date
    ? dateText(name, value)
    : ArrayBuffer.isView(value)
    ? encodeBase64(value)
    : value;
  const problem = extensionValueProblem(scalar);
  if (problem !== undefined) throw invalid(name, `extension ${name} ${problem}`);
  if (name === "traceparent" && !isTraceparent(scalar)) {
    throw invalid(name, "extension traceparent must have the form of W3C Trace Context, in lower case");
  }
  if (name === "xsmattempt" && !(typeof scalar === "number" && scalar >= 0)) {
    throw invalid(name, "extension xsmattempt must be an integer of at least 0");
  }
  // JSON writes -0 as 0.
  return scalar === 0 ? 0 : scalar as Scalar;
}

function extensionsOf(given: unknown): Readonly<Record<string, Scalar>> {
  if (given === undefined || given === null || given === NO_EXTENSIONS) return NO_EXTENSIONS;
  if (typeof given !== "object" || Array.isArray(given) || given instanceof Map) {
    throw invalid("extensions", "extensions must be an object of names and values");
  }
  let extensions: Record<string, Scalar> | undefined;
  for (const name of Object.keys(given)) {
    const problem = extensionNameProblem(name);
    if (problem !== undefined) throw invalid(name.slice(0, 64), `extension ${quoteName(name)} ${problem}`);
    if (isCredentialName(name)) {
      throw invalid(
        name.slice(0, 64),
        `extension ${quoteName(name)} is named like a credential, which must not travel as an attribute`,
      );
    }
    const value = (given as Record<string, unknown>)[name];
    if (value !== undefined && value !== null) (extensions ??= {})[name] = extensionValue(name, value);
  }
  return extensions === undefined ? NO_EXTENSIONS : Object.freeze(extensions);
}

function contentTypeOf(given: unknown, data: WireData | undefined): string | undefined {
  const contentType = optional("datacontenttype", given);
  // Bytes without a content type are just bytes; JSON is said so that readers need not guess.
  if (contentType === undefined) return data === undefined || data.binary ? undefined : "application/json";
  if (data !== undefined && !data.binary && !data.literal.startsWith('"') && !isJsonContentType(contentType)) {
    throw invalid("data", "data must be a string or bytes, because datacontenttype does not say JSON");
  }
  return contentType;
}

const encoder = new TextEncoder();

/** Whether a text has more than `maxBytes` bytes in UTF-8. */
export function exceedsBytes(text: string, maxBytes: number): boolean {
  // A UTF-16 unit is 1 to 3 bytes, so most texts need no counting.
  if (text.length * 3 <= maxBytes) return false;
  return text.length > maxBytes || encoder.encode(text).length > maxBytes;
}

function checkSize(text: string, maxBytes: number): void {
  if (!exceedsBytes(text, maxBytes)) return;
  throw new EnvelopeTooLargeError(`the envelope is larger than maxBytes (${grouped(maxBytes)} bytes)`, {
    details: { maxBytes },
  });
}

/**
 * Builds an envelope: fills in id, time, source and content type, and checks everything, in this order: member names,
 * data, specversion, required attributes, optional attributes, extensions, size.
 *
 * @param init What the caller gives. `null` for an optional attribute counts as absent.
 * @param maxBytes Largest text, UTF-8 bytes, inclusive.
 * @throws EnvelopeInvalidError naming the attribute, EnvelopeTooLargeError.
 */
export function createEnvelope(init: EnvelopeInit, defaults: EnvelopeDefaults, maxBytes: number): Envelope {
  if (typeof init !== "object" || init === null || Array.isArray(init)) {
    throw new EnvelopeInvalidError("an envelope is built from an object with at least a type");
  }
  checkMembers(init);
  const data = dataLiteral(init.data);
  const version: unknown = (init as { specversion?: unknown }).specversion;
  if (version !== undefined && version !== "1.0") throw invalid("specversion", 'specversion must be "1.0"');
  const id = checked("id", init.id === undefined ? defaults.nextId() : init.id);
  const source: unknown = init.source === undefined ? defaults.source : init.source;
  if (source === undefined) {
    throw invalid("source", "source is required: give it in the envelope, or once as the source option of the broker");
  }
  if (init.type === undefined) throw invalid("type", "type is required");
  const attributes = {
    id,
    source: checked("source", source),
    type: checked("type", init.type),
    subject: optional("subject", init.subject),
    time: init.time === undefined || init.time === null
      ? timeText(defaults.now())
      : init.time instanceof Date
      ? dateText("time", init.time)
      : checked("time", init.time),
    datacontenttype: contentTypeOf(init.datacontenttype, data),
    dataschema: optional("dataschema", init.dataschema),
    correlationid: optional("correlationid", init.correlationid),
    causationid: optional("causationid", init.causationid),
    extensions: extensionsOf(init.extensions),
  };
  let text = writeHead(attributes);
  let dataAt = -1;
  if (data !== undefined) {
    text += data.binary ? ',"data_base64":' : ',"data":';
    dataAt = text.length;
    text += data.literal;
  }
  text += "}";
  checkSize(text, maxBytes);
  return envelopeOver(text, dataAt, data?.binary ?? false, attributes);
}

/**
 * An envelope of this library as it is, anything else through {@link createEnvelope}: a plain init, or an object with the
 * members of an envelope, such as a spread copy.
 *
 * @throws EnvelopeInvalidError, EnvelopeTooLargeError.
 */
export function toEnvelope(value: Envelope | EnvelopeInit, defaults: EnvelopeDefaults, maxBytes: number): Envelope {
  if (!isEnvelope(value)) return createEnvelope(value, defaults, maxBytes);
  checkSize(textOf(value), maxBytes);
  return value;
}

/**
 * An init that says what caused it: `causationid`, `correlationid` (the cause's, else the cause's id) and the extension
 * `traceparent`, each unless given. A finished envelope is returned as it is.
 */
export function withCause<I extends EnvelopeInit | Envelope>(
  init: I,
  cause: Envelope,
): I & Pick<EnvelopeInit, "correlationid" | "causationid" | "extensions"> {
  if (isEnvelope(init)) return init;
  const trace = Object.hasOwn(cause.extensions, "traceparent") ? cause.extensions["traceparent"] : undefined;
  const given = init.extensions;
  const inherits = isTraceparent(trace) && !(given !== undefined && Object.hasOwn(given, "traceparent"));
  return {
    ...init,
    correlationid: init.correlationid ?? cause.correlationid ?? cause.id,
    causationid: init.causationid ?? cause.id,
    ...(inherits ? { extensions: { ...given, traceparent: trace } } : {}),
  };
}
