/**
 * What a run consists of: drawn from its seed as plain data, so that it can be made smaller.
 *
 * @module
 */
import { Dice } from "./dice.ts";

/** Something that happens to a member, or to all. */
export interface Action {
  readonly at: number;
  /**
   * `cut`: its connection ends · `silent`: nothing passes for a while · `freeze`: its process stands still · `sleep`: the same
   * and its clock with it · `busy`: only its host thread · `crash`: its worker dies · `close`: it closes, a new one joins
   * later · `kill`: it is gone without a word, a new one joins later · `down`: the server refuses connections and ends all.
   */
  readonly kind: "cut" | "silent" | "freeze" | "sleep" | "busy" | "crash" | "close" | "kill" | "down";
  readonly member: number;
  readonly forMs: number;
}

/** How a member's consumer behaves. */
export interface Style {
  readonly link: "inline" | "queued";
  readonly joinsAt: number;
  readonly prefetch: number;
  /** Handles one at a time, or all it is given. */
  readonly parallel: boolean;
  /** Leaves its subscription after so many deliveries, and comes back after `awayMs`. */
  readonly stay: number;
  readonly awayMs: number;
  readonly idleMs: number | undefined;
  /** Longest time a message takes. */
  readonly workMs: number;
  /** How likely it retries, drops, forgets or settles twice. */
  readonly retries: number;
  readonly drops: number;
  readonly forgets: number;
  readonly twice: number;
}

/** One run. */
export interface Plan {
  readonly seed: number;
  readonly ordered: boolean;
  readonly partitions: number;
  readonly messages: number;
  readonly subjects: number;
  /** Messages that are no envelopes, and some whose body is gone. */
  readonly corrupt: number;
  readonly publishEveryMs: number;
  readonly batch: boolean;
  readonly leaseMs: number;
  readonly delayMs: number;
  readonly faults: number;
  readonly members: readonly Style[];
  readonly actions: readonly Action[];
}

const KINDS: readonly Action["kind"][] = [
  "cut",
  "cut",
  "silent",
  "freeze",
  "freeze",
  "sleep",
  "busy",
  "crash",
  "close",
  "kill",
  "down",
];

/** Actions happen before this moment. */
export const ACTIVE_MS = 3_000;

function styleOf(dice: Dice, first: boolean): Style {
  return {
    link: dice.pick(["inline", "queued"]),
    joinsAt: first ? 0 : dice.below(1_500),
    prefetch: dice.pick([1, 2, 3, 5, 8]),
    parallel: dice.hit(0.5),
    stay: dice.hit(0.3) ? 1 + dice.below(4) : Infinity,
    awayMs: dice.pick([0, 10, 300, 5_500]),
    idleMs: dice.pick([undefined, undefined, undefined, 0, 150]),
    workMs: dice.pick([0, 0, 30, 300, 1_500]),
    retries: dice.pick([0, 0.1, 0.3]),
    drops: dice.pick([0, 0.1]),
    forgets: dice.pick([0, 0, 0.15]),
    twice: dice.pick([0, 0.2]),
  };
}

/** The plan of a seed. */
export function planOf(seed: number): Plan {
  const dice = new Dice(seed, 0);
  const members = Array.from({ length: dice.pick([1, 2, 2, 3]) }, (_, n) => styleOf(dice, n === 0));
  const actions = Array.from({ length: dice.pick([0, 1, 2, 3, 5]) }, (): Action => ({
    at: dice.below(ACTIVE_MS),
    kind: dice.pick(KINDS),
    member: dice.below(members.length),
    forMs: dice.pick([20, 200, 600, 1_500, 2_500]),
  })).sort((a, b) => a.at - b.at);
  return {
    seed,
    ordered: dice.hit(0.7),
    partitions: dice.pick([1, 1, 2, 3]),
    messages: dice.pick([2, 4, 8, 14]),
    subjects: dice.pick([1, 2, 4]),
    corrupt: dice.pick([0, 0, 0, 2]),
    publishEveryMs: dice.pick([0, 5, 100, 300]),
    batch: dice.hit(0.3),
    leaseMs: dice.pick([600, 1_000]),
    delayMs: dice.pick([0, 4, 40, 120]),
    faults: dice.pick([0, 0, 0.02, 0.1]),
    members,
    actions,
  };
}

/** Plans that are a little smaller than `plan`, the smallest first. */
export function smaller(plan: Plan): Plan[] {
  const out: Plan[] = [];
  const set = (change: Partial<Plan>): void => void out.push({ ...plan, ...change });
  if (plan.actions.length > 1) set({ actions: [] });
  plan.actions.forEach((_, n) => set({ actions: plan.actions.filter((_, at) => at !== n) }));
  if (plan.members.length > 1) {
    plan.members.forEach((_, n) =>
      set({
        members: plan.members.filter((_, at) => at !== n),
        actions: plan.actions.filter(({ member }) => member !== n).map((action) =>
          action.member > n ? { ...action, member: action.member - 1 } : action
        ),
      })
    );
  }
  if (plan.messages > 1) {
    set({ messages: plan.messages >> 1 });
    set({ messages: plan.messages - 1 });
  }
  if (plan.corrupt > 0) set({ corrupt: 0 });
  if (plan.partitions > 1) set({ partitions: 1 });
  if (plan.subjects > 1) set({ subjects: 1 });
  if (plan.faults > 0) set({ faults: 0 });
  if (plan.delayMs > 0) set({ delayMs: 0 });
  if (plan.batch) set({ batch: false });
  if (plan.publishEveryMs > 0) set({ publishEveryMs: 0 });
  plan.members.forEach((style, n) => {
    const change = (part: Partial<Style>): void =>
      set({ members: plan.members.map((one, at) => at === n ? { ...one, ...part } : one) });
    if (style.link === "queued") change({ link: "inline" });
    if (style.stay !== Infinity) change({ stay: Infinity });
    if (style.idleMs !== undefined) change({ idleMs: undefined });
    for (const name of ["retries", "drops", "forgets", "twice", "workMs", "joinsAt"] as const) {
      if (style[name] > 0) change({ [name]: 0 });
    }
    if (style.parallel) change({ parallel: false });
    if (style.prefetch > 1) change({ prefetch: style.prefetch - 1 });
  });
  return out;
}
