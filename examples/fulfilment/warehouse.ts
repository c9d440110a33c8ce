/**
 * The warehouse: the outside world, as far as this demo needs one.
 *
 * @module
 */
import type { Order } from "./order.ts";

/** Packs and ships. */
export class Warehouse {
  readonly #engravingMs: number;

  /** @param engravingMs How long the computer is busy with an engraving. */
  constructor(engravingMs: number) {
    this.#engravingMs = engravingMs;
  }

  /** Packs an order; answers the label of the parcel. Fails for good where there is no address to print. */
  pack({ order, address, engraving }: Order): string {
    if (engraving !== undefined) burn(this.#engravingMs);
    if (address === undefined) throw new TypeError("the label cannot be printed: the order has no address");
    return `${order}, ${address.street}, ${address.postcode} ${address.city}, ${address.country}`;
  }

  /** Hands a parcel to the carrier; answers the tracking number. */
  ship(order: string): string {
    return `track-${order}`;
  }
}

/**
 * Computes for `ms` without a pause, as image processing or a big report would. Nothing else of this thread runs meanwhile: no
 * timer, no socket. The broker's connection and leases live in a worker and go on.
 */
function burn(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}
