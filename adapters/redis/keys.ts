/**
 * Names of keys, and which partition a subject belongs to.
 *
 * Streams are named as the first reference system names them: `{prefix}:stream:{topic}`, and with more than one partition
 * `{prefix}:stream:{topic}:{n}` (the braces here stand for values). Everything we keep beside a stream lives in the stream's
 * own cluster slot, so that one script may touch both.
 *
 * @module
 */

const CRC16: Uint16Array = table16();
const CRC32: Uint32Array = table32();
const utf8 = new TextEncoder();

function table16(): Uint16Array {
  const table = new Uint16Array(256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
    table[byte] = crc;
  }
  return table;
}

function table32(): Uint32Array {
  const table = new Uint32Array(256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
    table[byte] = crc;
  }
  return table;
}

/** CRC-32 (ISO 3309) of the UTF-8 bytes of a text: what the reference system divides subjects by. */
export function crc32(text: string): number {
  let crc = 0xffffffff;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code > 0x7f) return crc32Bytes(utf8.encode(text));
    crc = (crc >>> 8) ^ CRC32[(crc ^ code) & 0xff]!;
  }
  return ~crc >>> 0;
}

function crc32Bytes(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ CRC32[(crc ^ byte) & 0xff]!;
  return ~crc >>> 0;
}

/** The partition of a subject; none counts as the empty one. */
export function partitionOf(subject: string | undefined, partitions: number): number {
  return partitions === 1 ? 0 : crc32(subject ?? "") % partitions;
}

/** The stretch of a key that decides its slot: between the first `{` and the next `}`, if anything is between them. */
function hashTag(key: string): string | undefined {
  const open = key.indexOf("{");
  if (open < 0) return undefined;
  const close = key.indexOf("}", open + 1);
  return close > open + 1 ? key.slice(open + 1, close) : undefined;
}

/** The cluster slot of a key, 0 to 16,383. */
export function slotOf(key: string): number {
  return crc16(utf8.encode(hashTag(key) ?? key)) % 16_384;
}

function crc16(bytes: Iterable<number>): number {
  let crc = 0;
  for (const byte of bytes) crc = ((crc << 8) & 0xffff) ^ CRC16[((crc >> 8) ^ byte) & 0xff]!;
  return crc;
}

/**
 * How names beside a stream begin: something that hashes to the stream's own slot. Normally the whole stream key in braces.
 * A key that already holds a hash tag keeps it; one with a stray brace, which cannot stand in braces, is led by the smallest
 * number in braces that falls into its slot.
 */
export function besideOf(stream: string): string {
  if (hashTag(stream) !== undefined) return stream;
  if (!stream.includes("}")) return `{${stream}}`;
  const slot = slotOf(stream);
  let lead = 0;
  while (slotOf(String(lead)) !== slot) lead++;
  return `{${lead}}:${stream}`;
}

/** Keys of one partition for one group, all in one slot. */
export interface PartitionKeys {
  readonly stream: string;
  /** Who owns the partition: a string with a time to live. */
  readonly owner: string;
  /** The last epoch given out: a number that only grows. */
  readonly epoch: string;
  /** Consumer names that ever owned the partition: sorted set by when they were last seen. */
  readonly owners: string;
  /** Everything up to this entry id is settled. */
  readonly floor: string;
}

/** Keys of one topic. */
export class TopicKeys {
  readonly partitions: number;
  /** Stream keys by partition. */
  readonly streams: readonly string[];
  /** Where the number of partitions is recorded: in the slot of the unnumbered stream key. */
  readonly record: string;
  readonly #base: string;

  constructor(prefix: string, topic: string, partitions: number) {
    const base = `${prefix}:stream:${topic}`;
    this.partitions = partitions;
    this.streams = partitions === 1 ? [base] : Array.from({ length: partitions }, (_, n) => `${base}:${n}`);
    this.#base = besideOf(base);
    this.record = `${this.#base}:partitions`;
  }

  /** Live members of a group, when there is more than one partition to share. */
  members(group: string): string {
    return `${this.#base}:members:${group}`;
  }

  /** Keys of one partition for a group. */
  partition(partition: number, group: string): PartitionKeys {
    const stream = this.streams[partition]!;
    const beside = besideOf(stream);
    return {
      stream,
      owner: `${beside}:owner:${group}`,
      epoch: `${beside}:epoch:${group}`,
      owners: `${beside}:owners:${group}`,
      floor: `${beside}:floor:${group}`,
    };
  }
}
