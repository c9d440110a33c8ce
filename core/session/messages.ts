/**
 * What a host and its session say to each other: plain data, whichever side of a thread they are on. Messages of a topic
 * cross in batches. `sub` numbers a subscription (topic + group), `call` an answer that is waited for.
 *
 * @module
 */

/** Inclusive ranges of delivery ids, flat: `[from, to, from, to, …]`. */
export type Ranges = readonly number[];

/** Host to session. */
export type ToSession =
  | { readonly k: "connect"; readonly call: number }
  | {
    readonly k: "publish";
    readonly call: number;
    readonly topic: string;
    readonly bodies: readonly string[];
    readonly subjects: readonly (string | undefined)[];
    /** Stop a subject at its first failure, across the whole message (`publishAll`). */
    readonly chained: boolean;
    readonly replay?: number;
  }
  | {
    readonly k: "subscribe";
    readonly call: number;
    readonly sub: number;
    readonly topic: string;
    readonly group: string;
    readonly prefetch: number;
    /** The host's monotonic clock as it says so; absent: it wants no `lease`. */
    readonly at?: number;
  }
  /** Gives back what is not handed out and leaves; what was handed out is lost. */
  | { readonly k: "unsubscribe"; readonly call: number; readonly sub: number }
  /** Answer once a read that starts from now on is back: "more" if it brought something, else "empty"; or it failed. */
  | { readonly k: "probe"; readonly call: number; readonly sub: number }
  | {
    readonly k: "settle";
    readonly sub: number;
    readonly acks?: Ranges;
    readonly drops?: Ranges;
    /** Wait for the broker: the answer is "settled" or "stale". One id only. */
    readonly call?: number;
  }
  /** The undecodable message `id` was recorded (then it is dropped), or could not be (then it is offered again). */
  | { readonly k: "recorded"; readonly sub: number; readonly id: number; readonly ok: boolean }
  /** `at` as in `subscribe`. */
  | { readonly k: "beat"; readonly at?: number }
  | { readonly k: "close"; readonly call: number; readonly drainMs: number };

/** Session to host. */
export type ToHost =
  | { readonly k: "answer"; readonly call: number; readonly value?: unknown; readonly error?: unknown }
  /** `errors` are pairs of index and error; absent: all were confirmed. */
  | { readonly k: "published"; readonly call: number; readonly errors?: readonly (readonly [number, unknown])[] }
  | {
    readonly k: "deliver";
    readonly sub: number;
    /** Id of the first; the others count up. */
    readonly base: number;
    /** Canonical structured text; `data` stands last. */
    readonly texts: readonly string[];
    /** Where the data literal starts in each text; -1 = none. Negative below -1: binary, at -(n + 2). */
    readonly dataAt: readonly number[];
    /** Delivery counts, only when any is above 0. */
    readonly attempts?: readonly number[];
  }
  /**
   * Until then, on the host's own monotonic clock, what it was delivered may be handed out; `Infinity` = until told otherwise.
   * Told anew before it is over, unless a partition is lost by then.
   */
  | { readonly k: "lease"; readonly sub: number; readonly until: number }
  | { readonly k: "lost"; readonly sub: number; readonly ids: Ranges; readonly why: string }
  /** Settles that will not take effect: the broker refused them or our hold ended first. */
  | { readonly k: "settle-failed"; readonly sub: number; readonly ids: Ranges; readonly why: string }
  | {
    readonly k: "undecodable";
    readonly sub: number;
    readonly id: number;
    readonly bytes: number;
    readonly sha256: string;
    readonly error: unknown;
    readonly attempt: number;
    readonly body?: Uint8Array;
  }
  | { readonly k: "health"; readonly ok: boolean; readonly error?: unknown }
  /** The subscription cannot be read, and trying again cannot help. */
  | { readonly k: "failed"; readonly sub: number; readonly error: unknown }
  | { readonly k: "topic"; readonly sub: number; readonly state: "active" | "standby" | "stalled" | "failing" }
  | { readonly k: "lag"; readonly sub: number; readonly count: number }
  | {
    readonly k: "signal";
    readonly name: string;
    readonly topic: string;
    readonly details?: Readonly<Record<string, string | number | boolean>>;
  }
  | { readonly k: "beat" };

/** Collects ids into {@link Ranges}; cheap when they come in order. */
export class RangeBuilder {
  #flat: number[] = [];
  #count = 0;

  /** How many ids it holds. */
  get count(): number {
    return this.#count;
  }

  /** Adds one id. */
  add(id: number): void {
    const flat = this.#flat;
    if (flat.length > 0 && flat[flat.length - 1] === id - 1) flat[flat.length - 1] = id;
    else flat.push(id, id);
    this.#count++;
  }

  /** Hands over what it has and starts anew. */
  take(): Ranges {
    const flat = this.#flat;
    this.#flat = [];
    this.#count = 0;
    return flat;
  }
}

/** Calls `each` for every id in `ranges`. */
export function forEachId(ranges: Ranges, each: (id: number) => void): void {
  for (let at = 0; at < ranges.length; at += 2) {
    for (let id = ranges[at]!; id <= ranges[at + 1]!; id++) each(id);
  }
}

/** The ranges of some ids. */
export function rangesOf(ids: Iterable<number>): Ranges {
  const builder = new RangeBuilder();
  for (const id of ids) builder.add(id);
  return builder.take();
}
