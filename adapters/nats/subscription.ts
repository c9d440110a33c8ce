import type { FetchRequest, NativeOutcome, Raw } from "../../core/transport.ts";
import type { NatsNative } from "./context.ts";

/** One topic and group that is read, in whichever mode. */
export interface Subscription {
  fetch(request: FetchRequest): Promise<readonly Raw[]>;
  ack(natives: readonly NatsNative[]): Promise<readonly NativeOutcome[]>;
  drop(natives: readonly NatsNative[]): Promise<readonly NativeOutcome[]>;
  release(natives: readonly NatsNative[], delayMs: number): Promise<readonly NativeOutcome[]>;
  /** Absent where owning the partition is the lease. */
  extend?(natives: readonly NatsNative[]): Promise<readonly NativeOutcome[]>;
  /** Ends reading and gives everything back. Never rejects. */
  stop(): Promise<void>;
}
