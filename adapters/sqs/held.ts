import { MOST_A_CALL } from "./limits.ts";

/** The handle of one message that we hold. */
export interface SqsNative {
  /** Of this receipt; a later receipt of the same message has another one. */
  readonly receipt: string;
  readonly messageId: string;
  /** FIFO: the message group. */
  readonly group: string | undefined;
  /** When its receipt was asked for, monotonic ms: SQS hides it since then or later. */
  readonly since: number;
  /**
   * `held` -(its delete is sent)-> `deleting` -> `deleted`, or back to `held`; `gone` = SQS says that it is not ours;
   * `replaced` = the message came to us again, with another receipt.
   * What is being deleted is not extended any more.
   */
  state: "held" | "deleting" | "deleted" | "gone" | "replaced";
}

/** Twice the largest window. */
const MOST_HELD = 20_000;

/** What one subscription holds, by message group, since SQS hands out a group in order and locks it meanwhile. */
export class Held {
  readonly #groups = new Map<string, Set<SqsNative>>();
  /** By message. One that was lost by time, and is another member's, stays until there are too many. */
  readonly #latest = new Map<string, SqsNative>();

  /**
   * From now on it is held. An earlier receipt of the same message is replaced: what is done with it must not touch this
   * one.
   */
  add(native: SqsNative): void {
    const before = this.#latest.get(native.messageId);
    if (before !== undefined) {
      this.remove(before);
      before.state = "replaced";
    }
    this.#latest.set(native.messageId, native);
    if (this.#latest.size > MOST_HELD) this.remove(this.#latest.values().next().value!);
    if (native.group === undefined) return;
    const group = this.#groups.get(native.group);
    if (group === undefined) this.#groups.set(native.group, new Set([native]));
    else group.add(native);
  }

  /** It is settled, given back or lost. */
  remove(native: SqsNative): void {
    if (this.#latest.get(native.messageId) === native) this.#latest.delete(native.messageId);
    if (native.group === undefined) return;
    const group = this.#groups.get(native.group);
    if (group?.delete(native) && group.size === 0) this.#groups.delete(native.group);
  }

  /** Others of its group that are held, in the order in which they came. */
  others(native: SqsNative): SqsNative[] {
    const group = native.group === undefined ? undefined : this.#groups.get(native.group);
    return [...group ?? []].filter((other) => other !== native && other.state === "held");
  }
}

/** In batches, those of one message group together, so that they succeed or fail at the same time. */
export function batchesOf(natives: readonly SqsNative[]): SqsNative[][] {
  const groups = new Map<unknown, SqsNative[]>();
  for (const native of natives) {
    const key = native.group ?? native;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [native]);
    else group.push(native);
  }
  const batches: SqsNative[][] = [];
  let last: SqsNative[] | undefined;
  for (const group of groups.values()) {
    for (let from = 0; from < group.length; from += MOST_A_CALL) {
      const part = group.slice(from, from + MOST_A_CALL);
      if (last !== undefined && last.length + part.length <= MOST_A_CALL) last.push(...part);
      else batches.push(last = part);
    }
  }
  return batches;
}

/** Messages whose delete SQS did not confirm: when one comes again, it was handled, and its new receipt is deleted. */
export class Handled {
  readonly #ids = new Set<string>();

  /** Its delete is not confirmed. */
  add({ messageId }: SqsNative): void {
    this.#ids.add(messageId);
    // The oldest one: a set keeps the order in which it was filled.
    if (this.#ids.size > MOST_HANDLED) this.#ids.delete(this.#ids.values().next().value!);
  }

  /** It is deleted. */
  remove({ messageId }: SqsNative): void {
    this.#ids.delete(messageId);
  }

  has({ messageId }: SqsNative): boolean {
    return this.#ids.has(messageId);
  }
}

const MOST_HANDLED = 10_000;
