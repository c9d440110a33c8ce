/**
 * What the driver tells its child processes, and how they talk: one JSON line each way.
 *
 * @module
 */
import { writeSync } from "node:fs";
import process from "node:process";
import { NatsJetStreamBroker } from "../../adapters/nats/mod.ts";
import { RedisStreamsBroker } from "../../adapters/redis/mod.ts";
import type { AsyncBroker } from "../../core/broker.ts";

/** What all processes of a team share. */
export interface TeamSettings {
  readonly url: string;
  readonly prefix: string;
  readonly topic: string;
  readonly group: string;
  readonly partitions: number;
  readonly prefetch: number;
  readonly ownerLeaseMs: number;
  readonly isolation: "worker" | "inline";
  /** The list at the server to which all write what they do. */
  readonly journal: string;
}

/** What one member is told at its start. */
export interface MemberSettings extends TeamSettings {
  /** Its name in the group. */
  readonly name: string;
  /** Most deliveries in hand at a time. */
  readonly inFlight: number;
  /** A message takes up to so long, milliseconds. */
  readonly workMs: number;
  /** `settle` as usual · `hold`: takes what it gets and settles it only when told to `settle`. */
  readonly mode: "settle" | "hold";
}

/** What the publisher is told. */
export interface PublisherSettings extends TeamSettings {
  readonly publishers: number;
  readonly subjects: number;
  /** Messages a second, of all publishers together. */
  readonly perSecond: number;
}

/** What a child says. */
export type Said =
  | { readonly k: "ready" }
  | { readonly k: "time"; readonly now: number }
  | { readonly k: "holding"; readonly count: number }
  | { readonly k: "outcomes"; readonly outcomes: Readonly<Record<string, number>> }
  | { readonly k: "closed"; readonly released: number; readonly unconfirmed: number }
  | { readonly k: "published"; readonly counts: Readonly<Record<string, number>> }
  | { readonly k: "failed"; readonly error: string };

/** Says one thing to the driver. Synchronous, so that a process that is killed has said it. */
export function say(said: Said): void {
  writeSync(1, `${JSON.stringify(said)}\n`);
}

/** Calls `command` for every word that the driver says. */
export function listen(command: (word: string) => void): void {
  let rest = "";
  process.stdin.setEncoding("utf8");
  process.stdin.on("data", (text: string) => {
    const words = (rest + text).split("\n");
    rest = words.pop() ?? "";
    for (const word of words) command(word);
  });
  // The driver is gone: nobody else would end us.
  process.stdin.on("end", () => process.exit(1));
}

/** What a child was told at its start. */
export function told<T>(): T {
  return JSON.parse(process.argv[2] ?? "{}") as T;
}

/** Whether a team works on NATS; else it is a Redis. */
export function isNats(url: string): boolean {
  return url.startsWith("nats:");
}

/** A broker of a team; `own` are options that both kinds of broker have. */
export function makeBroker(
  settings: TeamSettings,
  own: { readonly consumer?: string; readonly isolation?: "inline" } = {},
): AsyncBroker {
  const { url, prefix, group, partitions, prefetch, ownerLeaseMs, isolation } = settings;
  const common = { url, group, partitions, prefetch, ownerLeaseMs, isolation, source: "/reliability", ...own };
  if (isNats(url)) return new NatsJetStreamBroker({ ...common, logger: false });
  return new RedisStreamsBroker({ ...common, prefix, logger: false });
}
