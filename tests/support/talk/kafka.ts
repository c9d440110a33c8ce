/**
 * As much of Kafka's protocol as the tests of the bed need: make a topic of one partition, write a record, read all.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { probe } from "../bed/probe.ts";

const int = (bytes: 1 | 2 | 4 | 8, value: number): Buffer => {
  const buffer = Buffer.alloc(bytes);
  if (bytes === 8) buffer.writeBigInt64BE(BigInt(value));
  else buffer.writeIntBE(value, 0, bytes);
  return buffer;
};
const text = (value: string): Buffer => Buffer.concat([int(2, value.length), Buffer.from(value)]);
const list = (...items: readonly Buffer[]): Buffer => Buffer.concat([int(4, items.length), ...items]);
/** The zigzag form of a small number. */
const varint = (value: number): Buffer => Buffer.from([value < 0 ? -2 * value - 1 : 2 * value]);

const CORRELATION = 7;

/** Sends one request and resolves to the body of its answer. */
async function ask(port: number, api: number, version: number, ...body: readonly Buffer[]): Promise<Buffer> {
  const request = Buffer.concat([int(2, api), int(2, version), int(4, CORRELATION), text("bed"), ...body]);
  const answer = await probe(
    { port, tls: false },
    Buffer.concat([int(4, request.length), request]),
    (bytes) => bytes.length >= 4 && bytes.length >= 4 + bytes.readInt32BE(0) ? bytes.subarray(4) : undefined,
  );
  if (answer === undefined) throw new Error("No answer from Kafka");
  if (answer.readInt32BE(0) !== CORRELATION) throw new Error("An answer to another request");
  return answer.subarray(4);
}

/** Makes a topic of one partition. */
export async function createTopic(port: number, topic: string): Promise<void> {
  const wanted = Buffer.concat([text(topic), int(4, 1), int(2, 1), list(), list()]);
  const answer = await ask(port, 19, 2, list(wanted), int(4, 10_000), int(1, 0));
  // Throttle time, one topic: its name, its code.
  refuse(answer.readInt16BE(8 + 2 + topic.length));
}

/** Writes one record; resolves to its offset once the server has it. */
export async function produce(port: number, topic: string, value: string): Promise<number> {
  const batch = recordBatch(value);
  const partition = Buffer.concat([int(4, 0), int(4, batch.length), batch]);
  const topics = list(Buffer.concat([text(topic), list(partition)]));
  const answer = await ask(port, 0, 3, int(2, -1), int(2, -1), int(4, 10_000), topics);
  // One topic, its name, one partition: its number, its code, the offset.
  const at = 4 + 2 + topic.length + 4 + 4;
  refuse(answer.readInt16BE(at));
  return Number(answer.readBigInt64BE(at + 2));
}

/** Reads from the first record on; resolves to what came, records and all between them. */
export async function fetchAll(port: number, topic: string): Promise<string> {
  const partition = Buffer.concat([int(4, 0), int(8, 0), int(4, 1_000_000)]);
  const topics = list(Buffer.concat([text(topic), list(partition)]));
  const answer = await ask(port, 1, 4, int(4, -1), int(4, 100), int(4, 0), int(4, 1_000_000), int(1, 0), topics);
  // Throttle time, one topic, its name, one partition: its number, its code.
  refuse(answer.readInt16BE(4 + 4 + 2 + topic.length + 4 + 4));
  return answer.toString("latin1");
}

/** Asks how a listener wants clients to name themselves; resolves to the mechanisms that it takes. */
export async function mechanisms(port: number): Promise<string> {
  const answer = await ask(port, 17, 1, text("NONE"));
  return answer.toString("latin1", 2);
}

function refuse(code: number): void {
  if (code !== 0) throw new Error(`Kafka answered with the code ${code}`);
}

/** One record in a batch of format 2. */
function recordBatch(value: string): Buffer {
  const record = Buffer.concat([
    ...[int(1, 0), varint(0), varint(0), varint(-1)],
    ...[varint(value.length), Buffer.from(value), varint(0)],
  ]);
  const now = Date.now();
  const checked = Buffer.concat([
    // Attributes, last offset, first and last time, producer's id, epoch and sequence, one record.
    ...[int(2, 0), int(4, 0), int(8, now), int(8, now), int(8, -1), int(2, -1), int(4, -1), int(4, 1)],
    ...[varint(record.length), record],
  ]);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32c(checked));
  const rest = Buffer.concat([int(4, -1), int(1, 2), sum, checked]);
  return Buffer.concat([int(8, 0), int(4, rest.length), rest]);
}

function crc32c(bytes: Uint8Array): number {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return ~crc >>> 0;
}
