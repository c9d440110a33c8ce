/**
 * Small pieces that transports share.
 *
 * @module
 */
import { hostname } from "node:os";
import process from "node:process";
import type { Clock } from "./clock.ts";
import type { TransportEvents } from "./transport.ts";

/** Whom a transport tells before it was opened: nobody. */
export const SILENT_EVENTS: TransportEvents = {
  owned: () => {},
  revoked: () => {},
  lost: () => {},
  topic: () => {},
  lag: () => {},
  signal: () => {},
};

/** Eight characters, digits and small letters, by the clock's randomness. */
export function randomPart(clock: Clock): string {
  return Math.floor(clock.random() * 36 ** 8).toString(36).padStart(8, "0");
}

/** A name that no other member has; without the machine's where asking for it takes a permission that was not given (on Deno). */
export function memberName(clock: Clock): string {
  let machine = "";
  try {
    machine = `${hostname()}-`;
  } catch {
    // It is a permission of its own.
  }
  return `${machine}${process.pid}-${randomPart(clock)}`;
}

/** What a subscription is kept under: there is one for each topic and group. */
export function subscriptionKey(topic: string, group: string): string {
  return `${group}\0${topic}`;
}
