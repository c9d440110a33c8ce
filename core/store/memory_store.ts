/**
 * The store in memory: the default, and the pattern of all others. Lost with the process.
 *
 * @module
 */
import { type Clock, systemClock } from "../clock.ts";
import { createEnvelope, isEnvelope, textOf } from "../codec.ts";
import { ClosedError, StoreConflictError, StoreFencedError } from "../errors.ts";
import { createIdSource } from "../ids.ts";
import { checkOptions, checkRange } from "../options.ts";
import type {
  DeadLetters,
  Failures,
  Fence,
  Inbox,
  Outbox,
  Snapshots,
  Store,
  Timers,
  Unit,
  UnitKey,
} from "./contract.ts";
import { checkMoment, MemoryDeadLetters } from "./memory_dead_letters.ts";
import { MemoryOutbox } from "./memory_outbox.ts";
import { fullKey, Tables } from "./memory_tables.ts";
import { MemoryTimers } from "./memory_timers.ts";
import { type MemoryState, MemoryUnit } from "./memory_unit.ts";

/** Options of the memory store. */
export interface MemoryStoreOptions {
  /** Receipts and failure counts kept a consumer; the oldest ones go first. 1 or more, default 100,000. */
  readonly maxReceipts?: number;
  /** Dead letters kept; resolved ones, then the oldest, go first. 10 or more, default 10,000. */
  readonly maxDeadLetters?: number;
  /** `source` of events added to the outbox from outside a handler without one of their own. */
  readonly source?: string;
  /** Time and timers; for tests. */
  readonly clock?: Clock;
}

/** Runs of the work after a conflict before it is given up. */
const RERUNS = 5;
const MAX_BYTES = 1_048_576;

/** A {@link Store} in memory, with the semantics of a database: optimistic units, guarded by what they read. */
export class MemoryStore implements Store {
  readonly durable: boolean = false;
  readonly inbox: Inbox;
  readonly outbox: Outbox;
  readonly deadLetters: DeadLetters;
  readonly failures: Failures;
  readonly timers: Timers;
  readonly snapshots: Snapshots;
  readonly #state: MemoryState;
  #closed = false;

  constructor(options: MemoryStoreOptions = {}) {
    checkOptions("MemoryStore", options, ["clock", "maxDeadLetters", "maxReceipts", "source"]);
    const keepReceipts = checkRange("maxReceipts", options.maxReceipts ?? 100_000, 1, Number.MAX_SAFE_INTEGER);
    const keepLetters = checkRange("maxDeadLetters", options.maxDeadLetters ?? 10_000, 10, Number.MAX_SAFE_INTEGER);
    const clock = options.clock ?? systemClock;
    const guard = () => this.#mustBeOpen();
    const defaults = { source: options.source, now: () => clock.now(), nextId: createIdSource(clock) };
    const tables = new Tables(keepReceipts, keepLetters);
    const outbox = new MemoryOutbox(clock, (message) => {
      const envelope = isEnvelope(message) ? message : createEnvelope(message, defaults, MAX_BYTES);
      return { envelope, text: textOf(envelope) };
    }, guard);
    const timers = new MemoryTimers(guard);
    this.#state = { tables, outbox, timers };
    this.outbox = outbox;
    this.timers = timers;
    this.deadLetters = new MemoryDeadLetters(tables, guard);
    const answer = this.#answer.bind(this);
    this.inbox = {
      get: (key) => answer(() => tables.receipts.get(key)),
      purge: (before) => answer(() => tables.purgeReceipts(checkMoment(before))),
    };
    this.failures = {
      get: (key) => answer(() => tables.failures.get(fullKey(key))),
      bump: (key, at) => answer(() => tables.bumpFailures(fullKey(key), at)),
      clear: (key) => answer(() => void tables.failures.delete(fullKey(key))),
      purge: (before) => answer(() => tables.purgeFailures(checkMoment(before))),
    };
    this.snapshots = { get: (key) => answer(() => tables.snapshots.get(key)) };
  }

  /** Unresolved dead letters that were forgotten to keep `maxDeadLetters`. */
  get forgottenDeadLetters(): number {
    return this.#state.tables.deadLetters.forgotten;
  }

  async transact<R>(key: UnitKey, work: (unit: Unit) => R | Promise<R>, fence?: Fence): Promise<R> {
    return await this.transactNow(key, work, fence);
  }

  transactNow<R>(key: UnitKey, work: (unit: Unit) => R | Promise<R>, fence?: Fence): R | Promise<R> {
    return this.#runs(key, work, fence, 0);
  }

  #runs<R>(
    key: UnitKey,
    work: (unit: Unit) => R | Promise<R>,
    fence: Fence | undefined,
    done: number,
  ): R | Promise<R> {
    for (let run = done; run <= RERUNS; run++) {
      this.#mustBeOpen();
      const unit = new MemoryUnit(this.#state, key);
      const result = work(unit);
      if (result instanceof Promise) {
        return result.then((value) => {
          this.#mustBeOpen();
          return this.#commit(unit, fence) ? value : this.#runs(key, work, fence, run + 1);
        });
      }
      if (this.#commit(unit, fence)) return result;
    }
    throw new StoreConflictError(`the unit met a change by another ${RERUNS + 1} times; run it again later`);
  }

  #commit(unit: MemoryUnit, fence: Fence | undefined): boolean {
    if (fence?.aborted) throw new StoreFencedError("the unit was not stored: its delivery was lost or its time was up");
    return unit.commit();
  }

  // deno-lint-ignore require-await
  async #answer<T>(read: () => T): Promise<T> {
    this.#mustBeOpen();
    return read();
  }

  #mustBeOpen(): void {
    if (this.#closed) throw new ClosedError("The store has been closed; make a new one");
  }

  // deno-lint-ignore require-await
  async close(): Promise<void> {
    this.#closed = true;
    this.#state.outbox.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
