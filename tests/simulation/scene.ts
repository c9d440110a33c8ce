/**
 * What everybody in a simulated run shares.
 *
 * @module
 */
import type { SessionOptions } from "../../core/session/session.ts";
import { Dice } from "./dice.ts";
import type { LinkDefect } from "./link.ts";
import { History } from "./history.ts";
import { Line, type Weather } from "./network.ts";
import type { Plan } from "./plan.ts";
import { Rules } from "./rules.ts";
import { Server, type ServerDefect } from "./server.ts";
import type { TransportDefect, TransportSettings } from "./transport.ts";
import { type Actor, ActorClock, World } from "./world.ts";

/** What is broken on purpose, to prove that the rules notice. */
export interface Defects {
  readonly server?: ServerDefect;
  readonly link?: LinkDefect;
  readonly transport?: TransportDefect;
  /** Timers cannot be stopped. */
  readonly leakyClock?: boolean;
  /** What is retried comes back in half the time it was given. */
  readonly hastyRetries?: boolean;
}

/** Deadline of one command of a transport. */
export const COMMAND_MS = 300;

/** Settings of every session. */
export const SESSION: SessionOptions = {
  maxBytes: 65_536,
  publishTimeoutMs: 700,
  connectTimeoutMs: 500,
  callTimeoutMs: 500,
  maxStallMs: 4_000,
  beatMs: 1_000,
  keepCorruptBodies: false,
};

/** Time, server, weather and rules of one run. */
export class Scene {
  readonly plan: Plan;
  readonly defects: Defects;
  readonly world: World;
  readonly rules: Rules;
  readonly server: Server;
  readonly history: History | undefined;
  readonly weather: Weather = { up: true, stormy: true };
  /** Every consumer behaves from now on. */
  calm = false;
  #parts = 1;

  constructor(plan: Plan, defects: Defects) {
    this.plan = plan;
    this.defects = defects;
    this.world = new World(this.dice());
    this.rules = new Rules(this.world, plan);
    this.server = new Server(this.world, plan.partitions, this.rules, defects.server);
    this.rules.server = this.server;
    this.history = plan.ordered ? new History() : undefined;
  }

  /** A stream of chance for the next part. */
  dice(): Dice {
    return new Dice(this.plan.seed, this.#parts++);
  }

  /** A clock of a thread. */
  clock(actor: Actor): ActorClock {
    return new ActorClock(this.world, actor, this.dice(), this.defects.leakyClock);
  }

  /** A line to the server. */
  line(actor: Actor): Line {
    const { delayMs, faults } = this.plan;
    return new Line(this.world, this.weather, { delayMs, faults }, this.dice(), actor);
  }

  /** Settings of every transport. */
  get transport(): TransportSettings {
    const { ordered, partitions, leaseMs } = this.plan;
    return { ordered, partitions, leaseMs, commandMs: COMMAND_MS, defect: this.defects.transport };
  }
}

/** The id of the n-th message that is no envelope. */
export function corruptId(n: number): string {
  return `corrupt-${n}`;
}
