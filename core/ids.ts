/**
 * Event ids: UUIDv7 (RFC 9562, section 5.7). 48 bits of milliseconds, then 74 random bits.
 *
 * @module
 */
import type { Clock } from "./clock.ts";

const HEX: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
/** The largest time that 48 bits hold. */
const MAX_MS = 2 ** 48 - 1;

/** Random words in stock: one system call then serves many ids. An id must not repeat, so `Math.random` will not do. */
const pool = new Uint32Array(192);
let left = 0;

function randomWord(): number {
  if (left === 0) {
    crypto.getRandomValues(pool);
    left = pool.length;
  }
  return pool[--left] ?? 0;
}

function hex16(value: number): string {
  return (HEX[value >>> 8] ?? "") + (HEX[value & 255] ?? "");
}

/**
 * One run of increasing ids. The random tail is drawn anew in each millisecond and counted up within it; a clock that
 * stands still or jumps back keeps the last millisecond, so ids never go back.
 */
class IdSource {
  readonly #clock: Pick<Clock, "now">;
  /** The stamp in use, which may be ahead of the clock. */
  #stamp = -1;
  // The 74 bits behind the stamp as 12 + 14 + 24 + 24, most significant first.
  #a = 0;
  #b = 0;
  #c = 0;
  #d = 0;
  /** Everything before the last 24 bits, as text. */
  #head = "";

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  next(): string {
    const now = this.#clock.now();
    if (now > this.#stamp && now <= MAX_MS) this.#start(Math.trunc(now));
    else if (this.#stamp < 0) this.#start(0);
    else if (++this.#d > 0xffffff) this.#carry();
    const d = this.#d;
    return this.#head + (HEX[d >>> 16] ?? "") + (HEX[(d >>> 8) & 255] ?? "") + (HEX[d & 255] ?? "");
  }

  #start(stamp: number): void {
    // A clock with fractions of a millisecond stays in the millisecond it is in.
    if (stamp === this.#stamp) {
      if (++this.#d > 0xffffff) this.#carry();
      return;
    }
    this.#stamp = stamp;
    const word = randomWord();
    this.#a = word & 0xfff;
    this.#b = (word >>> 12) & 0x3fff;
    this.#c = randomWord() & 0xffffff;
    this.#d = randomWord() & 0xffffff;
    this.#write();
  }

  #carry(): void {
    this.#d = 0;
    if (++this.#c > 0xffffff) {
      this.#c = 0;
      if (++this.#b > 0x3fff) {
        this.#b = 0;
        if (++this.#a > 0xfff) return this.#start(Math.min(this.#stamp + 1, MAX_MS));
      }
    }
    this.#write();
  }

  #write(): void {
    const high = Math.floor(this.#stamp / 0x10000);
    this.#head =
      `${hex16(high >>> 16)}${hex16(high & 0xffff)}-${hex16(this.#stamp % 0x10000)}-${hex16(0x7000 | this.#a)}-` +
      `${hex16(0x8000 | this.#b)}-${HEX[this.#c >>> 16] ?? ""}${HEX[(this.#c >>> 8) & 255] ?? ""}${
        HEX[this.#c & 255] ?? ""
      }`;
  }
}

/** One source a clock, so that all ids of a process are in one order whoever asks for them. */
const sources = new WeakMap<Pick<Clock, "now">, IdSource>();

/**
 * A function that makes UUIDv7 ids, each greater than the one before, also within a millisecond and when the clock jumps
 * back. Sources of one clock share one run of ids.
 *
 * @param clock Gives the time stamp; a virtual clock gives ids of its own time.
 */
export function createIdSource(clock: Pick<Clock, "now">): () => string {
  let source = sources.get(clock);
  if (source === undefined) sources.set(clock, source = new IdSource(clock));
  const shared = source;
  return () => shared.next();
}
