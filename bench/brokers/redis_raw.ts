/**
 * The raw client: what somebody who knows ioredis well would write without this library.
 *
 * @module
 */
import { Redis } from "ioredis";
import type { RawEvent } from "../support/broker.ts";
import { freshText, PARTS, subjectOf, SUBJECTS } from "../support/event.ts";

/** A connected client. */
export type Client = Redis;

/** Connects a client. */
export async function client(url: string, options: { readonly enableAutoPipelining?: boolean } = {}): Promise<Client> {
  // Version 6 speaks RESP 3 by itself, with other replies; earlier ones do not know the option.
  const redis = new Redis(url, { lazyConnect: true, ...{ protocol: 2 }, ...options });
  // While the server is away on purpose.
  redis.on("error", () => {});
  await redis.connect();
  return redis;
}

/** CPU time of the server so far, microseconds. */
export async function serverCpu(redis: Client): Promise<number> {
  const info = await redis.info("cpu");
  const seconds = (name: string): number => Number(info.match(new RegExp(`${name}:([\\d.]+)`))?.[1]);
  return (seconds("used_cpu_user") + seconds("used_cpu_sys")) * 1_000_000;
}

/** Appends `count` events to a stream, made by the server itself. */
export async function fill(redis: Client, stream: string, count: number, from = 0): Promise<void> {
  const script = `
local stream, first, last, subjects = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
for n = first, last do
  local id = string.format('%026d', n)
  local subject = string.format('%04d', n % subjects)
  redis.call('XADD', stream, '*', 'ce', ARGV[4] .. id .. ARGV[5] .. subject .. ARGV[6], 'subject', 'order-' .. subject)
end`;
  const texts = [PARTS.beforeId, PARTS.beforeSubject, PARTS.afterSubject];
  for (let at = 0; at < count; at += 5_000) {
    const last = Math.min(count, at + 5_000) - 1;
    await redis.eval(script, 1, stream, from + at, from + last, SUBJECTS, ...texts);
  }
}

type Reply = [stream: string, entries: [id: string, fields: string[]][]][] | null;

const COUNT = 256;

function read(redis: Client, stream: string, group: string): Promise<Reply> {
  return redis.call("XREADGROUP", "GROUP", group, "raw", "COUNT", COUNT, "STREAMS", stream, ">") as Promise<Reply>;
}

/** Parses and handles a batch; answers the ids to ack. */
function handleAll(reply: Reply, handle: (event: RawEvent) => void): string[] {
  const ids: string[] = [];
  for (const [id, fields] of reply?.[0]?.[1] ?? []) {
    handle(JSON.parse(fields[1]!) as RawEvent);
    ids.push(id);
  }
  return ids;
}

/**
 * The simple loop: read, parse, process, then ack the batch and read the next one in the same turn. Resolves when `count`
 * messages are acked.
 */
export async function simpleLoop(
  redis: Client,
  stream: string,
  group: string,
  count: number,
  handle: (event: RawEvent) => void,
): Promise<void> {
  let acking: Promise<unknown> = Promise.resolve();
  let next = read(redis, stream, group);
  for (let done = 0; done < count;) {
    const ids = handleAll(await next, handle);
    done += ids.length;
    if (ids.length > 0) acking = redis.xack(stream, group, ...ids);
    if (done < count) next = read(redis, stream, group);
  }
  await acking;
}

/**
 * The double loop: as the simple one with a second read always outstanding, so that the server and the socket never wait for
 * the parsing.
 */
export async function doubleLoop(
  redis: Client,
  stream: string,
  group: string,
  count: number,
  handle: (event: RawEvent) => void,
): Promise<void> {
  let acking: Promise<unknown> = Promise.resolve();
  let next = read(redis, stream, group);
  let afterNext = read(redis, stream, group);
  for (let done = 0; done < count;) {
    const ids = handleAll(await next, handle);
    done += ids.length;
    next = afterNext;
    if (ids.length > 0) acking = redis.xack(stream, group, ...ids);
    if (done < count) afterNext = read(redis, stream, group);
  }
  await Promise.all([acking, next, afterNext]);
}

/** Publishes `count` events, `inFlight` at a time, one command and one promise each. */
export async function publishOneByOne(redis: Client, stream: string, count: number, inFlight: number): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) {
      const n = next++;
      await redis.xadd(stream, "*", "ce", freshText(n), "subject", subjectOf(n));
    }
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
}

/** Publishes `count` events in explicit pipelines of `size`, `lanes` pipelines at a time. */
export async function publishPipelined(
  redis: Client,
  stream: string,
  count: number,
  size: number,
  lanes: number,
): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) {
      const pipeline = redis.pipeline();
      for (let n = 0; n < size && next < count; n++) {
        const at = next++;
        pipeline.xadd(stream, "*", "ce", freshText(at), "subject", subjectOf(at));
      }
      for (const [error] of await pipeline.exec() ?? []) if (error !== null) throw error;
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}
