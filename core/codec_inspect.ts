/**
 * Reading what a broker brings: from bytes that anyone may have written to a canonical text, or to an error that says why
 * not. Errors never quote the body.
 *
 * @module
 */
import {
  extensionNameProblem,
  extensionValueProblem,
  isJsonContentType,
  NAMED_ATTRIBUTES,
  type NamedAttribute,
  namedProblem,
  quoteName,
} from "./codec_attributes.ts";
import { isBase64 } from "./codec_base64.ts";
import { utf8Text } from "./codec_bytes.ts";
import { type Inspected, takeCanonical } from "./codec_canonical.ts";
import { exceedsBytes } from "./codec_create.ts";
import { fromInspected } from "./codec_envelope.ts";
import { type Attributes, NO_EXTENSIONS, writeHead } from "./codec_head.ts";
import { isDeeperThan, MAX_DATA_DEPTH, type Member, topLevelMembers } from "./codec_scan.ts";
import type { Envelope, Scalar } from "./envelope.ts";
import { type CorruptReason, EnvelopeCorruptError, EnvelopeTooLargeError } from "./errors.ts";
import { grouped } from "./options.ts";

/** Limits of reading. */
export interface ReadLimits {
  /** Largest body, UTF-8 bytes, inclusive. */
  readonly maxBytes: number;
}

function corrupt(reason: CorruptReason, message: string, attribute?: string): EnvelopeCorruptError {
  return new EnvelopeCorruptError(
    reason,
    message,
    attribute === undefined ? {} : { details: { attribute: attribute.slice(0, 64) } },
  );
}

function tooLarge(maxBytes: number): EnvelopeTooLargeError {
  return new EnvelopeTooLargeError(`the message is larger than maxBytes (${grouped(maxBytes)} bytes)`, {
    details: { maxBytes },
  });
}

/** Size first: what is too large is never looked at. */
function checkBody(body: Uint8Array | string, maxBytes: number): void {
  if (typeof body === "string") {
    if (exceedsBytes(body, maxBytes)) throw tooLarge(maxBytes);
    if (!body.isWellFormed()) throw corrupt("not-utf8", "the body has a lone surrogate, so it is no UTF-8 text");
  } else if (!ArrayBuffer.isView(body)) {
    throw corrupt("not-json", "the body must be text or bytes");
  } else if (body.byteLength > maxBytes) {
    throw tooLarge(maxBytes);
  }
}

