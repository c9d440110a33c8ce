import type { Native } from "../transport.ts";
import type { PumpContext, PumpSide } from "./pump_context.ts";

/** Gives natives back to the broker, which would keep them for us; where that fails, its own hold on them ends in time. */
export function release(
  { transport, connection, callTimeoutMs }: PumpContext,
  { topic, group }: PumpSide,
  natives: readonly Native[],
): void {
  if (natives.length === 0) return;
  connection.call("release", callTimeoutMs, () => transport.release(topic, group, natives, 0)).catch(() => {});
}
