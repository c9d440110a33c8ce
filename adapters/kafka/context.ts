import type { Clock } from "../../core/clock.ts";
import type { TransportEvents } from "../../core/transport.ts";
import type { Admin } from "./admin.ts";
import type { AssignerProtocol, ClientFactory } from "./client.ts";
import type { ResolvedOptions } from "./resolve.ts";
import type { TopicBook } from "./topic_book.ts";

/** What a subscription needs of its transport. */
export interface KafkaContext {
  readonly clock: Clock;
  readonly options: ResolvedOptions;
  readonly admin: Admin;
  readonly topics: TopicBook;
  readonly create: ClientFactory;
  readonly protocol: AssignerProtocol;
  /** Tells this transport from others in a group. */
  readonly instance: string;
  /** Numbers the times that partitions were ours; never the same one twice. */
  nextEpoch(): number;
  /** The transport's listener of the moment. */
  readonly events: TransportEvents;
}
