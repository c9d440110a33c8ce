import type { Clock } from "../../core/clock.ts";
import type { TransportEvents } from "../../core/transport.ts";
import type { Api } from "./api.ts";
import type { Bucket } from "./bucket.ts";
import type { Connection } from "./connection.ts";
import type { ResolvedOptions } from "./resolve.ts";
import type { TopicBook } from "./topic_book.ts";

/** What a subscription needs of its transport. */
export interface NatsContext {
  readonly clock: Clock;
  readonly options: ResolvedOptions;
  /** Everything but publishing. */
  readonly main: Connection;
  readonly api: Api;
  readonly bucket: Bucket;
  readonly topics: TopicBook;
  /** The transport's listener of the moment. */
  readonly events: TransportEvents;
  /** Our name in groups. */
  readonly consumer: string;
  /** Tells this transport from one that was given the same name. */
  readonly instance: string;
}

/** The handle of one message: enough to settle it. */
export interface NatsNative {
  readonly partition: number;
  /** Of the partition when it was read; 0 where nobody owns partitions. */
  readonly epoch: number;
  /** Of the message in its stream. */
  readonly seq: number;
  /** Where a settle is sent; another one after the message was delivered again to us. */
  reply: string;
  /** Whether it was settled, as far as we are concerned. */
  settled: boolean;
}
