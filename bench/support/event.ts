/**
 * The event that all benchmarks send: an order, 800 bytes of structured CloudEvents JSON.
 *
 * @module
 */
import { randomUUID } from "node:crypto";

/** The data of an event. */
export interface Order {
  readonly customer: { readonly id: string; readonly name: string; readonly mail: string };
  readonly lines: readonly { readonly sku: string; readonly quantity: number; readonly price: number }[];
  readonly express: boolean;
  readonly total: number;
  readonly note: string;
}

/** Type of all events. */
export const TYPE = "shop.order.placed";
/** Source of all events. */
export const SOURCE = "/shop";
/** How many subjects there are. */
export const SUBJECTS = 1_000;
const BYTES = 800;

function order(note: string): Order {
  return {
    customer: { id: "c-0004711", name: "Ada Byron", mail: "ada.byron@example.org" },
    lines: [
      { sku: "A-1000-X", quantity: 1, price: 12.5 },
      { sku: "B-2000-Y", quantity: 2, price: 7.25 },
      { sku: "C-3000-Z", quantity: 3, price: 199 },
      { sku: "D-4000-W", quantity: 4, price: 0.99 },
    ],
    express: true,
    total: 627.96,
    note,
  };
}

/** An event's id and subject stand in fixed places, so that a server's script can make millions of them. */
export interface Parts {
  readonly beforeId: string;
  readonly beforeSubject: string;
  readonly afterSubject: string;
  readonly idDigits: number;
  readonly subjectDigits: number;
}

const ID_DIGITS = 26;
const SUBJECT_DIGITS = 4;

function makeParts(note: string): Parts {
  return {
    beforeId: '{"specversion":"1.0","id":"',
    beforeSubject: `","source":"${SOURCE}","type":"${TYPE}","subject":"order-`,
    afterSubject: `","time":"2026-01-02T03:04:05.678Z","datacontenttype":"application/json","data":${
      JSON.stringify(order(note))
    }}`,
    idDigits: ID_DIGITS,
    subjectDigits: SUBJECT_DIGITS,
  };
}

function assemble(parts: Parts, n: number): string {
  const id = String(n).padStart(ID_DIGITS, "0");
  const subject = String(n % SUBJECTS).padStart(SUBJECT_DIGITS, "0");
  return `${parts.beforeId}${id}${parts.beforeSubject}${subject}${parts.afterSubject}`;
}

const NOTE = "Leave it with the neighbour. ".repeat(40).slice(0, BYTES - assemble(makeParts(""), 0).length);

/** The parts of every event's text. */
export const PARTS: Parts = makeParts(NOTE);

/** The `n`th event as it stands on the wire. */
export function eventText(n: number): string {
  return assemble(PARTS, n);
}

/** The subject of the `n`th event. */
export function subjectOf(n: number): string {
  return `order-${String(n % SUBJECTS).padStart(SUBJECT_DIGITS, "0")}`;
}

/** Fresh data for an event to publish; with the attributes that a client adds it has 800 bytes, give or take ten. */
export function freshOrder(): Order {
  return order(NOTE);
}

/** The text of a fresh event as somebody would write it by hand. */
export function freshText(n: number): string {
  return JSON.stringify({
    specversion: "1.0",
    id: randomUUID(),
    source: SOURCE,
    type: TYPE,
    subject: subjectOf(n),
    time: new Date().toISOString(),
    datacontenttype: "application/json",
    data: freshOrder(),
  });
}
