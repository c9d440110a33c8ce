/**
 * A second instance of the service. While the first one lives it stands by: a partition has one owner at a time, or order could
 * not be kept. It gets work only if the owner's lease runs out.
 *
 * @module
 */
import { setTimeout } from "node:timers/promises";
import type { BrokerAdapter } from "@xsm/eda";
import { openBroker } from "./brokers.ts";

/** Waits for work on one topic, in the service's own group. */
export class Standby {
  /** Deliveries that came here. Each is one that the first instance lost. */
  received = 0;
  readonly #broker: BrokerAdapter = openBroker({ group: "fulfilment" });
  readonly #stop = new AbortController();
  #loop: Promise<void> | undefined;

  /** Starts waiting; resolves once it stands by. */
  async start(topic: string): Promise<void> {
    this.#loop = this.#wait(topic);
    // Standing by is a healthy state that health tells and no event announces.
    while (this.#broker.health().topics[0]?.state === "starting") await setTimeout(10);
  }

  async #wait(topic: string): Promise<void> {
    for await (const delivery of this.#broker.subscribe(topic, { signal: this.#stop.signal })) {
      this.received++;
      // One is enough to know; it goes back to the first instance.
      await delivery.retry();
      void this.#broker.close();
    }
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#loop;
    await this.#broker.close();
  }
}
