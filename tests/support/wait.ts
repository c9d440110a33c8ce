/**
 * Fresh names, and waiting with a deadline.
 *
 * @module
 */
import process from "node:process";

let counter = 0;

/** A name that no other test uses, on this machine or another: for topics, groups, tables. */
export function fresh(prefix: string): string {
  const random = Math.floor(Math.random() * 36 ** 5).toString(36);
  return `${prefix}-${process.pid.toString(36)}-${(++counter).toString(36)}-${Date.now().toString(36)}${random}`;
}

/** How {@link until} waits. */
export interface UntilOptions {
  /** Rejects after this many milliseconds; 10,000 by default. */
  readonly timeoutMs?: number;
  /** Milliseconds between two looks; 10 by default. */
  readonly everyMs?: number;
  /** What is awaited, for the error message. */
  readonly what?: string;
}

/**
 * Polls `check` until it answers something truthy, and resolves to that. Only for state that announces itself through no
 * event (a server's own counters, a process list); where there is an event, await the event.
 *
 * @throws Error after `timeoutMs`, with the last error that `check` threw as its cause.
 */
export async function until<T>(
  check: () => T | Promise<T>,
  options: UntilOptions = {},
): Promise<Exclude<T, false | null | undefined | 0 | "">> {
  const { timeoutMs = 10_000, everyMs = 10, what = "the condition" } = options;
  const end = performance.now() + timeoutMs;
  for (;;) {
    let cause: unknown;
    try {
      const value = await check();
      if (value) return value as Exclude<T, false | null | undefined | 0 | "">;
    } catch (error) {
      cause = error;
    }
    if (performance.now() >= end) {
      throw new Error(`Waited ${timeoutMs} ms for ${what}`, cause === undefined ? {} : { cause });
    }
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}

/** Settles like `work`, or rejects after `timeoutMs` saying what was awaited. */
export async function within<T>(timeoutMs: number, what: string, work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    return await Promise.race([
      work,
      new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error(`Waited ${timeoutMs} ms for ${what}`)), timeoutMs);
      }),
    ]);
  } finally {
    clearTimeout(timer);
  }
}
