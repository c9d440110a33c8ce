import type { MemberStore, OwnerStore } from "../../core/ownership/contract.ts";
import type { RedisContext } from "./context.ts";
import type { PartitionKeys } from "./keys.ts";
import { ACQUIRE, BEAT, LEAVE, RENEW, SURRENDER } from "./scripts/ownership.ts";

/** What the store learns on the way. */
export interface OwnerStoreEvents {
  /** A group that had been there was not there any more, and was created again. */
  groupLost(partition: number): void;
  /**
   * At a renewal: how many entries are pending under our name (-1 = the group is gone), how far behind the group is (-1 =
   * unknown), and how many are pending under names that never owned the partition.
   */
  counted(partition: number, epoch: number, pending: number, lag: number, strangers: number): void;
}

/** The owner records of one topic and group: a key per partition that holds the owner's token and runs out. */
export class RedisOwnerStore implements OwnerStore {
  readonly #context: RedisContext;
  readonly #group: string;
  readonly #keys: readonly PartitionKeys[];
  readonly #events: OwnerStoreEvents;
  readonly #delivered: string[] = [];
  /** Partitions whose group was seen: it is there before anybody owns one. */
  readonly #seen = new Set<number>();

  constructor(context: RedisContext, group: string, keys: readonly PartitionKeys[], events: OwnerStoreEvents) {
    this.#context = context;
    this.#group = group;
    this.#keys = keys;
    this.#events = events;
  }

  /** What the owner key holds in an epoch of ours. */
  token(epoch: number): string {
    return `${epoch}:${this.#who}`;
  }

  get #who(): string {
    return `${this.#context.consumer}:${this.#context.instance}`;
  }

  /** The last entry id the group had delivered when we became its owner. */
  delivered(partition: number): string {
    return this.#delivered[partition] ?? "0-0";
  }

  async acquire(partition: number, leaseMs: number): Promise<number | undefined> {
    const { main, consumer } = this.#context;
    await main.ready();
    const { stream, owner, epoch, owners, floor } = this.#keys[partition]!;
    const [ours, number, delivered, created] = await main.run(
      ACQUIRE,
      [stream, owner, epoch, owners, floor],
      [this.#who, this.#group, consumer, String(leaseMs)],
    ) as [0 | 1, string, string, 0 | 1];
    if (ours === 1) this.#delivered[partition] = delivered;
    if (ours === 1 && created === 1 && this.#seen.has(partition)) this.#events.groupLost(partition);
    this.#seen.add(partition);
    return ours === 1 ? Number(number) : undefined;
  }

  async renew(partition: number, epoch: number, leaseMs: number): Promise<boolean> {
    const { main, consumer } = this.#context;
    await main.ready();
    const keys = this.#keys[partition]!;
    const [ours, pending, lag, strangers] = await main.run(
      RENEW,
      [keys.stream, keys.owner, keys.epoch, keys.owners, keys.floor],
      [this.token(epoch), String(epoch), String(leaseMs), this.#group, consumer],
    ) as [0 | 1, number, number, number];
    if (ours === 1) this.#events.counted(partition, epoch, pending, lag, strangers);
    return ours === 1;
  }

  async surrender(partition: number, epoch: number): Promise<void> {
    const { stream, owner } = this.#keys[partition]!;
    await this.#context.main.run(SURRENDER, [stream, owner], [this.token(epoch)]);
  }
}

/** The live members of one topic and group: a sorted set of names by the server's time. */
export class RedisMemberStore implements MemberStore {
  readonly self: string;
  readonly #context: RedisContext;
  readonly #key: string;

  constructor(context: RedisContext, key: string) {
    this.self = context.consumer;
    this.#context = context;
    this.#key = key;
  }

  async beat(leaseMs: number): Promise<readonly string[]> {
    await this.#context.main.ready();
    return await this.#context.main.run(BEAT, [this.#key], [this.self, String(leaseMs)]) as string[];
  }

  async leave(): Promise<void> {
    await this.#context.main.run(LEAVE, [this.#key], [this.self]);
  }
}
