import type { Clock } from "../../core/clock.ts";
import type { TransportEvents } from "../../core/transport.ts";
import type { Connection } from "./connection.ts";
import type { ResolvedOptions } from "./resolve.ts";
import type { Topology } from "./topology.ts";

/** What the parts of a transport share. */
export interface RabbitContext {
  readonly clock: Clock;
  readonly options: ResolvedOptions;
  /** Everything but publishing. */
  readonly main: Connection;
  readonly topology: Topology;
  readonly events: TransportEvents;
  /** Our name among the members of a group. */
  readonly consumer: string;
  /** The next epoch: each consumer at the server has one of its own. */
  nextEpoch(): number;
}
