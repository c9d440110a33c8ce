import { fromInspected } from "./codec.ts";
import type { AckOptions, Delivery, RetryOptions, SettleOutcome } from "./contract.ts";
import type { Envelope } from "./envelope.ts";

/** What a delivery needs of the subscription it came from. */
export interface DeliveryOwner {
  readonly topic: string;
  settle(delivery: HeldDelivery, kind: "ack" | "drop", options: AckOptions | undefined): Promise<SettleOutcome>;
  retry(delivery: HeldDelivery, options: RetryOptions | undefined): Promise<SettleOutcome>;
  dropped(delivery: HeldDelivery, reason: string): void;
}

/**
 * `open`: handed out · `settled`: acked, dropped or held back by its consumer · `lost`: no longer ours, settles are stale.
 */
export type DeliveryState = "open" | "settled" | "lost";

/** One message as it crossed from the session. */
export interface Item {
  readonly id: number;
  readonly text: string;
  readonly dataAt: number;
  readonly attempt: number;
}

/** A delivery handed to a consumer. The envelope is read on first access, the signal made on first access. */
export class HeldDelivery implements Delivery, Item {
  readonly id: number;
  readonly text: string;
  readonly dataAt: number;
  readonly attempt: number;
  /** For the ledger only. */
  state: DeliveryState = "open";
  readonly #owner: DeliveryOwner;
  #envelope: Envelope | undefined;
  #abort: AbortController | undefined;

  constructor(owner: DeliveryOwner, item: Item) {
    this.#owner = owner;
    this.id = item.id;
    this.text = item.text;
    this.dataAt = item.dataAt;
    this.attempt = item.attempt;
  }

  get topic(): string {
    return this.#owner.topic;
  }

  get envelope(): Envelope {
    return this.#envelope ??= readItem(this);
  }

  /** Puts what the schema made of it in place of the envelope as received. */
  replaceEnvelope(envelope: Envelope): void {
    this.#envelope = envelope;
  }

  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.state === "lost") this.#abort.abort();
    }
    return this.#abort.signal;
  }

  get lost(): boolean {
    return this.state === "lost";
  }

  /** For the ledger only: it is no longer ours. */
  lose(reason: Error): void {
    this.state = "lost";
    this.#abort?.abort(reason);
  }

  ack(options?: AckOptions): Promise<SettleOutcome> {
    return this.#owner.settle(this, "ack", options);
  }

  retry(options?: RetryOptions): Promise<SettleOutcome> {
    return this.#owner.retry(this, options);
  }

  drop(reason: string, options?: AckOptions): Promise<SettleOutcome> {
    this.#owner.dropped(this, reason);
    return this.#owner.settle(this, "drop", options);
  }
}

/** The envelope of an item, read anew. */
export function readItem(item: Item): Envelope {
  const binary = item.dataAt < -1;
  return fromInspected(item.text, binary ? -item.dataAt - 2 : item.dataAt, binary);
}
