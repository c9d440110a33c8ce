/**
 * The payment provider: the outside world, as far as this demo needs one.
 *
 * @module
 */

/** What is to be paid. */
export interface Payment {
  readonly order: string;
  readonly cents: number;
  readonly payBy: "card" | "invoice";
}

/**
 * The provider does not answer. `code` and `retriable: true` tell the dispatcher that the event is not to blame: it is tried
 * again after a while, and the failure is not counted towards `maxAttempts`.
 */
export class ProviderDownError extends Error {
  override readonly name = "ProviderDownError";
  readonly code = "provider-down";
  readonly retriable = true;
}

/** Takes money and gives it back. */
export class PaymentProvider {
  /** Receipts by idempotency key. */
  readonly #receipts = new Map<string, string>();
  readonly #refunded = new Set<string>();
  readonly #calls = new Map<string, number>();

  /** How often money was taken. */
  get charges(): number {
    return this.#receipts.size;
  }

  /** How often money was given back. */
  get refunds(): number {
    return this.#refunded.size;
  }

  /**
   * Charges once for a key, however often it is called with it: a handler may run again after its effect took place, so every
   * effect outside the store needs such a key. The event's id is a good one.
   */
  charge(key: string, { order, payBy }: Payment): string {
    const calls = (this.#calls.get(order) ?? 0) + 1;
    this.#calls.set(order, calls);
    if (payBy === "invoice" && calls <= 2) throw new ProviderDownError("the invoice service does not answer");
    const receipt = this.#receipts.get(key) ?? `receipt-${this.#receipts.size + 1}`;
    this.#receipts.set(key, receipt);
    return receipt;
  }

  /** Gives back what a receipt says was paid, once. */
  refund(receipt: string): void {
    this.#refunded.add(receipt);
  }
}
