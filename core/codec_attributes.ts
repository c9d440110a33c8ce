/**
 * The rules of context attributes (CloudEvents 1.0.2, sections 2 and 3), shared by building and reading. Each check answers
 * `undefined` or a text that says what is wrong and never holds the value.
 *
 * @module
 */
import type { Scalar } from "./envelope.ts";

/** Longest attribute value, in characters. */
export const MAX_ATTRIBUTE_LENGTH = 1024;

/** The attributes that an envelope has as members of its own; all others are extensions. */
export type NamedAttribute =
  | "id"
  | "source"
  | "type"
  | "subject"
  | "time"
  | "datacontenttype"
  | "dataschema"
  | "correlationid"
  | "causationid";

/** In the order in which they are written and checked. */
export const NAMED_ATTRIBUTES: readonly NamedAttribute[] = [
  "id",
  "source",
  "type",
  "subject",
  "time",
  "datacontenttype",
  "dataschema",
  "correlationid",
  "causationid",
];

const RESERVED: ReadonlySet<string> = new Set<string>(["specversion", "data", "data_base64", ...NAMED_ATTRIBUTES]);

/** Printable ASCII: nothing to object to, the usual case. */
const ASCII = /^[\x20-\x7e]*$/;
const CONTROL = /\p{Cc}/u;
const NONCHARACTER = /\p{Noncharacter_Code_Point}/u;

function longerThan(value: string, most: number): boolean {
  if (value.length <= most) return false;
  let characters = 0;
  for (const _ of value) if (++characters > most) return true;
  return false;
}

/** What is wrong with the characters of a string attribute (type `String`, section 3). */
export function textProblem(value: string): string | undefined {
  if (!ASCII.test(value)) {
    if (CONTROL.test(value)) return "must not contain control characters";
    if (!value.isWellFormed()) return "must not contain a lone surrogate";
    if (NONCHARACTER.test(value)) return "must not contain a Unicode noncharacter";
  }
  return longerThan(value, MAX_ATTRIBUTE_LENGTH) ? "must have at most 1,024 characters" : undefined;
}

const DATE_TIME = new RegExp(
  "^[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])[Tt](?:[01][0-9]|2[0-3]):[0-5][0-9]:(?:[0-5][0-9]|60)" +
    "(?:\\.[0-9]+)?(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])$",
);

/** Whether a text is an RFC 3339 date-time of a day that exists. */
export function isDateTime(text: string): boolean {
  if (!DATE_TIME.test(text)) return false;
  const day = Number(text.slice(8, 10));
  if (day < 29) return true;
  const month = Number(text.slice(5, 7));
  if (month !== 2) return day < 31 || month !== 4 && month !== 6 && month !== 9 && month !== 11;
  const year = Number(text.slice(0, 4));
  return day === 29 && year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}

/** What is wrong with the value of a named attribute that is present. */
export function namedProblem(name: NamedAttribute, value: unknown): string | undefined {
  if (typeof value !== "string") return "must be a string";
  if (value === "" && name !== "correlationid" && name !== "causationid") return "must not be empty";
  const problem = textProblem(value);
  if (problem !== undefined) return problem;
  if (name === "time" && !isDateTime(value)) return "must be an RFC 3339 date-time such as 2026-01-31T09:30:00Z";
  return undefined;
}

const EXTENSION_NAME = /^[a-z0-9]+$/;

/** What is wrong with the name of an extension attribute. Any length is allowed: 20 characters are advice (section 3.1). */
export function extensionNameProblem(name: string): string | undefined {
  if (RESERVED.has(name)) return "is no extension name: it is reserved";
  return EXTENSION_NAME.test(name) ? undefined : "is no attribute name: only a-z and 0-9 are allowed";
}

const CREDENTIAL = /authorization|cookie|password|secret|token|apikey/;

/** Whether a name says that its value is a credential; such a value must not travel beside the data, where tools show it. */
export function isCredentialName(name: string): boolean {
  return CREDENTIAL.test(name);
}

/** Whether a value is of the CloudEvents types Boolean, Integer (32 bits, section 3) or String. */
export function isScalar(value: unknown): value is Scalar {
  return typeof value === "string" || typeof value === "boolean" ||
    typeof value === "number" && Number.isInteger(value) && value >= -(2 ** 31) && value < 2 ** 31;
}

/** What is wrong with the value of an extension attribute. */
export function extensionValueProblem(value: unknown): string | undefined {
  if (typeof value === "string") return textProblem(value);
  if (isScalar(value)) return undefined;
  return "must be a string, a boolean or an integer from -2,147,483,648 to 2,147,483,647";
}

const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Whether a value is a `traceparent` (W3C Trace Context, section 3.2). */
export function isTraceparent(value: unknown): value is string {
  return typeof value === "string" && TRACEPARENT.test(value);
}

const JSON_MEDIA_TYPE = /^\s*[^/\s]+\/(?:[^/\s]+\+)?json\s*$/i;

/** Whether `datacontenttype` says JSON: absent, `…/json` or `…/…+json`, in any case, whatever its parameters. */
export function isJsonContentType(contentType: string | undefined): boolean {
  if (contentType === undefined || contentType === "application/json") return true;
  const parameters = contentType.indexOf(";");
  return JSON_MEDIA_TYPE.test(parameters === -1 ? contentType : contentType.slice(0, parameters));
}

/** A name for an error message: quoted, harmless and short. */
export function quoteName(name: string): string {
  return JSON.stringify(name.length > 64 ? `${name.slice(0, 64)}…` : name);
}
