/**
 * What happens in a simulated run, written down as members on real servers write it down, for the same checker.
 *
 * @module
 */
import type { Delivery, SettleOutcome } from "../../core/contract.ts";
import { check } from "../reliability/checker.ts";
import type { Fault, Hand, Line } from "../reliability/history.ts";
import type { Entry, Server } from "./server.ts";

/** A hand-out whose message is known by its entry; its number within its subject is known at the end. */
interface Noted {
  readonly entry: Entry;
  readonly member: string;
  readonly d: number;
  held: boolean;
}

type Said =
  | { readonly k: "handed" | "held" | "lost"; readonly hand: Noted }
  | { readonly k: "settling"; readonly hand: Noted; readonly confirm: boolean }
  | { readonly k: "settled"; readonly hand: Noted; readonly outcome: SettleOutcome }
  | { readonly k: "fault"; readonly member: string; readonly what: Fault };

/** The history of a run with order. Messages without a subject are left out: nothing is promised of their order. */
export class History {
  readonly #said: Said[] = [];
  readonly #hands = new Map<Delivery, Noted>();
  #count = 0;
  #doubtful = false;

  /** A member is handed a delivery; `sure` = its host knew all that its session knew, by a clock that had not stood still. */
  handed(member: string, delivery: Delivery, entry: Entry, sure: boolean): void {
    if (entry.subject === undefined) return;
    if (!sure) this.#doubtful = true;
    const hand: Noted = { entry, member, d: this.#count++, held: false };
    this.#hands.set(delivery, hand);
    this.#said.push({ k: "handed", hand });
    delivery.signal.addEventListener("abort", () => this.#said.push({ k: "lost", hand }), { once: true });
  }

  /** It is about to be settled. */
  settling(delivery: Delivery, confirm: boolean): void {
    const hand = this.#hands.get(delivery);
    if (hand !== undefined) this.#said.push({ k: "settling", hand, confirm });
  }

  /** What came of it. */
  settled(delivery: Delivery, outcome: SettleOutcome): void {
    const hand = this.#hands.get(delivery);
    if (hand !== undefined) this.#said.push({ k: "settled", hand, outcome });
  }

  /** It was held back. */
  held(delivery: Delivery): void {
    const hand = this.#hands.get(delivery);
    if (hand === undefined) return;
    hand.held = true;
    this.#said.push({ k: "held", hand });
  }

  /** A partition ended at a member: nobody else can say of what was held back that it is lost. */
  revoked(member: string, partition: number): void {
    for (const hand of this.#hands.values()) {
      if (!hand.held || hand.member !== member || hand.entry.partition !== partition) continue;
      hand.held = false;
      this.#said.push({ k: "lost", hand });
    }
  }

  /** Something is done to a member. */
  fault(member: string, what: Fault): void {
    this.#said.push({ k: "fault", member, what });
  }

  /** What the checker says of it; nothing where a host acted on what it could not know yet. */
  violations(server: Server): readonly string[] {
    if (this.#doubtful) return [];
    const numbers = new Map<Entry, number>();
    const counts = new Map<string, number>();
    for (const entry of server.log.flat()) {
      if (entry.subject === undefined) continue;
      const n = counts.get(entry.subject) ?? 0;
      numbers.set(entry, n);
      counts.set(entry.subject, n + 1);
    }
    const handOf = ({ entry, member, d }: Noted): Hand => ({
      member,
      d,
      subject: entry.subject!,
      n: numbers.get(entry)!,
    });
    const last = new Map<Entry, Noted>();
    for (const said of this.#said) if (said.k === "handed") last.set(said.hand.entry, said.hand);
    const lines = this.#said.flatMap((said): Line[] => {
      if (said.k === "fault") return [said];
      const { hand, ...rest } = said;
      // It took effect, and the answer that would have said so was lost.
      const unheard = said.k === "settled" && said.outcome === "stale" && hand.entry.settled !== undefined;
      return unheard && last.get(hand.entry) === hand ? [] : [{ ...rest, ...handOf(hand) } as Line];
    });
    // Settles on their way come on top of what is in flight, and lines are slow here: the credit has a rule of its own.
    return check(counts, lines, Infinity).violations;
  }
}