/** The text of a body without the byte order mark in front (RFC 8259, section 8.1). */
function toText(body: Uint8Array | string): string {
  if (typeof body === "string") return body.charCodeAt(0) === 0xfeff ? body.slice(1) : body;
  // The decoder takes the mark off.
  const text = utf8Text(body);
  if (text === undefined) throw corrupt("not-utf8", "the body is not UTF-8");
  return text;
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  // The root of the data is one level below the top.
  if (isDeeperThan(text, MAX_DATA_DEPTH + 1)) {
    throw corrupt("too-deep", `the JSON is nested deeper than ${MAX_DATA_DEPTH} levels of data`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The engine's message quotes the text: it is not passed on.
    throw corrupt("not-json", "the body is not JSON");
  }
  if (Array.isArray(value)) throw corrupt("batch-not-supported", "the body is a batch; events must come one by one");
  if (typeof value !== "object" || value === null) throw corrupt("not-an-object", "the body is JSON, but no object");
  return value as Record<string, unknown>;
}

function required(name: "id" | "source" | "type", value: unknown): string {
  if (value === undefined) throw corrupt("missing-attribute", `${name} is missing`, name);
  const problem = namedProblem(name, value);
  if (problem !== undefined) throw corrupt("invalid-attribute", `${name} ${problem}`, name);
  return value as string;
}

function optional(name: NamedAttribute, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  const problem = namedProblem(name, value);
  if (problem !== undefined) throw corrupt("invalid-attribute", `${name} ${problem}`, name);
  return value as string;
}

const INTEGER = /^-?(?:0|[1-9][0-9]*)$/;

function extensionOf(name: string, value: unknown, literal: string): Scalar {
  const problem = extensionNameProblem(name) ?? extensionValueProblem(value) ??
    // The JSON format has no fraction or exponent in an Integer, so 1.0 and 1e2 are none (section 2.2).
    (typeof value === "number" && !INTEGER.test(literal)
      ? "must be an integer without fraction or exponent"
      : undefined);
  if (problem !== undefined) throw corrupt("invalid-attribute", `attribute ${quoteName(name)} ${problem}`, name);
  return value as Scalar;
}

function checkData(text: string, data: Member | undefined, bytes: Member | undefined, type: string | undefined): void {
  if (data !== undefined && bytes !== undefined) {
    throw corrupt("data-and-data-base64", "data and data_base64 exclude each other", "data_base64");
  }
  if (data !== undefined && text.charCodeAt(data.start) !== 34 && !isJsonContentType(type)) {
    throw corrupt("invalid-attribute", "data must be a string, because datacontenttype does not say JSON", "data");
  }
  if (bytes === undefined) return;
  const value: unknown = JSON.parse(text.slice(bytes.start, bytes.end));
  if (typeof value !== "string" || !isBase64(value)) {
    throw corrupt("invalid-base64", "data_base64 must be a string of padded base64", "data_base64");
  }
}

/** Names that the caller of an event decides about nothing by: the count of deliveries is the broker's, not the wire's. */
const ATTEMPT = "xsmattempt";
const OTHERS: ReadonlySet<string> = new Set<string>([
  "specversion",
  "data",
  "data_base64",
  ATTEMPT,
  ...NAMED_ATTRIBUTES,
]);

/** The careful way: any valid JSON object, with an error that says what is wrong. */
function takeAny(text: string): Inspected {
  const parsed = parseObject(text);
  const members = new Map<string, Member>();
  for (const member of topLevelMembers(text)) {
    if (members.has(member.name)) {
      throw corrupt("invalid-attribute", `${quoteName(member.name)} stands in the event twice`, member.name);
    }
    members.set(member.name, member);
  }
  // null is the same as absent (JSON format, section 2.2).
  const value = (name: string): unknown => members.has(name) ? parsed[name] ?? undefined : undefined;
  const version = value("specversion");
  if (version === undefined) throw corrupt("missing-attribute", "specversion is missing", "specversion");
  if (version !== "1.0") {
    throw corrupt("unsupported-specversion", 'specversion must be the string "1.0"', "specversion");
  }
  let extensions: Record<string, Scalar> | undefined;
  const named = {
    id: required("id", value("id")),
    source: required("source", value("source")),
    type: required("type", value("type")),
    subject: optional("subject", value("subject")),
    time: optional("time", value("time")),
    datacontenttype: optional("datacontenttype", value("datacontenttype")),
    dataschema: optional("dataschema", value("dataschema")),
    correlationid: optional("correlationid", value("correlationid")),
    causationid: optional("causationid", value("causationid")),
  };
  for (const { name, start, end } of members.values()) {
    if (OTHERS.has(name)) continue;
    const problem = extensionNameProblem(name);
    if (problem !== undefined) throw corrupt("invalid-attribute", `attribute ${quoteName(name)} ${problem}`, name);
    const extension = value(name);
    if (extension !== undefined) (extensions ??= {})[name] = extensionOf(name, extension, text.slice(start, end));
  }
  const data = members.get("data");
  // "data_base64": null is no data; "data": null is a payload.
  const bytes = value("data_base64") === undefined ? undefined : members.get("data_base64");
  checkData(text, data, bytes, named.datacontenttype);

  const attributes: Attributes = { ...named, extensions: extensions ?? NO_EXTENSIONS };
  const head = writeHead(attributes);
  const payload = data ?? bytes;
  if (payload === undefined) return { text: `${head}}`, dataAt: -1, binary: false };
  const front = `${head}${data !== undefined ? ',"data":' : ',"data_base64":'}`;
  return {
    text: `${front}${text.slice(payload.start, payload.end)}}`,
    dataAt: front.length,
    binary: data === undefined,
  };
}

/**
 * Checks a received body and brings it into canonical form. The data keeps every digit and escape; attributes that are null
 * and the attribute `xsmattempt` are left out. The size is checked before anything is decoded or parsed.
 *
 * @throws EnvelopeTooLargeError, EnvelopeCorruptError with its reason and, where there is one, `details.attribute`.
 */
export function inspect(body: Uint8Array | string, limits: ReadLimits): Inspected {
  checkBody(body, limits.maxBytes);
  return takeCanonical(body) ?? takeAny(toText(body));
}

/**
 * Reads a received body.
 *
 * @throws As {@link inspect}.
 */
export function decodeEnvelope(body: Uint8Array | string, limits: ReadLimits): Envelope {
  const { text, dataAt, binary } = inspect(body, limits);
  return fromInspected(text, dataAt, binary);
}
