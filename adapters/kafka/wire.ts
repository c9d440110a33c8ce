/**
 * What stands on the wire: a record's value is the structured CloudEvents text, its key the subject in UTF-8 (none without
 * one), with the headers `content-type`, `ce_id` and `ce_type`, as the first reference system writes it. Records in binary
 * mode (CloudEvents Kafka binding 1.0.2, section 3.2) are read too.
 *
 * @module
 */
import { Buffer } from "node:buffer";

/** The slice of a record that is written. */
export interface RecordOut {
  readonly key: Uint8Array | null;
  readonly value: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The slice of a record that is read. */
export interface RecordIn {
  readonly offset: string;
  readonly key: Uint8Array | null;
  readonly value: Uint8Array | null;
  readonly headers?: Readonly<Record<string, HeaderIn | readonly HeaderIn[] | undefined>>;
}

type HeaderIn = Uint8Array | string;

const STRUCTURED = "application/cloudevents+json; charset=UTF-8";

/** Canonical text begins like this, unless a value holds an escape. */
const HEAD = /^\{"specversion":"1\.0","id":"([^"\\]*)","source":"[^"\\]*","type":"([^"\\]*)"/;

/** The key of a subject. */
export function keyOf(subject: string | undefined): Uint8Array | null {
  return subject === undefined ? null : Buffer.from(subject, "utf8");
}

/** The headers of a message. */
export function headersOf(body: string): Readonly<Record<string, string>> {
  const head = HEAD.exec(body);
  if (head !== null) return { "content-type": STRUCTURED, ce_id: head[1]!, ce_type: head[2]! };
  const { id, type } = JSON.parse(body) as { readonly id: string; readonly type: string };
  return { "content-type": STRUCTURED, ce_id: id, ce_type: type };
}

/**
 * The structured text or bytes of a record; null for one without a value, a tombstone. A record in binary mode becomes
 * structured, unless it is larger than `maxBytes`, which is found out from the value alone.
 */
export function bodyOf(record: RecordIn, maxBytes: number): Uint8Array | string | null {
  const { value } = record;
  const contentType = headerOf(record, "content-type");
  const isStructured = contentType !== undefined && /^\s*application\/cloudevents/i.test(contentType);
  // Our own records carry some attributes as headers as well; only binary ones carry this.
  if (isStructured || headerOf(record, "ce_specversion") === undefined) return value;
  if (value !== null && value.length > maxBytes) return value;
  return structuredOf(record, contentType);
}

function structuredOf(record: RecordIn, contentType: string | undefined): string {
  const members: string[] = [];
  for (const name of Object.keys(record.headers ?? {})) {
    // Header names are case sensitive in Kafka, but some clients write them in capitals.
    const attribute = /^ce_(.+)$/i.exec(name)?.[1]?.toLowerCase();
    if (attribute === undefined || attribute === "data" || attribute === "data_base64") continue;
    members.push(`${JSON.stringify(attribute)}:${JSON.stringify(headerOf(record, name) ?? "")}`);
  }
  if (contentType !== undefined) members.push(`"datacontenttype":${JSON.stringify(contentType)}`);
  const { value } = record;
  if (value !== null && value.length > 0) {
    const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    const isJson = contentType === undefined || /^[^;]*[/+]json\s*(?:;|$)/i.test(contentType);
    members.push(isJson ? `"data":${bytes.toString("utf8")}` : `"data_base64":"${bytes.toString("base64")}"`);
  }
  return `{${members.join(",")}}`;
}

function headerOf({ headers }: RecordIn, name: string): string | undefined {
  const found = headers?.[name];
  const value = Array.isArray(found) ? found[0] as HeaderIn | undefined : found as HeaderIn | undefined;
  return value === undefined || typeof value === "string" ? value : Buffer.from(value).toString("utf8");
}
