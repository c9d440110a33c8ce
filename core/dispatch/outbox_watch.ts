/**
 * Knows how full the outbox is, so that health can tell without asking the store.
 *
 * @module
 */
import { pause } from "../clock.ts";
import type { Services } from "./services.ts";

const EVERY_MS = 10_000;

/** Looks at the outbox now and then. */
export class OutboxWatch {
  readonly #services: Services;
  /** Rows not yet sent, when last looked at. */
  pending: number | undefined;

  constructor(services: Services) {
    this.#services = services;
  }

  /** Looks until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    do await this.look(); while (await pause(this.#services.clock, EVERY_MS, signal));
  }

  /** Looks once; a store that does not answer leaves it unknown. */
  async look(): Promise<void> {
    this.pending = await this.#services.store.outbox.pending().catch(() => undefined);
  }
}
