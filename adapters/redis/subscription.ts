import type { FetchRequest, NativeOutcome, Raw } from "../../core/transport.ts";
import type { RedisNative } from "./context.ts";

/** One topic and group that is read, in whichever mode. */
export interface Subscription {
  fetch(request: FetchRequest): Promise<readonly Raw[]>;
  ack(natives: readonly RedisNative[]): Promise<readonly NativeOutcome[]>;
  release(natives: readonly RedisNative[]): Promise<readonly NativeOutcome[]>;
  /** Absent where owning the partition is the lease. */
  extend?(natives: readonly RedisNative[]): Promise<readonly NativeOutcome[]>;
  /** Destroys its own connections; the next use makes new ones. */
  reset(why: string): void;
  /** Ends reading and gives everything back. Never rejects. */
  stop(): Promise<void>;
}
