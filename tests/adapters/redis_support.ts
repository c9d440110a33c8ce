/**
 * What the tests of the Redis transport share.
 *
 * @module
 */
import { createTransport } from "../../adapters/redis/transport.ts";
import type { RedisTransportOptions } from "../../adapters/redis/options.ts";
import type { Native, Raw, Transport, TransportEvents } from "../../core/transport.ts";
import { type Clock, systemClock, type Timer } from "../../core/clock.ts";
import { fresh, type TestContext, until } from "../support/test.ts";

/** A line of what a transport told, such as `owned`, `revoked lease`, `topic standby`, `signal group-lost`. */
export interface Told {
  readonly kind: "owned" | "revoked" | "lost" | "topic" | "lag" | "signal";
  readonly text: string;
  readonly partition?: number;
  readonly epoch?: number;
  readonly leaseUntil?: number;
}

/** Writes down what a transport tells. */
export class Listener implements TransportEvents {
  readonly told: Told[] = [];

  owned(_topic: string, _group: string, partition: number, epoch: number, leaseUntil: number): void {
    this.told.push({ kind: "owned", text: "", partition, epoch, leaseUntil });
  }
  revoked(_topic: string, _group: string, partition: number, why: string): void {
    this.told.push({ kind: "revoked", text: why, partition });
  }
  lost(_topic: string, _group: string, natives: readonly Native[], why: string): void {
    this.told.push({ kind: "lost", text: `${natives.length}: ${why}` });
  }
  topic(_topic: string, _group: string, state: "active" | "standby"): void {
    this.told.push({ kind: "topic", text: state });
  }
  lag(_topic: string, _group: string, count: number): void {
    this.told.push({ kind: "lag", text: String(count) });
  }
  signal(name: string): void {
    this.told.push({ kind: "signal", text: name });
  }

  /** How often something was told. */
  count(kind: Told["kind"], text?: string): number {
    return this.told.filter((told) => told.kind === kind && (text === undefined || told.text === text)).length;
  }

  /** Resolves when something was told `times` times. */
  async heard(kind: Told["kind"], text?: string, times = 1): Promise<void> {
    await until(() => this.count(kind, text) >= times, { what: `${kind} ${text ?? ""}`, timeoutMs: 15_000 });
  }
}

/** The slice of ioredis that tests use to look at and disturb a server. */
export interface Admin {
  call(command: string, ...args: (string | number)[]): Promise<unknown>;
  disconnect(): void;
}

/** The real clock, until it is frozen: then no timer fires, as in a process that was stopped. */
export class FreezableClock implements Clock {
  frozen = false;
  now(): number {
    return systemClock.now();
  }
  monotonic(): number {
    return systemClock.monotonic();
  }
  random(): number {
    return systemClock.random();
  }
  turn(run: () => void): void {
    systemClock.turn(run);
  }
  timer(delayMs: number, run: () => void): Timer {
    return systemClock.timer(delayMs, () => {
      if (!this.frozen) run();
    });
  }
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

/** One topic and group as a test sees it. */
export class Reader {
  readonly topic: string;
  readonly group: string;
  readonly transport: Transport;
  #stop = new AbortController();

  constructor(transport: Transport, topic: string, group: string) {
    this.transport = transport;
    this.topic = topic;
    this.group = group;
  }

  /** One fetch. */
  fetch(waitMs = 0, max = 256, signal: AbortSignal = this.#stop.signal): Promise<readonly Raw[]> {
    return this.transport.fetch(this.topic, { group: this.group, max, window: 10_000, waitMs, signal });
  }

  /** Fetches until `count` messages came. */
  async take(count: number, timeoutMs = 15_000, max = 256): Promise<Raw[]> {
    const got: Raw[] = [];
    const end = performance.now() + timeoutMs;
    while (got.length < count) {
      const left = end - performance.now();
      if (left <= 0) throw new Error(`Only ${got.length} of ${count} messages came within ${timeoutMs} ms`);
      got.push(...await this.fetch(Math.min(left, 2_000), Math.min(max, count - got.length)));
    }
    return got;
  }

  /** As {@link take}, through failures, as a session would: it opens the transport again and goes on. */
  async takeThrough(count: number, listener: TransportEvents, timeoutMs = 15_000): Promise<Raw[]> {
    const got: Raw[] = [];
    const end = performance.now() + timeoutMs;
    while (got.length < count) {
      const left = end - performance.now();
      if (left <= 0) throw new Error(`Only ${got.length} of ${count} messages came within ${timeoutMs} ms`);
      try {
        got.push(...await this.fetch(Math.min(left, 2_000), count - got.length));
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 50));
        await this.transport.open(listener).catch(() => {});
      }
    }
    return got;
  }

  ack(raws: readonly Raw[]): Promise<readonly string[]> {
    return this.transport.ack(this.topic, this.group, raws.map((raw) => raw.native));
  }

  release(raws: readonly Raw[]): Promise<readonly string[]> {
    return this.transport.release(this.topic, this.group, raws.map((raw) => raw.native), 0);
  }

  extend(raws: readonly Raw[]): Promise<readonly string[]> {
    return this.transport.extend!(this.topic, this.group, raws.map((raw) => raw.native));
  }

  /** Ends waits. */
  abort(): void {
    this.#stop.abort();
    this.#stop = new AbortController();
  }
}

/** Bodies `from` … `to`, as texts. */
export function bodies(from: number, to: number): string[] {
  return Array.from({ length: to - from + 1 }, (_, at) => `m${from + at}`);
}

/** Publishes bodies under one subject and expects all to be confirmed. */
export async function publish(
  transport: Transport,
  topic: string,
  texts: readonly string[],
  subject?: string,
): Promise<void> {
  const outcomes = await transport.send(
    topic,
    texts.map((body) => subject === undefined ? { body } : { body, subject }),
  );
  const failed = outcomes.find((outcome) => outcome !== undefined);
  if (failed !== undefined) throw failed;
}

/** The bodies of what was read, as text. */
export function bodiesOf(raws: readonly Raw[]): (string | null)[] {
  return raws.map(({ body }) => body === null || typeof body === "string" ? body : new TextDecoder().decode(body));
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
