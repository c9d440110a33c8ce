/**
 * What stands on the wire: the structured CloudEvents text as the payload, with its content type and an id for the server's
 * window of duplicates in the headers, as the first reference system writes it. Events in binary mode are read too.
 *
 * @module
 */
import { isJsonContentType } from "../../core/codec_attributes.ts";
import { encodeBase64 } from "../../core/codec_base64.ts";
import { utf8Text } from "../../core/codec_bytes.ts";
import { sha256Hex } from "../../core/sha256.ts";
import type { HeadersSlice, MessageSlice } from "./client.ts";

/** The content type of a structured event. */
export const CONTENT_TYPE = "application/cloudevents+json";

const HEAD = /^\{"specversion":"1\.0","id":"((?:[^"\\]|\\.)*)","source":"((?:[^"\\]|\\.)*)"/;

/**
 * The id by which the server knows a message that it has already: of source and id, which name an event, and of the number of
 * its replay, so that a replay is no duplicate.
 */
export function messageId(body: string, replay: number | undefined): string {
  const found = HEAD.exec(body);
  let id: unknown;
  let source: unknown;
  if (found !== null && !found[0].includes("\\")) [, id, source] = found;
  else [id, source] = namedIn(body);
  // No attribute holds a line feed, so it separates without ambiguity.
  const key = sha256Hex(`${source}\n${id}`).slice(0, 40);
  return replay === undefined ? key : `${key}-r${replay}`;
}

/** Id and source of a text in any form; of one that is no event, the text itself. */
function namedIn(body: string): [id: unknown, source: unknown] {
  try {
    const { id, source } = JSON.parse(body) as { readonly id?: unknown; readonly source?: unknown };
    return [id, source];
  } catch {
    return [body, ""];
  }
}

/** Where a delivery stands, as its reply subject tells. */
export interface Place {
  /** Of the message in its stream. */
  readonly seq: number;
  /** How often it was delivered, this time included. */
  readonly delivered: number;
}

/**
 * Reads `$JS.ACK.<stream>.<durable>.<delivered>.<seq>.<durable's seq>.<time>.<pending>`, which has domain and account behind
 * `ACK` and more at its end on some servers; `undefined` = it is no delivery.
 */
export function placeOf(reply: string | undefined): Place | undefined {
  if (reply === undefined || !reply.startsWith("$JS.ACK.")) return undefined;
  const parts = reply.split(".");
  if (parts.length < 9) return undefined;
  const first = parts.length === 9 ? 4 : 6;
  const delivered = Number(parts[first]);
  const seq = Number(parts[first + 1]);
  return Number.isSafeInteger(delivered) && Number.isSafeInteger(seq) && seq > 0 ? { seq, delivered } : undefined;
}

/** The structured text or bytes of a message. */
export function bodyOf(message: MessageSlice): Uint8Array | string {
  const { headers, data } = message;
  if (headers === undefined) return data;
  const attributes = binaryAttributes(headers);
  return attributes === undefined ? data : structured(attributes, data);
}

/** Attributes in headers, by name in lower case; `undefined` = the event is no binary one. */
function binaryAttributes(headers: HeadersSlice): Map<string, string> | undefined {
  let found: Map<string, string> | undefined;
  let contentType: string | undefined;
  for (const [header, [value = ""]] of headers) {
    const name = header.toLowerCase();
    if (name === "content-type") contentType = value;
    else if (name.startsWith("ce-")) (found ??= new Map()).set(name.slice(3), decoded(value));
  }
  if (found === undefined || !found.has("specversion")) return undefined;
  if (contentType !== undefined) found.set("datacontenttype", contentType);
  return found;
}

/** Values are percent-encoded once; one that is not decodes to itself. */
function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

function structured(attributes: ReadonlyMap<string, string>, data: Uint8Array): string {
  const head = JSON.stringify(Object.fromEntries(attributes)).slice(0, -1);
  if (data.length === 0) return `${head}}`;
  const contentType = attributes.get("datacontenttype");
  const text = utf8Text(data);
  if (text !== undefined && isJsonContentType(contentType)) return `${head},"data":${text}}`;
  if (text !== undefined && contentType?.startsWith("text/") === true) return `${head},"data":${JSON.stringify(text)}}`;
  return `${head},"data_base64":"${encodeBase64(data)}"}`;
}
