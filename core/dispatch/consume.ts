/**
 * The loop over the deliveries of one topic.
 *
 * @module
 */
import { Backoff, type Clock, pause } from "../clock.ts";
import type { BrokerAdapter, Delivery } from "../contract.ts";
import { isEdaError } from "../errors.ts";
import type { Logger } from "../logger.ts";
import type { Budget } from "./budget.ts";

/** What a loop needs. */
export interface ConsumeOptions {
  readonly broker: Pick<BrokerAdapter, "subscribe">;
  readonly topic: string;
  /** Ends after this long with nothing arriving; absent = only with the signal. */
  readonly idleMs: number | undefined;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly budget: Budget;
  readonly log: Logger;
  offer(delivery: Delivery): void;
}

/**
 * Offers every delivery until the stream ends. A stream that fails for a reason that may pass is opened again after a wait;
 * any other reason rejects.
 */
export async function consume(options: ConsumeOptions): Promise<void> {
  const { broker, topic, idleMs, signal, clock, budget, log } = options;
  const backoff = new Backoff(clock, 200, 30_000);
  while (!signal.aborted) {
    try {
      const stream = broker.subscribe(topic, { signal, ...(idleMs === undefined ? {} : { idleMs }) });
      for await (const delivery of stream) {
        options.offer(delivery);
        if (budget.spent()) await budget.pause();
        if (backoff.failures > 0) backoff.reset();
      }
      return;
    } catch (error) {
      if (signal.aborted) return;
      if (!isEdaError(error) || !error.retriable) throw error;
      log.warn("a subscription failed and is opened again", { topic, code: error.code });
      await pause(clock, backoff.next(), signal);
    }
  }
}
