/**
 * What stands on the wire: the body is the structured CloudEvents text, and the attribute `ce_type` holds its type, as the
 * first reference system writes it. On a FIFO queue the message group is the subject.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { Outgoing } from "../../core/transport.ts";
import { dedupOf, groupOf } from "./ids.ts";

/** One message as SQS is given it. */
export interface Entry {
  readonly MessageBody: string;
  readonly MessageAttributes?: Readonly<Record<string, { readonly DataType: "String"; readonly StringValue: string }>>;
  readonly MessageGroupId?: string;
  readonly MessageDeduplicationId?: string;
}

/** One message as SQS hands it out. */
export interface Received {
  readonly MessageId?: string;
  readonly ReceiptHandle?: string;
  readonly Body?: string;
  readonly MD5OfBody?: string;
  readonly Attributes?: Readonly<Record<string, string>>;
}

/** The attributes of a received message that are asked for. */
export const SYSTEM_ATTRIBUTES = ["ApproximateReceiveCount", "MessageGroupId"] as const;

/**
 * Every code unit that SQS refuses. Source: SendMessage, "A message can include only …". It takes characters beyond the basic
 * plane, but not all that speak its protocol do, so their two halves are refused here too.
 */
// deno-lint-ignore no-control-regex
const REFUSED = /[^\x09\x0A\x0D\x20-\uD7FF\uE000-\uFFFD]/g;

/** The JSON text with what SQS refuses escaped. Outside of strings JSON has no such character, so it says the same. */
export function escapeRefused(text: string): string {
  return text.replace(REFUSED, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function isTaken(text: string): boolean {
  return text !== "" && text.search(REFUSED) === -1;
}

interface Head {
  readonly id?: unknown;
  readonly source?: unknown;
  readonly type?: unknown;
}

/** The usual beginning of an envelope, without escapes in it. */
const HEAD = /^\{"specversion":"1\.0","id":"([^"\\]*)","source":"([^"\\]*)","type":"([^"\\]*)"/;

function headOf(body: string): Head {
  const [, id, source, type] = HEAD.exec(body) ?? [];
  return type === undefined ? JSON.parse(body) as Head : { id, source, type };
}

/** The attribute that the reference system writes. */
const TYPE = "ce_type";

/** One message for SQS. */
export function entryOf(message: Outgoing, fifo: boolean): Entry {
  const { id, source, type } = headOf(message.body);
  const dedup = dedupOf(String(source), String(id), message.replay);
  return {
    MessageBody: escapeRefused(message.body),
    ...(typeof type === "string" && isTaken(type)
      ? { MessageAttributes: { [TYPE]: { DataType: "String", StringValue: type } } }
      : {}),
    ...(fifo ? { MessageGroupId: groupOf(message.subject, dedup), MessageDeduplicationId: dedup } : {}),
  };
}

/** How much of a message's and a batch's limit it takes: body, and attributes with their names and types, in UTF-8 bytes. */
export function sizeOf({ MessageBody, MessageAttributes = {} }: Entry): number {
  let bytes = Buffer.byteLength(MessageBody);
  for (const [name, { DataType, StringValue }] of Object.entries(MessageAttributes)) {
    bytes += Buffer.byteLength(name) + DataType.length + Buffer.byteLength(StringValue);
  }
  return bytes;
}

/** Whether a checksum is that of a text; one that is absent says nothing. */
export function isIntact(text: string, md5: string | undefined): boolean {
  return md5 === undefined || createHash("md5").update(text).digest("hex") === md5;
}

/** Deliveries before this one, as far as SQS counts them. */
export function deliveriesOf({ Attributes }: Received): number {
  return Number(Attributes?.["ApproximateReceiveCount"] ?? 1) - 1;
}
