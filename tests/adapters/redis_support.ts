/**
 * What the tests of the Redis transport share.
 *
 * @module
 */
import { createTransport } from "../../adapters/redis/transport.ts";
import type { RedisTransportOptions } from "../../adapters/redis/options.ts";
import type { Clock } from "../../core/clock.ts";
import type { Transport } from "../../core/transport.ts";
import { fresh, type TestContext, until } from "../support/test.ts";
import { Listener } from "./transport_support.ts";

export * from "./transport_support.ts";

/** The slice of ioredis that tests use to look at and disturb a server. */
export interface Admin {
  call(command: string, ...args: (string | number)[]): Promise<unknown>;
  disconnect(): void;
}

/** A client of the test's own; ends with the test. */
export async function admin(context: TestContext, url: string, options: object = {}): Promise<Admin> {
  const { Redis } = await import("ioredis");
  const client = new Redis(url, { maxRetriesPerRequest: 1, lazyConnect: true, ...options });
  client.on("error", () => {});
  await client.connect();
  context.cleanup(() =>
    new Promise<void>((resolve) => {
      client.once("end", () => resolve());
      client.disconnect();
    })
  );
  return client as unknown as Admin;
}

/** The server's clock in the whole milliseconds in which it counts how long an entry is idle. */
export async function serverMs(client: Admin): Promise<number> {
  const [seconds, micros] = await client.call("TIME") as [string, string];
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}

/** A transport of the test, opened, with a prefix of its own unless one is given; ends with the test. */
export async function openTransport(
  context: TestContext,
  options: RedisTransportOptions,
  clock?: Clock,
): Promise<{ transport: Transport; listener: Listener }> {
  const transport = await createTransport(options, clock);
  const listener = new Listener();
  context.cleanup(() => transport.close());
  await transport.open(listener);
  return { transport, listener };
}

/** Names for one test. */
export function names(): {
  prefix: string;
  topic: string;
  group: string;
  stream: string;
  owner: string;
  epoch: string;
  floor: string;
} {
  const prefix = fresh("t");
  const stream = `${prefix}:stream:orders`;
  return {
    prefix,
    topic: "orders",
    group: "billing",
    stream,
    owner: `{${stream}}:owner:billing`,
    epoch: `{${stream}}:epoch:billing`,
    floor: `{${stream}}:floor:billing`,
  };
}

/** How many entries are pending in a group. */
export async function pendingOf(client: Admin, stream: string, group: string): Promise<number> {
  return Number((await client.call("XPENDING", stream, group) as [number])[0]);
}

/** One group as XINFO GROUPS tells it. */
export async function groupInfo(client: Admin, stream: string, group: string): Promise<Record<string, unknown>> {
  for (const row of await client.call("XINFO", "GROUPS", stream) as unknown[][]) {
    const info: Record<string, unknown> = {};
    for (let at = 0; at < row.length; at += 2) info[String(row[at])] = row[at + 1];
    if (info["name"] === group) return info;
  }
  throw new Error("There is no such group");
}

/** Resolves when a read waits at the server, which must be the test's own: one of another client would be taken for it. */
export async function blocked(
  context: TestContext,
  url: string,
  command: RegExp = /cmd=xread(group)?\b/,
): Promise<void> {
  const client = await admin(context, url);
  await until(async () => command.test(String(await client.call("CLIENT", "LIST"))), { what: "a blocked read" });
}
