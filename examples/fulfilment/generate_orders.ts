/**
 * Writes `orders.jsonl`, the same file each time: `deno run --allow-write=. generate_orders.ts` in this folder.
 *
 * @module
 */
import { writeFileSync } from "node:fs";
import type { Address, Item, Order, OrderLine } from "./order.ts";

const FIRST_NAMES = [
  "Amara",
  "Ben",
  "Carla",
  "Dmitri",
  "Elif",
  "Femi",
  "Greta",
  "Hiro",
  "Ines",
  "Jonas",
  "Kavya",
  "Lena",
];
const LAST_NAMES = ["Adler", "Bose", "Castro", "Dumont", "Egger", "Fischer", "Garcia", "Haas", "Ito", "Jansen", "Kaya"];
const STREETS = [
  "Lindenweg",
  "Rue du Marché",
  "Via Roma",
  "Calle Mayor",
  "Station Road",
  "Kirchgasse",
  "Keizersgracht",
];
const CITIES: readonly (readonly [postcode: string, city: string, country: string])[] = [
  ["10115", "Berlin", "DE"],
  ["75011", "Paris", "FR"],
  ["20121", "Milano", "IT"],
  ["28013", "Madrid", "ES"],
  ["1016", "Amsterdam", "NL"],
  ["8001", "Zürich", "CH"],
  ["1070", "Wien", "AT"],
];
const CATALOGUE: readonly (readonly [sku: string, name: string, cents: number])[] = [
  ["GR-20", "Hand grinder, steel burrs", 8_900],
  ["KE-08", "Gooseneck kettle 0.8 l", 6_450],
  ["DR-02", "Ceramic dripper, size 2", 2_390],
  ["FP-100", "Paper filters, 100", 649],
  ["SC-01", "Scale with timer", 4_900],
  ["CU-04", "Cups, set of four", 3_200],
  ["BE-ET", "Beans, Ethiopia, 250 g", 1_290],
  ["BE-CO", "Beans, Colombia, 1 kg", 3_190],
];

/** Numbers in [0, 1) that are the same in every run (mulberry32). */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const random = randomNumbers(20_250_303);
const below = (limit: number): number => Math.floor(random() * limit);
const pick = <T>(list: readonly T[]): T => list[below(list.length)]!;

function makeAddress(): Address {
  const [postcode, city, country] = pick(CITIES);
  return { street: `${pick(STREETS)} ${1 + below(120)}`, postcode, city, country };
}

function makeItems(): Item[] {
  const chosen = new Set(Array.from({ length: 1 + below(3) }, () => pick(CATALOGUE)));
  return [...chosen].map(([sku, name, cents]) => ({ sku, name, quantity: 1 + below(3), cents }));
}

function makeOrder(number: number): Order & { readonly address: Address } {
  const [first, last] = [pick(FIRST_NAMES), pick(LAST_NAMES)];
  const items = makeItems();
  return {
    order: `o-${number}`,
    customer: { name: `${first} ${last}`, email: `${first}.${last}@example.com`.toLowerCase() },
    items,
    totalCents: items.reduce((sum, { cents, quantity }) => sum + cents * quantity, 0),
    // Invoices are paid through a second provider, which is down when the demo begins.
    payBy: number % 25 === 7 ? "invoice" : "card",
    address: makeAddress(),
  };
}

const lines: OrderLine[] = [];
let time = Date.UTC(2025, 2, 3, 7, 0, 0);

/** The id and time of the next line. */
function stamp(): { readonly id: string; readonly time: string } {
  time += 1_000 * (5 + below(120));
  return { id: `web-${String(lines.length + 1).padStart(4, "0")}`, time: new Date(time).toISOString() };
}

function place(order: Order): void {
  lines.push({ ...stamp(), type: "shop.order.placed", subject: order.order, data: order });
}

function cancel(order: string, why: string): void {
  lines.push({ ...stamp(), type: "shop.order.cancelled", subject: order, data: { order, why } });
}

for (let number = 1_001; number <= 1_199; number++) {
  const { address, ...order } = makeOrder(number);
  // Poison: without an address the warehouse fails whatever it tries.
  place(number === 1_042 ? order : { ...order, address });
  // The web shop sent this one twice, as everything that publishes at least once may.
  if (number === 1_064) lines.push(lines.at(-1)!);
  if (number % 17 === 3) cancel(order.order, pick(["ordered twice", "found it cheaper", "no longer needed"]));
}
// The next day: an order that keeps the warehouse's computer busy, and a customer who is too late.
time = Date.UTC(2025, 2, 4, 7, 0, 0);
place({ ...makeOrder(1_200), engraving: "For Ada, 10 December" });
cancel("o-1007", "no longer needed");

writeFileSync(
  new URL("orders.jsonl", import.meta.url),
  lines.map((line) => JSON.stringify(line) + "\n").join(""),
);
