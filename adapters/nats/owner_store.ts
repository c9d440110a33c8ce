import { BrokerUnavailableError } from "../../core/errors.ts";
import type { OwnerStore } from "../../core/ownership/contract.ts";
import type { Stored } from "./bucket.ts";
import type { NatsContext } from "./context.ts";
import { refusal } from "./errors.ts";
import { type Durable, PartitionDurables } from "./partition_durables.ts";
import type { Snapshot } from "./progress.ts";
import type { Topic } from "./topic_book.ts";

/** Who owns a partition, and how far it is. */
interface OwnerRecord extends Snapshot {
  readonly epoch: number;
  /** Of the durable that the owner reads; grows with each. */
  readonly generation: number;
  /** Empty = nobody. */
  readonly owner: string;
  readonly leaseMs: number;
  /** When the stream was made: sequences of another one are others. */
  readonly stream: string;
}

/** What a member begins with that became the owner. */
export interface Begun {
  readonly durable: Durable;
  readonly from: Snapshot;
  /** What had been delivered to the owner before, who did not give it back. */
  readonly deliveredTo: number;
}

/** What the store asks its subscription. */
export interface OwnerStoreEvents {
  /** How far we are with a partition, in an epoch that is ours or was ours a moment ago. */
  snapshot(partition: number, epoch: number): Snapshot | undefined;
}

/** A record that another member holds, and since when it has not changed as far as we saw. */
interface Watched {
  readonly revision: number;
  readonly since: number;
}

/**
 * The owner records of one topic and group: a key a partition, changed only by who knows its revision.
 *
 * Nothing at the server runs out by itself. An owner renews its record; a member that waits for the partition takes it when it
 * saw the record unchanged for the owner's lease by its own clock. That is never too early: the owner counts its lease from
 * when it sent the renewal, the other from when it read it.
 */
export class NatsOwnerStore implements OwnerStore {
  readonly #context: NatsContext;
  readonly #topic: Topic;
  readonly #group: string;
  readonly #events: OwnerStoreEvents;
  readonly #durables: PartitionDurables;
  readonly #watched: (Watched | undefined)[] = [];
  readonly #records: (Stored<OwnerRecord> | undefined)[] = [];
  readonly #begun: (Begun | undefined)[] = [];

  constructor(context: NatsContext, topic: Topic, group: string, events: OwnerStoreEvents) {
    this.#context = context;
    this.#topic = topic;
    this.#group = group;
    this.#events = events;
    this.#durables = new PartitionDurables(context, topic, group);
  }

  get #who(): string {
    return `${this.#context.consumer}:${this.#context.instance}`;
  }

  #key(partition: number): string {
    return this.#topic.names.ownerKey(this.#group, partition);
  }

  /** What the last take-over of a partition began with. */
  begun(partition: number): Begun {
    return this.#begun[partition]!;
  }

  async acquire(partition: number, leaseMs: number): Promise<number | undefined> {
    const { main, bucket, topics, api, clock } = this.#context;
    await main.ready();
    if (!this.#topic.checked) await topics.check(this.#topic, api);
    const found = await bucket.get<OwnerRecord>(this.#key(partition));
    const { value: before, revision } = found;
    if (before !== undefined && before.owner !== "" && before.owner !== this.#who) {
      if (!await this.#ranOut(partition, found)) return undefined;
    }
    const epoch = Math.max((before?.epoch ?? 0) + 1, (before?.generation ?? 0) + 1, clock.now());
    const known = before !== undefined && before.stream === this.#topic.created;
    const record: OwnerRecord = {
      epoch,
      generation: epoch,
      owner: this.#who,
      leaseMs,
      stream: this.#topic.created,
      floor: known ? before.floor : 0,
      done: known ? before.done : [],
    };
    const ours = await bucket.put(this.#key(partition), record, revision);
    if (ours === undefined) return undefined;
    this.#watched[partition] = undefined;
    this.#records[partition] = { value: record, revision: ours, at: 0 };
    try {
      const next = await this.#durables.takeOver(partition, epoch, record);
      if (next === undefined) return undefined;
      const orderly = before?.owner === "";
      this.#begun[partition] = { ...next, deliveredTo: orderly ? 0 : next.deliveredTo };
      return epoch;
    } catch (error) {
      throw refusal("taking a partition", error);
    }
  }

  /** Whether the owner has been silent for its lease. */
  async #ranOut(partition: number, { value, revision, at }: Stored<OwnerRecord>): Promise<boolean> {
    const { clock, bucket } = this.#context;
    const { leaseMs } = value!;
    const now = clock.monotonic();
    const watched = this.#watched[partition];
    if (watched?.revision === revision) return now - watched.since >= leaseMs;
    this.#watched[partition] = { revision, since: now };
    // For one that was long dead when we came, the server's clock tells; with room for a clock that was set.
    const serverNow = await bucket.serverTime();
    return serverNow !== undefined && serverNow - at >= 3 * leaseMs + 5_000;
  }

  async renew(partition: number, epoch: number, leaseMs: number): Promise<boolean> {
    await this.#context.main.ready();
    const record = this.#records[partition]?.value;
    if (record === undefined) return false;
    const now = this.#events.snapshot(partition, epoch) ?? record;
    return await this.#change(partition, epoch, { ...record, leaseMs, floor: now.floor, done: now.done });
  }

  async surrender(partition: number, epoch: number): Promise<void> {
    const record = this.#records[partition]?.value;
    if (record === undefined || record.epoch !== epoch) return;
    const now = this.#events.snapshot(partition, epoch) ?? record;
    await this.#change(partition, epoch, { ...record, owner: "", floor: now.floor, done: now.done });
  }

  /** Makes another durable for a partition that is ours, because deliveries went astray, or it was removed. */
  async again(partition: number, epoch: number): Promise<Begun | "replaced" | undefined> {
    const { clock, topics, api } = this.#context;
    const record = this.#records[partition]?.value;
    if (record === undefined || record.epoch !== epoch) return undefined;
    this.#topic.checked = false;
    await topics.check(this.#topic, api);
    if (this.#topic.created !== record.stream) return "replaced";
    const now = this.#events.snapshot(partition, epoch) ?? record;
    const generation = Math.max(record.generation + 1, clock.now());
    const next = { ...record, generation, floor: now.floor, done: now.done };
    if (!await this.#change(partition, epoch, next)) return undefined;
    return await this.#durables.takeOver(partition, generation, { floor: now.floor, done: [] });
  }

  /** Changes the record if it still is ours in that epoch. */
  async #change(partition: number, epoch: number, record: OwnerRecord): Promise<boolean> {
    const { bucket } = this.#context;
    const key = this.#key(partition);
    for (let tries = 0; tries < 3; tries++) {
      const known = this.#records[partition];
      if (known?.value?.epoch !== epoch) return false;
      const revision = await bucket.put(key, record, known.revision);
      if (revision !== undefined) {
        this.#records[partition] = { value: record, revision, at: 0 };
        return true;
      }
      // An earlier change of ours may have been carried out without our hearing of it.
      const found = await bucket.get<OwnerRecord>(key);
      if (found.value?.owner !== this.#who || found.value.epoch !== epoch) return false;
      this.#records[partition] = found;
    }
    throw new BrokerUnavailableError("the owner record of a partition keeps changing");
  }
}
