/**
 * What the tests of all transports share.
 *
 * @module
 */
import { type Clock, systemClock, type Timer } from "../../core/clock.ts";
import type { Native, Raw, Transport, TransportEvents } from "../../core/transport.ts";
import { until } from "../support/test.ts";

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
