/**
 * What an order is, and the file they come from.
 *
 * @module
 */
import { readFile } from "node:fs/promises";

/** An order as the web shop sends it. */
export interface Order {
  readonly order: string;
  readonly customer: { readonly name: string; readonly email: string };
  readonly items: readonly Item[];
  readonly totalCents: number;
  readonly payBy: "card" | "invoice";
  readonly address?: Address;
  readonly engraving?: string;
}

/** One position of an order. */
export interface Item {
  readonly sku: string;
  readonly name: string;
  readonly quantity: number;
  readonly cents: number;
}

/** Where a parcel goes. */
export interface Address {
  readonly street: string;
  readonly postcode: string;
  readonly city: string;
  readonly country: string;
}

/** The customer does not want it any more. */
export interface Cancellation {
  readonly order: string;
  readonly why: string;
}

/** One line of `orders.jsonl`: an event of the web shop, ready to be published. */
export type OrderLine =
  & { readonly id: string; readonly time: string; readonly subject: string }
  & (
    | { readonly type: "shop.order.placed"; readonly data: Order }
    | { readonly type: "shop.order.cancelled"; readonly data: Cancellation }
  );

/** The lines of the file, day by day. */
export async function readOrders(): Promise<readonly (readonly OrderLine[])[]> {
  const text = await readFile(new URL("orders.jsonl", import.meta.url), "utf8");
  const days = new Map<string, OrderLine[]>();
  for (const line of text.trimEnd().split("\n")) {
    const event = JSON.parse(line) as OrderLine;
    const day = event.time.slice(0, 10);
    days.set(day, [...days.get(day) ?? [], event]);
  }
  return [...days.values()];
}
