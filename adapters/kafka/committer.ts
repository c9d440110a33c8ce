import type { Clock } from "../../core/clock.ts";
import { isEdaError } from "../../core/errors.ts";
import { failureOf, typeOf } from "./errors.ts";
import type { OwnedPartition } from "./owned_partition.ts";

/** Answers that say: the group is being divided anew. What is still ours then is committed then. */
const DIVIDING: ReadonlySet<string> = new Set([
  "REBALANCE_IN_PROGRESS",
  "ILLEGAL_GENERATION",
  "UNKNOWN_MEMBER_ID",
  "NOT_COORDINATOR_FOR_GROUP",
  "GROUP_LOAD_IN_PROGRESS",
]);

type Commit = (offsets: readonly { readonly partition: number; readonly offset: bigint }[]) => Promise<void>;

/** Commits what is settled: all partitions in one request, one request at a time, what is settled meanwhile in the next. */
export class Committer {
  readonly #clock: Clock;
  readonly #parts: ReadonlyMap<number, OwnedPartition>;
  readonly #commit: Commit;
  #scheduled = false;
  #sending: Promise<void> | undefined;

  constructor(clock: Clock, parts: ReadonlyMap<number, OwnedPartition>, commit: Commit) {
    this.#clock = clock;
    this.#parts = parts;
    this.#commit = commit;
  }

  /**
   * Commits soon. In a turn of its own: within a turn, the client may have been let into the next generation without us having
   * been told which partitions that leaves us, and the group takes a commit of any.
   */
  kick(): void {
    if (this.#scheduled || this.#sending !== undefined) return;
    this.#scheduled = true;
    this.#clock.turn(() => {
      this.#scheduled = false;
      if (this.#sending === undefined) this.now();
    });
  }

  /** Begins to commit in this very moment. */
  now(): void {
    const dirty: { readonly part: OwnedPartition; readonly partition: number; readonly offset: bigint }[] = [];
    for (const part of this.#parts.values()) {
      const offset = part.toCommit;
      if (offset !== undefined) dirty.push({ part, partition: part.partition, offset });
    }
    if (dirty.length === 0) return;
    for (const { part, offset } of dirty) part.sending(offset);
    const sending = this.#commit(dirty).then(
      () => {
        for (const { part, offset } of dirty) part.committed(offset);
        return true;
      },
      (error) => this.#failed(error),
    ).then((more) => {
      for (const { part } of dirty) part.sending(undefined);
      if (this.#sending !== sending) return;
      this.#sending = undefined;
      if (more) this.kick();
    });
    this.#sending = sending;
  }

  /** Whether it makes sense to go on at once. */
  #failed(error: unknown): boolean {
    const type = typeOf(error);
    if (type !== undefined && DIVIDING.has(type)) return false;
    const failure = isEdaError(error) ? error : failureOf("committing", error);
    for (const part of this.#parts.values()) part.commitFailed(failure);
    return false;
  }

  /** Resolves when nothing is left that can be committed now. */
  async flushed(): Promise<void> {
    this.now();
    await this.#sending;
  }
}
