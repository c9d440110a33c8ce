/**
 * A store that fails when told.
 *
 * @module
 */
import { StoreUnavailableError } from "../../core/errors.ts";
import type {
  DeadLetter,
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
} from "../../core/store/contract.ts";
import { MemoryStore, type MemoryStoreOptions } from "../../core/store/memory_store.ts";

/** The memory store behind promises only, with faults before a unit and at its commit. */
export class FaultyStore implements Store {
  durable = false;
  readonly inner: MemoryStore;
  readonly inbox: Inbox;
  readonly outbox: Outbox;
  readonly deadLetters: DeadLetters;
  readonly failures: Failures;
  readonly timers: Timers;
  readonly snapshots: Snapshots;
  /** What a unit fails with before its work runs. */
  beforeWork: () => Error | undefined = () => undefined;
  /** What a unit fails with when it would commit; told the dead letters it has. */
  beforeCommit: (letters: readonly DeadLetter[]) => Error | undefined = () => undefined;
  /** What a unit fails with although it was committed. */
  afterCommit: (letters: readonly DeadLetter[]) => Error | undefined = () => undefined;
  /** What counting a failure fails with. */
  beforeBump: () => Error | undefined = () => undefined;
  /** Units begun. */
  units = 0;

  constructor(options: MemoryStoreOptions = {}) {
    const inner = this.inner = new MemoryStore(options);
    this.inbox = inner.inbox;
    this.outbox = inner.outbox;
    this.deadLetters = inner.deadLetters;
    this.timers = inner.timers;
    this.snapshots = inner.snapshots;
    this.failures = {
      ...inner.failures,
      bump: async (key, at) => {
        const fault = this.beforeBump();
        if (fault !== undefined) throw fault;
        return await inner.failures.bump(key, at);
      },
    };
  }

  async transact<R>(key: UnitKey, work: (unit: Unit) => R | Promise<R>, fence?: Fence): Promise<R> {
    this.units++;
    const fault = this.beforeWork();
    if (fault !== undefined) throw fault;
    let letters: DeadLetter[] = [];
    const answer = await this.inner.transact(key, async (unit) => {
      letters = [];
      const addDeadLetter = unit.addDeadLetter.bind(unit);
      unit.addDeadLetter = (letter) => {
        letters.push(letter);
        addDeadLetter(letter);
      };
      const result = await work(unit);
      const late = this.beforeCommit(letters);
      if (late !== undefined) throw late;
      return result;
    }, fence);
    const lost = this.afterCommit(letters);
    if (lost !== undefined) throw lost;
    return answer;
  }

  async close(): Promise<void> {
    await this.inner.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** The store cannot be reached. */
export function down(): StoreUnavailableError {
  return new StoreUnavailableError("the store is down");
}
