/**
 * An auditor: a second group on the same topics. Each group gets every message, so this one reads again, in the broker's own
 * order, what the service has handled. It is also the plain loop, without a dispatcher.
 *
 * @module
 */
import type { BrokerAdapter } from "@xsm/eda";
import { openBroker } from "./brokers.ts";
import { sequenceOf } from "./observer.ts";

/** Reads what was published. */
export class Audit {
  readonly #topics: readonly string[];
  readonly #broker: BrokerAdapter = openBroker({ group: "audit" });

  constructor(topics: readonly string[]) {
    this.#topics = topics;
  }

  /** Everything published since the last read: sequence to the ids of its events, in the order of publishing. */
  async read(): Promise<ReadonlyMap<string, readonly string[]>> {
    const sequences = new Map<string, string[]>();
    for (const topic of this.#topics) {
      // `idleMs: 0` ends the loop once all that is ready was read.
      for await (const delivery of this.#broker.subscribe(topic, { idleMs: 0 })) {
        const key = sequenceOf(topic, delivery.envelope);
        sequences.set(key, [...sequences.get(key) ?? [], delivery.envelope.id]);
        await delivery.ack();
      }
    }
    return sequences;
  }

  async close(): Promise<void> {
    await this.#broker.close();
  }
}
