/**
 * What stands on the wire: a body of structured CloudEvents text, with the id as `message_id`, the type as `type` and the
 * subject as header `ce_subject` (empty without one), as the first reference system writes it. Binary mode is read too: attributes in headers
 * that begin with `cloudEvents:` or `cloudEvents_`, data in the body.
 *
 * @module
 */
import { encodeBase64 } from "../../core/codec_base64.ts";
import { readHead } from "../../core/codec_head.ts";
import { sha256Hex } from "../../core/sha256.ts";
import type { Outgoing } from "../../core/transport.ts";
import type { MessageSlice, PublishOptions } from "./client.ts";

/** Of a structured event. */
export const CONTENT_TYPE = "application/cloudevents+json; charset=UTF-8";

/** What AMQP takes as a short text. */
const MAX_SHORT = 255;
const utf8 = new TextEncoder();

/** Whether a text fits 255 bytes of UTF-8; most do by their length alone. */
function isShort(text: string): boolean {
  return text.length <= 85 || (text.length <= MAX_SHORT && utf8.encode(text).byteLength <= MAX_SHORT);
}

/** A text that AMQP takes: itself, or where it is too long its digest. */
export function short(text: string): string {
  return isShort(text) ? text : `sha256:${sha256Hex(utf8.encode(text))}`;
}

/** The properties of a message. */
export function propertiesOf({ body, subject }: Outgoing): PublishOptions {
  const { id, type } = readHead(body, endOfHead(body));
  return {
    mandatory: true,
    persistent: true,
    contentType: CONTENT_TYPE,
    messageId: short(id),
    ...(isShort(type) ? { type } : {}),
    headers: { ce_subject: subject ?? "" },
  };
}

/** Where the head of a canonical text ends: at its data, or at its last brace. */
function endOfHead(body: string): number {
  // Quotes inside of an attribute are escaped, so this sequence can only be the member itself.
  const data = body.indexOf(',"data":');
  const bytes = body.indexOf(',"data_base64":');
  if (data === -1 && bytes === -1) return body.length - 1;
  return data === -1 ? bytes : bytes === -1 ? data : Math.min(data, bytes);
}

/** Deliveries before this one, as the queue counts them: what a publisher wrote into the header is not trusted. */
export function deliveriesOf({ fields, properties }: MessageSlice, counts: boolean): number {
  if (!fields.redelivered) return 0;
  const count = properties.headers?.["x-delivery-count"];
  return counts && typeof count === "number" && Number.isInteger(count) && count >= 1 ? count : 1;
}

const PREFIX = /^cloudEvents[:_]/;

/** The structured body of a message. */
export function bodyOf({ content, properties }: MessageSlice): Uint8Array | string {
  const { headers, contentType } = properties;
  if (headers === undefined || contentType === CONTENT_TYPE) return content;
  const version = headers["cloudEvents:specversion"] ?? headers["cloudEvents_specversion"];
  return version === undefined ? content : structured(content, headers, contentType);
}

/** What a binary-mode event is as structured text. What is wrong with it is found out when that is read. */
function structured(content: Uint8Array, headers: Readonly<Record<string, unknown>>, contentType: unknown): string {
  const members: string[] = [];
  for (const [name, value] of Object.entries(headers)) {
    if (!PREFIX.test(name)) continue;
    const plain = ["string", "number", "boolean"].includes(typeof value) ? value : String(value);
    members.push(`${JSON.stringify(name.replace(PREFIX, ""))}:${JSON.stringify(plain)}`);
  }
  if (typeof contentType === "string") members.push(`"datacontenttype":${JSON.stringify(contentType)}`);
  if (content.byteLength > 0) members.push(dataMember(content, contentType));
  return `{${members.join(",")}}`;
}

function dataMember(content: Uint8Array, contentType: unknown): string {
  const isJson = contentType === undefined || /[/+]json\b/i.test(String(contentType));
  if (isJson || /^text\//i.test(String(contentType))) {
    try {
      const text = new TextDecoder("utf-8", { fatal: true }).decode(content);
      return `"data":${isJson ? text : JSON.stringify(text)}`;
    } catch {
      // No text: it goes as bytes.
    }
  }
  return `"data_base64":"${encodeBase64(content)}"`;
}
