/**
 * What a benchmark finds out: figures, one a line of the report.
 *
 * @module
 */

/** One figure on one runtime. */
export interface Figure {
  /** What was measured; the same words on every runtime. */
  readonly what: string;
  /** The median over the rounds. */
  readonly value: number;
  /** How it is written: a ratio, whole numbers with their unit, or a count. */
  readonly unit: "ratio" | "/s" | "µs" | "ms" | "MB" | "count";
  /** The goal, where there is one. */
  readonly goal?: Goal;
  /** Smallest and largest of the rounds. */
  readonly range?: readonly [least: number, most: number];
}

/** What a figure should reach. */
export interface Goal {
  readonly is: "at least" | "at most";
  readonly value: number;
}

/** Whether a figure reaches its goal; undefined without one. */
export function reaches({ value, goal }: Figure): boolean | undefined {
  if (goal === undefined) return undefined;
  return goal.is === "at least" ? value >= goal.value : value <= goal.value;
}

/** A number as it stands in the report. */
export function written(value: number, unit: Figure["unit"]): string {
  if (unit === "ratio") return value.toFixed(2);
  if (unit === "count") return String(value);
  const digits = unit === "/s" ? 0 : value < 100 ? 1 : 0;
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** The middle one; the mean of the two middle ones. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length === 0) return NaN;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** The value below which the share `q` of all lies. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? NaN;
}

/** A figure out of the values of all rounds. */
export function figure(what: string, unit: Figure["unit"], values: readonly number[], goal?: Goal): Figure {
  const range = values.length > 1 ? [Math.min(...values), Math.max(...values)] as const : undefined;
  return {
    what,
    value: median(values),
    unit,
    ...(goal === undefined ? {} : { goal }),
    ...(range === undefined ? {} : { range }),
  };
}

/** A goal from below. */
export const atLeast = (value: number): Goal => ({ is: "at least", value });

/** A goal from above. */
export const atMost = (value: number): Goal => ({ is: "at most", value });
