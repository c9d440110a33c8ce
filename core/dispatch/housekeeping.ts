/**
 * Removes what has expired.
 *
 * @module
 */
import { pause } from "../clock.ts";
import { errorName } from "../guard.ts";
import type { Services } from "./services.ts";

const FIRST_MS = 60_000;
const EVERY_MS = 3_600_000;
/** Counts of events that somebody else finished are kept this long. */
const FAILURES_MS = 7 * 24 * 3_600_000;

/** Purges receipts and failure counts once an hour until `signal` aborts. */
export async function housekeep(services: Services, signal: AbortSignal): Promise<void> {
  const { clock, store, log } = services;
  let go = await pause(clock, FIRST_MS, signal);
  while (go) {
    try {
      await store.inbox.purge(clock.now() - services.inboxRetentionMs);
      await store.failures.purge(clock.now() - Math.max(FAILURES_MS, services.inboxRetentionMs));
    } catch (error) {
      log.warn("expired receipts could not be removed", { error: errorName(error) });
    }
    go = await pause(clock, EVERY_MS, signal);
  }
}
