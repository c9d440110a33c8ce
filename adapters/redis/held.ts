import { Fifo } from "../../core/fifo.ts";
import type { Raw } from "../../core/transport.ts";
import type { RedisNative } from "./context.ts";
import type { Entry } from "./wire.ts";

interface Batch {
  readonly natives: readonly RedisNative[];
  open: number;
}

/**
 * What was handed out and is not settled, batch by batch as it came: a mark on the handle costs a fraction of an entry in a
 * set of ids, and the ids are asked for only after something went wrong.
 */
export class Held {
  readonly #batches = new Fifo<Batch>();
  #open = 0;

  /** How many are held. */
  get size(): number {
    return this.#open;
  }

  /** Takes entries of one reply in, and answers them as they are handed out. */
  take(entries: readonly Entry[], partition: number, epoch: number, heldSince: number, leaseMs?: number): Raw[] {
    if (entries.length === 0) return [];
    while ((this.#batches.peek()?.open ?? 1) === 0) this.#batches.shift();
    const natives: RedisNative[] = [];
    const raws: Raw[] = [];
    const batch: Batch = { natives, open: entries.length };
    for (const { id, body, deliveries } of entries) {
      // Where the entry is gone, so may be the record that it is pending.
      const native: RedisNative = { partition, epoch, id, heldSince, doubtful: body === null, batch };
      natives.push(native);
      raws.push(
        leaseMs === undefined
          ? { body, native, partition, epoch, deliveries }
          : { body, native, partition, deliveries, leaseMs },
      );
    }
    this.#open += entries.length;
    this.#batches.push(batch);
    return raws;
  }

  /** Is held no more. */
  letGo(native: RedisNative): void {
    const batch = native.batch as Batch | undefined;
    if (batch === undefined) return;
    native.batch = undefined;
    if (--batch.open >= 0) this.#open--;
  }

  /**
   * The ids of all that is held, in the order in which they came. Lets go of what was last confirmed before `since`: its lease
   * ran out, and who held it knows that.
   */
  ids(since: number = -Infinity): string[] {
    const ids: string[] = [];
    for (const { natives } of this.#batches) {
      for (const native of natives) {
        if (native.batch === undefined) continue;
        if (native.heldSince < since) this.letGo(native);
        else ids.push(native.id);
      }
    }
    return ids;
  }

  /** Lets go of everything. */
  clear(): void {
    for (let batch = this.#batches.shift(); batch !== undefined; batch = this.#batches.shift()) {
      batch.open = 0;
      for (const native of batch.natives) native.batch = undefined;
    }
    this.#open = 0;
  }
}
