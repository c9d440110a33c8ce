import type { Clock, Timer } from "./clock.ts";
import { type Item, readItem } from "./delivery.ts";
import { forEachId, type Ranges } from "./session/messages.ts";

/** One batch as it came from the session, read from the front. */
interface Frame {
  readonly base: number;
  readonly texts: (string | undefined)[];
  readonly dataAt: readonly number[];
  readonly attempts: readonly number[] | undefined;
  next: number;
}

interface Held extends Item {
  readonly lane: LaneKey;
  readonly dueAt: number;
}

/** What one subject holds back, in order; the first item's due time is the subject's. */
interface Hold {
  readonly items: Held[];
  timer: Timer | undefined;
}

/** A subject, or for an event without one its own delivery id: it blocks nobody else. */
type LaneKey = string | number;

/**
 * What waits to be handed out, in order, and what is held back. While a delivery of a subject is held, later ones of that
 * subject queue behind it; when it is due it goes out before them, and others never wait for it.
 */
export class ReadyQueue {
  readonly #clock: Clock;
  readonly #onReady: () => void;
  readonly #frames: Frame[] = [];
  /** Held before and due; of one subject in order. */
  #urgent: Held[] = [];
  readonly #holds = new Map<LaneKey, Hold>();
  #waiting = 0;

  constructor(clock: Clock, onReady: () => void) {
    this.#clock = clock;
    this.#onReady = onReady;
  }

  /** Items not handed out, held ones included. */
  get size(): number {
    let held = 0;
    for (const hold of this.#holds.values()) held += hold.items.length;
    return this.#waiting + this.#urgent.length + held;
  }

  /** Adds a batch. */
  push(
    base: number,
    texts: readonly string[],
    dataAt: readonly number[],
    attempts: readonly number[] | undefined,
  ): void {
    this.#frames.push({ base, texts: texts as (string | undefined)[], dataAt, attempts, next: 0 });
    this.#waiting += texts.length;
  }

  /** The next item that may go out, or undefined. */
  take(): Item | undefined {
    while (this.#urgent.length > 0) {
      const item = this.#urgent.shift()!;
      if (this.#holds.size === 0 || !this.#queueBehind(item, item.lane)) return item;
    }
    for (;;) {
      const item = this.#next();
      if (item === undefined) return undefined;
      if (this.#holds.size === 0 || !this.#queueBehind(item, laneOf(item))) return item;
    }
  }

  #next(): Item | undefined {
    for (;;) {
      const frame = this.#frames[0];
      if (frame === undefined) return undefined;
      const at = frame.next++;
      if (at >= frame.texts.length) {
        this.#frames.shift();
        continue;
      }
      const text = frame.texts[at];
      if (text === undefined) continue;
      frame.texts[at] = undefined;
      this.#waiting--;
      return { id: frame.base + at, text, dataAt: frame.dataAt[at]!, attempt: frame.attempts?.[at] ?? 0 };
    }
  }

  #queueBehind(item: Item, lane: LaneKey): boolean {
    const hold = this.#holds.get(lane);
    if (hold === undefined) return false;
    insert(hold.items, held(item, lane, 0));
    return true;
  }

  /** Holds an item back for `delayMs`. */
  hold(item: Item, delayMs: number): void {
    const key = laneOf(item);
    let hold = this.#holds.get(key);
    if (hold === undefined) this.#holds.set(key, hold = { items: [], timer: undefined });
    insert(hold.items, held(item, key, this.#clock.monotonic() + delayMs));
    this.#arm(key, hold);
  }

  #arm(key: LaneKey, hold: Hold): void {
    hold.timer?.cancel();
    hold.timer = undefined;
    const now = this.#clock.monotonic();
    const before = this.#urgent.length;
    while (hold.items.length > 0 && hold.items[0]!.dueAt <= now) this.#hurry(hold.items.shift()!);
    if (hold.items.length === 0) this.#holds.delete(key);
    else hold.timer = this.#clock.timer(hold.items[0]!.dueAt - now, () => this.#arm(key, hold));
    if (this.#urgent.length > before) this.#onReady();
  }

  /** Before what is later of its subject, which may have come first: both were handed out, and the later one held sooner. */
  #hurry(item: Held): void {
    const later = this.#urgent.findIndex((other) => other.lane === item.lane && other.id > item.id);
    if (later < 0) this.#urgent.push(item);
    else this.#urgent.splice(later, 0, item);
  }

  /** Removes items that are no longer ours. */
  remove(ranges: Ranges): void {
    const gone = new Set<number>();
    forEachId(ranges, (id) => void gone.add(id));
    for (const frame of this.#frames) {
      for (let at = frame.next; at < frame.texts.length; at++) {
        if (frame.texts[at] === undefined || !gone.has(frame.base + at)) continue;
        frame.texts[at] = undefined;
        this.#waiting--;
      }
    }
    this.#urgent = this.#urgent.filter((item) => !gone.has(item.id));
    for (const [key, hold] of this.#holds) {
      const rest = hold.items.filter((item) => !gone.has(item.id));
      if (rest.length === hold.items.length) continue;
      hold.items.splice(0, hold.items.length, ...rest);
      this.#arm(key, hold);
    }
  }

  /** Forgets everything; ends the timers. */
  clear(): void {
    this.#frames.length = 0;
    this.#urgent = [];
    this.#waiting = 0;
    for (const hold of this.#holds.values()) hold.timer?.cancel();
    this.#holds.clear();
  }
}

function laneOf(item: Item): LaneKey {
  return readItem(item).subject ?? item.id;
}

function held(item: Item, lane: LaneKey, dueAt: number): Held {
  return { id: item.id, text: item.text, dataAt: item.dataAt, attempt: item.attempt, lane, dueAt };
}

function insert(items: Held[], item: Held): void {
  let at = items.length;
  while (at > 0 && items[at - 1]!.id > item.id) at--;
  items.splice(at, 0, item);
}
