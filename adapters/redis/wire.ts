/**
 * What stands on the wire: one stream entry holds the structured CloudEvents text in the field `ce` and the subject in the
 * field `subject` (empty without one), as the first reference system writes it.
 *
 * @module
 */

/** Bytes as the client hands them out (a Node buffer). */
export interface Bytes extends Uint8Array<ArrayBuffer> {
  toString(encoding?: "latin1" | "utf8"): string;
}

/** One entry as read. `body` is null where the stream no longer has it. */
export interface Entry {
  readonly id: string;
  readonly body: Uint8Array | null;
  /** Deliveries before this one. */
  readonly deliveries: number;
}

const EMPTY = new Uint8Array(0);

/**
 * The body among the fields of an entry; no bytes where there is no field `ce`. It is a view of what the socket read, not a
 * copy: the session looks at it at once.
 */
export function bodyOf(fields: readonly Bytes[]): Uint8Array {
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const name = fields[at]!;
    if (name.length === 2 && name[0] === 0x63 && name[1] === 0x65) return fields[at + 1]!;
  }
  return EMPTY;
}

type RawEntry = readonly [id: Bytes, fields: readonly Bytes[] | null];
type RawRead = readonly (readonly [stream: Bytes, entries: readonly RawEntry[]])[] | null;

/** The entries of an XREADGROUP reply, by stream key. */
export function readEntries(reply: unknown): { readonly stream: string; readonly entries: Entry[] }[] {
  return ((reply as RawRead) ?? []).map(([stream, rows]) => ({
    stream: stream.toString("utf8"),
    entries: rows.map(([id, fields]) => ({
      id: id.toString("latin1"),
      body: fields === null ? null : bodyOf(fields),
      deliveries: 0,
    })),
  }));
}

/** The entries that the reading script answered; `undefined` = the partition is not ours. */
export function readFlat(reply: unknown): Entry[] | undefined {
  if (!Array.isArray(reply)) return undefined;
  const entries: Entry[] = [];
  for (let at = 0; at + 1 < reply.length; at += 2) {
    entries.push({
      id: (reply[at] as Bytes).toString("latin1"),
      body: reply[at + 1] as Bytes,
      deliveries: 0,
    });
  }
  return entries;
}

/** What the claiming script answered. */
export interface Claimed {
  readonly lookedAt: number;
  readonly lastId: string;
  /** Entries of another kind of client that are not due yet. */
  readonly strangers: number;
  /** When the first of those is due, milliseconds. */
  readonly dueInMs: number;
  readonly entries: Entry[];
}

/** Reads the answer of the claiming script; `undefined` = the partition is not ours. */
export function readClaimed(reply: unknown): Claimed | undefined {
  if (!Array.isArray(reply)) return undefined;
  const [lookedAt, lastId, strangers, dueInMs] = reply as [number, Bytes, number, number];
  const entries: Entry[] = [];
  for (let at = 4; at + 2 < reply.length; at += 3) {
    entries.push({
      id: (reply[at] as Bytes).toString("latin1"),
      body: reply[at + 2] as Bytes | null,
      deliveries: reply[at + 1] as number,
    });
  }
  return { lookedAt, lastId: lastId.toString("latin1"), strangers, dueInMs, entries };
}

/** Whether entry id `a` is older than `b`. */
export function isOlder(a: string, b: string): boolean {
  const [aMs = "", aSeq = ""] = a.split("-");
  const [bMs = "", bSeq = ""] = b.split("-");
  return aMs === bMs ? numberLess(aSeq, bSeq) : numberLess(aMs, bMs);
}

function numberLess(a: string, b: string): boolean {
  return a.length === b.length ? a < b : a.length < b.length;
}
