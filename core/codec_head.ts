/**
 * The head of a canonical text: every attribute, in front of the data. Canonical text has no space between tokens, `data`
 * or `data_base64` as its last member, and in the head neither null nor a name twice.
 *
 * @module
 */
import { NAMED_ATTRIBUTES, type NamedAttribute } from "./codec_attributes.ts";
import type { Scalar } from "./envelope.ts";

const NAMED: ReadonlySet<string> = new Set<string>(NAMED_ATTRIBUTES);

/** Extensions of an envelope that has none. */
export const NO_EXTENSIONS: Readonly<Record<string, Scalar>> = Object.freeze({});

/** All attributes of an envelope but `specversion`, which is always 1.0. */
export interface Attributes {
  readonly id: string;
  readonly source: string;
  readonly type: string;
  readonly subject: string | undefined;
  readonly time: string | undefined;
  readonly datacontenttype: string | undefined;
  readonly dataschema: string | undefined;
  readonly correlationid: string | undefined;
  readonly causationid: string | undefined;
  /** Frozen. */
  readonly extensions: Readonly<Record<string, Scalar>>;
}

/** A valid attribute value as JSON: it holds no control characters, so only these two need escaping. */
function quote(value: string): string {
  return value.includes('"') || value.includes("\\") ? JSON.stringify(value) : `"${value}"`;
}

/** The head without its closing brace. */
export function writeHead(a: Attributes): string {
  let text = `{"specversion":"1.0","id":${quote(a.id)},"source":${quote(a.source)},"type":${quote(a.type)}`;
  if (a.subject !== undefined) text += `,"subject":${quote(a.subject)}`;
  if (a.time !== undefined) text += `,"time":${quote(a.time)}`;
  if (a.datacontenttype !== undefined) text += `,"datacontenttype":${quote(a.datacontenttype)}`;
  if (a.dataschema !== undefined) text += `,"dataschema":${quote(a.dataschema)}`;
  if (a.correlationid !== undefined) text += `,"correlationid":${quote(a.correlationid)}`;
  if (a.causationid !== undefined) text += `,"causationid":${quote(a.causationid)}`;
  if (a.extensions !== NO_EXTENSIONS) {
    for (const name of Object.keys(a.extensions)) {
      const value = a.extensions[name];
      text += `,"${name}":${typeof value === "string" ? quote(value) : JSON.stringify(value)}`;
    }
  }
  return text;
}

const START = '{"specversion":"1.0","id":"';
const START_LENGTH = START.length;

/** The last text of an attribute that most envelopes share, so that it need not be cut out again. */
const last = { source: "", type: "", datacontenttype: "application/json" };

/** Whether `value` and a closing quote stand at `at`. */
function stands(text: string, value: string, at: number): boolean {
  return text.startsWith(value, at) && text.charCodeAt(at + value.length) === 34;
}

/**
 * Reads the head that ends before `end` of a canonical text, trusting it. In the order that {@link writeHead} writes it is
 * cut out of the text without parsing, 0.4 µs faster than JSON.parse.
 */
export function readHead(text: string, end: number): Attributes {
  const escape = text.indexOf("\\");
  if (escape !== -1 && escape < end || !text.startsWith(START)) return parseHead(text, end);

  let source: string | undefined;
  let type: string | undefined;
  let subject: string | undefined;
  let time: string | undefined;
  let datacontenttype: string | undefined;
  let correlationid: string | undefined;
  let causationid: string | undefined;
  let from = START_LENGTH;
  let to = text.indexOf('"', from);
  const id = text.slice(from, to);
  if (text.startsWith(',"source":"', to + 1)) {
    from = to + 12;
    source = stands(text, last.source, from) ? last.source : (last.source = text.slice(from, text.indexOf('"', from)));
    to = from + source.length;
  }
  if (text.startsWith(',"type":"', to + 1)) {
    from = to + 10;
    type = stands(text, last.type, from) ? last.type : (last.type = text.slice(from, text.indexOf('"', from)));
    to = from + type.length;
  }
  if (text.startsWith(',"subject":"', to + 1)) {
    from = to + 13;
    to = text.indexOf('"', from);
    subject = text.slice(from, to);
  }
  if (text.startsWith(',"time":"', to + 1)) {
    from = to + 10;
    to = text.indexOf('"', from);
    time = text.slice(from, to);
  }
  if (text.startsWith(',"datacontenttype":"', to + 1)) {
    from = to + 21;
    datacontenttype = stands(text, last.datacontenttype, from)
      ? last.datacontenttype
      : (last.datacontenttype = text.slice(from, text.indexOf('"', from)));
    to = from + datacontenttype.length;
  }
  if (text.startsWith(',"correlationid":"', to + 1)) {
    from = to + 19;
    to = text.indexOf('"', from);
    correlationid = text.slice(from, to);
  }
  if (text.startsWith(',"causationid":"', to + 1)) {
    from = to + 17;
    to = text.indexOf('"', from);
    causationid = text.slice(from, to);
  }
  let extensions: Record<string, Scalar> | undefined;
  while (to + 1 < end) {
    const nameEnd = text.indexOf('"', to + 3);
    const name = text.slice(to + 3, nameEnd);
    // dataschema, or another order: not the usual envelope.
    if (NAMED.has(name)) return parseHead(text, end);
    extensions ??= {};
    from = nameEnd + 2;
    if (text.charCodeAt(from) === 34) {
      to = text.indexOf('"', from + 1);
      extensions[name] = text.slice(from + 1, to);
    } else {
      const comma = text.indexOf(",", from);
      to = (comma === -1 || comma > end ? end : comma) - 1;
      extensions[name] = JSON.parse(text.slice(from, to + 1)) as Scalar;
    }
  }
  if (source === undefined || type === undefined) return parseHead(text, end);
  return {
    id,
    source,
    type,
    subject,
    time,
    datacontenttype,
    dataschema: undefined,
    correlationid,
    causationid,
    extensions: extensions === undefined ? NO_EXTENSIONS : Object.freeze(extensions),
  };
}

function parseHead(text: string, end: number): Attributes {
  const members = JSON.parse(`${text.slice(0, end)}}`) as Record<string, Scalar>;
  // Own members only: an attribute may be called "constructor".
  const named = (name: NamedAttribute): string | undefined =>
    Object.hasOwn(members, name) ? members[name] as string : undefined;
  let extensions: Record<string, Scalar> | undefined;
  for (const name of Object.keys(members)) {
    const value = members[name];
    if (value !== undefined && name !== "specversion" && !NAMED.has(name)) (extensions ??= {})[name] = value;
  }
  return {
    id: named("id") ?? "",
    source: named("source") ?? "",
    type: named("type") ?? "",
    subject: named("subject"),
    time: named("time"),
    datacontenttype: named("datacontenttype"),
    dataschema: named("dataschema"),
    correlationid: named("correlationid"),
    causationid: named("causationid"),
    extensions: extensions === undefined ? NO_EXTENSIONS : Object.freeze(extensions),
  };
}
