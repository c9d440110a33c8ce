/**
 * All benchmarks, by name, in the order in which they run.
 *
 * @module
 */
import type { Case } from "./support/case.ts";

/** Loads a benchmark. */
export const CASES: Readonly<Record<string, () => Promise<Case>>> = {
  consume: () => import("./cases/consume.ts"),
  publish: () => import("./cases/publish.ts"),
  delay: () => import("./cases/delay.ts"),
  dispatch: () => import("./cases/dispatch.ts"),
  blocked: () => import("./cases/blocked.ts"),
  backlog: () => import("./cases/backlog.ts"),
  outage: () => import("./cases/outage.ts"),
};
