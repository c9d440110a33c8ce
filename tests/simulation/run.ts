/**
 * Runs a plan and says which rules it broke.
 *
 * @module
 */
import { Cast } from "./cast.ts";
import { ACTIVE_MS, type Plan } from "./plan.ts";
import type { Violation } from "./rules.ts";
import { COMMAND_MS, type Defects, Scene } from "./scene.ts";
import { MOST_STEPS } from "./world.ts";

export type { Defects } from "./scene.ts";

/** What a run came to. */
export interface RunResult {
  readonly violations: readonly Violation[];
  readonly steps: number;
  /** Virtual milliseconds. */
  readonly ms: number;
}

/** How long everything may take once all is well again. */
const HEALED_MS = 60_000;

/** Runs a plan; `trace` gets a line for everything that happens. */
export async function runPlan(plan: Plan, defects: Defects = {}, trace?: (line: string) => void): Promise<RunResult> {
  const { stackTraceLimit } = Error;
  // Faults make errors by the thousand, and nobody reads where they come from.
  Error.stackTraceLimit = 0;
  try {
    const scene = new Scene(plan, defects);
    scene.world.trace = trace;
    const cast = new Cast(scene);
    await untilSettled(scene, cast);
    await closeAll(scene, cast);
    for (const text of scene.history?.violations(scene.server) ?? []) scene.rules.broken("history", text);
    return { violations: scene.rules.violations, steps: scene.world.steps, ms: scene.world.now };
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** Lets happen what is planned, lets all be well, and waits until everything is settled and everybody healthy. */
async function untilSettled({ plan, world, server, rules }: Scene, cast: Cast): Promise<void> {
  const { publisher } = cast;
  const settled = (): boolean => publisher.done && server.open === 0;
  const sick = (): boolean => cast.alive.some(({ broker }) => broker.health().status === "unhealthy");
  await world.run(() => cast.over && publisher.done && (settled() || world.now >= ACTIVE_MS), HEALED_MS);
  cast.heal();
  // Faults that are under way still strike.
  const calmAt = world.now + 2 * plan.delayMs + COMMAND_MS;
  await world.run(() => world.now >= calmAt && settled() && !sick(), HEALED_MS);
  for (const { id, partition, seq, holder } of server.unsettled) {
    rules.broken("lost", `${id} (${partition}/${seq}) was never settled; it is with ${holder ?? "nobody"}`);
  }
  publisher.check(server);
  if (sick()) rules.broken("health", "a broker is unhealthy though all is well");
}

/** Closes every broker and looks at what is left of them. */
async function closeAll({ plan, world, server, rules }: Scene, cast: Cast): Promise<void> {
  const { alive, publisher } = cast;
  const open = alive.filter(({ closed }) => !closed);
  let left = open.length + 1;
  for (const process of open) void process.close().then(() => left--);
  void publisher.close().then(() => left--);
  await world.run(() => left === 0, HEALED_MS);
  if (left > 0) rules.broken("quiet", `${left} of the brokers did not close`);
  for (const { name, armed, consumer } of alive) {
    if (armed > 0) rules.broken("quiet", `${name} left ${armed} timers armed`);
    if (consumer.pending > 0) rules.broken("quiet", `${consumer.pending} settles of ${name} were never answered`);
  }
  if (world.steps > MOST_STEPS) rules.broken("quiet", "the run went round in circles");
  // What is given back at once where nothing came between; else a surrender may have been lost, and its lease runs out.
  const smooth = plan.faults === 0 && plan.actions.every(({ kind }) => kind === "close" || kind === "busy");
  if (left === 0 && !server.isFree(smooth ? 0 : plan.leaseMs + 1)) {
    rules.broken("quiet", "somebody closed and still owns or holds something");
  }
}
