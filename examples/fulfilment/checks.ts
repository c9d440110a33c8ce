/**
 * What must hold at the end, computed from the orders that went in and from what was seen, not from what the service says of
 * itself.
 *
 * @module
 */
import type { DeadLetter, RunReport } from "@xsm/eda";
import type { Mailer } from "./mailer.ts";
import type { Observer } from "./observer.ts";
import type { OrderLine } from "./order.ts";
import type { PaymentProvider } from "./payments.ts";

/** Everything known at the end of a run. */
export interface Facts {
  readonly days: readonly (readonly OrderLine[])[];
  readonly report: RunReport;
  readonly observer: Observer;
  /** What the auditor read: sequence to ids. */
  readonly published: ReadonlyMap<string, readonly string[]>;
  readonly letters: readonly DeadLetter[];
  readonly payments: PaymentProvider;
  readonly mailer: Mailer;
  /** Deliveries that the second instance got. */
  readonly standby: number;
}

/** One thing that must hold. */
export interface Check {
  readonly holds: boolean;
  readonly says: string;
}

/** All checks. */
export function check(facts: Facts): readonly Check[] {
  const { report, observer, letters, payments, mailer, standby } = facts;
  const input = expected(facts.days);
  const processed = (type: string): number => observer.processed.get(type) ?? 0;
  const reasons = (reason: string): number => letters.filter((letter) => letter.reason === reason).length;
  const shipped = processed("shop.order.shipped");
  const cancelled = processed("shop.order.refunded");
  const order = compare(facts.published, observer.sequences);
  return [
    {
      holds: shipped === input.orders - input.cancelled - input.poison && cancelled === input.cancelled,
      says: `${input.orders} orders came in: ${shipped} shipped, ${cancelled} cancelled, ${input.poison} given up`,
    },
    {
      holds: order.differing === 0,
      says: `order per subject kept: ${order.events} events in ${order.sequences} sequences, ` +
        `${order.differing} sequences differ from what was published`,
    },
    {
      holds: (observer.outcomes.get("duplicate") ?? 0) === input.duplicates,
      says: `${input.duplicates} event was published twice and handled once`,
    },
    {
      holds: payments.charges === input.orders && payments.refunds === cancelled,
      says: `${payments.charges} charges, ${payments.refunds} refunds: one an order, one a cancelled order`,
    },
    {
      holds: mailer.count === shipped + cancelled && mailer.orders === mailer.count,
      says: `${mailer.count} mails to the customers of ${mailer.orders} orders`,
    },
    {
      holds: letters.length === input.poison + input.late && reasons("max_attempts") === input.poison &&
        reasons("instance_done") === input.late,
      says: `${letters.length} dead letters: ${input.poison} poisonous, ${input.late} for a finished order`,
    },
    {
      holds: observer.redeliveries + report.lost + report.staleSettles + standby === 0,
      says:
        `redeliveries ${observer.redeliveries}, deliveries lost ${report.lost}, late settles ${report.staleSettles}, ` +
        `work that the second instance got ${standby}`,
    },
  ];
}

interface Expected {
  readonly orders: number;
  readonly duplicates: number;
  readonly poison: number;
  readonly cancelled: number;
  /** Cancelled on a later day, when the order had been shipped. */
  readonly late: number;
}

/** What has to come of the lines that went in. */
function expected(days: readonly (readonly OrderLine[])[]): Expected {
  const [today = [], ...later] = days;
  const lines = days.flat();
  const cancellations = (of: readonly OrderLine[]) => of.filter((line) => line.type === "shop.order.cancelled");
  return {
    orders: new Set(lines.map((line) => line.subject)).size,
    duplicates: lines.length - new Set(lines.map((line) => line.id)).size,
    poison: lines.filter((line) => line.type === "shop.order.placed" && line.data.address === undefined).length,
    cancelled: cancellations(today).length,
    late: cancellations(later.flat()).length,
  };
}

/** How many sequences were not handled exactly as they were published: each event once, in that order. */
function compare(
  published: ReadonlyMap<string, readonly string[]>,
  handled: ReadonlyMap<string, readonly string[]>,
): { readonly sequences: number; readonly events: number; readonly differing: number } {
  const keys = new Set([...published.keys(), ...handled.keys()]);
  const text = (ids: readonly string[] = []): string => ids.join(" ");
  return {
    sequences: keys.size,
    events: [...published.values()].reduce((sum, ids) => sum + ids.length, 0),
    differing: [...keys].filter((key) => text(published.get(key)) !== text(handled.get(key))).length,
  };
}
