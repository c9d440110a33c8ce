/**
 * The inbox of the memory store.
 *
 * @module
 */
import { ownText } from "../own_text.ts";
import { BoundedMap } from "./bounded_map.ts";
import type { Receipt, ReceiptKey } from "./contract.ts";

/** Sources whose text is shared. */
const MOST_SOURCES = 1_000;

/** One receipt without what its place says. Never changed, so identity tells whether it is still the same. */
export class ReceiptRow {
  readonly source: string;
  readonly fingerprint: string;
  readonly at: number;
  readonly deadLetter: string | undefined;
  /** Another of the same id, from another source. */
  readonly next: ReceiptRow | undefined;

  constructor(
    source: string,
    fingerprint: string,
    at: number,
    deadLetter: string | undefined,
    next: ReceiptRow | undefined,
  ) {
    this.source = source;
    this.fingerprint = fingerprint;
    this.at = at;
    this.deadLetter = deadLetter;
    this.next = next;
  }
}

/** Receipts, a map a consumer. Found by id alone, which is in itself almost unique, so that no key text is built for each. */
export class ReceiptTable {
  readonly #keep: number;
  readonly #consumers = new Map<string, BoundedMap<ReceiptRow>>();
  /** Sources repeat, so all receipts of one share its text. */
  #sources = new Map<string, string>();

  constructor(keep: number) {
    this.#keep = keep;
  }

  get(key: ReceiptKey): Receipt | undefined {
    return receiptOf(rowOf(this.rows(key), key), key);
  }

  /** All rows of the id, the first of a chain. */
  rows(key: ReceiptKey): ReceiptRow | undefined {
    return this.#consumers.get(key.consumer)?.get(key.id);
  }

  /** @param before What {@link rows} answers. */
  set(receipt: Receipt, before: ReceiptRow | undefined): void {
    let table = this.#consumers.get(receipt.consumer);
    if (table === undefined) this.#consumers.set(receipt.consumer, table = new BoundedMap(this.#keep));
    const next = before === undefined ? undefined : without(before, receipt.source);
    const { id, source, fingerprint, at, deadLetter } = receipt;
    table.set(ownText(id), new ReceiptRow(this.#ownSource(source), fingerprint, at, deadLetter, next));
  }

  delete(key: ReceiptKey): void {
    const table = this.#consumers.get(key.consumer);
    const rest = without(table?.get(key.id), key.source);
    if (rest === undefined) table?.delete(key.id);
    else table?.set(ownText(key.id), rest);
  }

  /** Removes what is older than `before`; answers how many ids. One that a younger one shares its id with stays with it. */
  purge(before: number): number {
    let removed = 0;
    for (const table of this.#consumers.values()) {
      removed += table.purge((row) => row.at < before && (row.next === undefined || row.next.at < before));
    }
    return removed;
  }

  #ownSource(source: string): string {
    let own = this.#sources.get(source);
    if (own !== undefined) return own;
    if (this.#sources.size >= MOST_SOURCES) this.#sources = new Map();
    own = ownText(source);
    this.#sources.set(own, own);
    return own;
  }
}

/** The row of the key's source in a chain. */
export function rowOf(row: ReceiptRow | undefined, key: ReceiptKey): ReceiptRow | undefined {
  while (row !== undefined && row.source !== key.source) row = row.next;
  return row;
}

/** A row as a receipt. */
export function receiptOf(row: ReceiptRow | undefined, key: ReceiptKey): Receipt | undefined {
  if (row === undefined) return undefined;
  const { consumer, source, id } = key;
  const { fingerprint, at, deadLetter } = row;
  return { consumer, source, id, fingerprint, at, ...(deadLetter === undefined ? {} : { deadLetter }) };
}

function without(row: ReceiptRow | undefined, source: string): ReceiptRow | undefined {
  if (row === undefined) return undefined;
  const next = without(row.next, source);
  if (row.source === source) return next;
  return next === row.next ? row : new ReceiptRow(row.source, row.fingerprint, row.at, row.deadLetter, next);
}
