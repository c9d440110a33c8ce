import type { Timer } from "../../core/clock.ts";
import type { NatsContext } from "./context.ts";
import { nameOf } from "./names.ts";
import type { Topic } from "./topic_book.ts";

/** How often the floor is asked for and saved while messages are settled, at most. */
const SAVE_MS = 1_000;
/** How often it is looked at how far behind the group is. */
const LAG_MS = 10_000;

interface FloorRecord {
  /** When the stream was made: sequences of another one are others. */
  readonly stream: string;
  readonly floor: number;
}

/**
 * How far a group is with `ordered: false`: the sequence up to which everything is settled, kept in the bucket. A durable that
 * is lost starts again there, not at the start, or everything that was acked would come again.
 */
export class GroupFloor {
  readonly #context: NatsContext;
  readonly #topic: Topic;
  readonly #group: string;
  readonly #key: string;
  #saved = 0;
  #dirty = false;
  #saveAt = 0;
  #lagAt = 0;
  #full = 0;
  #saving: Promise<void> | undefined;
  #later: Timer | undefined;
  #stopped = false;
  #failed = false;

  constructor(context: NatsContext, topic: Topic, group: string) {
    this.#context = context;
    this.#topic = topic;
    this.#group = group;
    this.#key = topic.names.floorKey(group);
  }

  /** The floor that was saved last, by any member; 0 = none. */
  async known(): Promise<number> {
    const { value } = await this.#context.bucket.get<FloorRecord>(this.#key);
    return value !== undefined && value.stream === this.#topic.created ? value.floor : 0;
  }

  /** Messages were settled: their floor is saved within a second. */
  settled(): void {
    this.#dirty = true;
    this.look();
    if (!this.#dirty || this.#later !== undefined || this.#stopped) return;
    this.#later = this.#context.clock.timer(SAVE_MS, () => {
      this.#later = undefined;
      if (this.#dirty) this.look();
    });
  }

  /** Saves the floor, or tells the lag, when it is time. */
  look(): void {
    const now = this.#context.clock.monotonic();
    if (this.#saving !== undefined || this.#stopped || now < (this.#dirty ? this.#saveAt : this.#lagAt)) return;
    this.#saveAt = now + SAVE_MS;
    this.#saving = this.#save().catch(() => this.#fail()).finally(() => this.#saving = undefined);
  }

  /** Once, for whoever wonders why a lost durable starts at the beginning: the bucket may be missing, or a right to it. */
  #fail(): void {
    this.#dirty = true;
    if (this.#failed || !this.#context.main.live) return;
    this.#failed = true;
    this.#context.events.signal("floor-not-saved", this.#topic.name, { group: this.#group });
  }

  async #save(): Promise<void> {
    const { api, bucket, events, clock } = this.#context;
    // What is settled from now on is for the next time.
    this.#dirty = false;
    const info = await api.consumer(this.#topic.names.stream, nameOf("group", this.#group));
    if (info === undefined) return;
    const now = clock.monotonic();
    if (now >= this.#lagAt) {
      this.#lagAt = now + LAG_MS;
      events.lag(this.#topic.name, this.#group, info.num_pending);
      this.#watchFull(info.config.max_ack_pending ?? -1, info.num_ack_pending);
    }
    const floor = info.ack_floor.stream_seq;
    if (floor <= this.#saved) return;
    const { value, revision } = await bucket.get<FloorRecord>(this.#key);
    const ours = { stream: this.#topic.created, floor };
    if (value === undefined || value.stream !== ours.stream || value.floor < floor) {
      // Lost to another member, it is that one's floor that counts.
      await bucket.put(this.#key, ours, revision);
    }
    this.#saved = floor;
  }

  /** A durable whose limit stays reached delivers nothing any more: somebody holds messages and never settles them. */
  #watchFull(most: number, waiting: number): void {
    this.#full = most > 0 && waiting >= most ? this.#full + 1 : 0;
    if (this.#full === 3) {
      this.#context.events.signal("ack-pending-full", this.#topic.name, { group: this.#group, most });
    }
  }

  /** Saves once more. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#later?.cancel();
    await this.#saving;
    if (this.#dirty && this.#context.main.live) await this.#save().catch(() => {});
  }
}
