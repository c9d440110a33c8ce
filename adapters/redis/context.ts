import type { Clock } from "../../core/clock.ts";
import type { TransportEvents } from "../../core/transport.ts";
import type { Connection } from "./connection.ts";
import type { ResolvedOptions } from "./resolve.ts";
import type { TopicBook } from "./topic_book.ts";
import type { Trimmer } from "./trimmer.ts";

/** What a subscription needs of its transport. */
export interface RedisContext {
  readonly clock: Clock;
  readonly options: ResolvedOptions;
  /** Everything but publishing and blocking. */
  readonly main: Connection;
  readonly topics: TopicBook;
  readonly trimmer: Trimmer;
  /** The transport's listener of the moment. */
  readonly events: TransportEvents;
  /** Our name in groups. */
  readonly consumer: string;
  /** Tells this transport from one that was given the same name. */
  readonly instance: string;
  /** A new connection for reads that block. */
  openBlocking(): Connection;
}

/** The handle of one message: enough to settle it. */
export interface RedisNative {
  readonly partition: number;
  /** Of the partition when it was read; 0 where nobody owns partitions. */
  readonly epoch: number;
  readonly id: string;
  /** Monotonic ms when its claim was last confirmed to begin; counts only where nobody owns partitions. */
  heldSince: number;
  /** Settled perhaps: an answer was lost, or the entry is gone. That it is not pending is no surprise then. */
  doubtful: boolean;
  /** Where it is counted as held; undefined once it is not. */
  batch: unknown;
}
