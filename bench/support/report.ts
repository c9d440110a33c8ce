/**
 * The report: one table, a line a figure, a column a runtime.
 *
 * @module
 */
import { cpus, loadavg, totalmem, type } from "node:os";
import type { Runtime } from "../../scripts/testing/runtimes.ts";
import { type Figure, reaches, written } from "./figure.ts";

/** Figures of all runtimes, by runtime and name. */
export type Found = ReadonlyMap<string, readonly Figure[]>;

/** The machine in one line. */
export function machineLine(): string {
  const processors = cpus();
  const gigabytes = (totalmem() / 1024 ** 3).toFixed(0);
  return `${processors.length} x ${processors[0]?.model.trim() ?? "unknown CPU"}, ${gigabytes} GB, ${type()}`;
}

/** How busy the machine is. */
export function loadLine(): string {
  return `load ${loadavg().map((load) => load.toFixed(2)).join(" ")}`;
}

function cell(figure: Figure | undefined): string {
  if (figure === undefined) return "";
  const reached = reaches(figure);
  const range = figure.range === undefined
    ? ""
    : ` (${written(figure.range[0], figure.unit)}–${written(figure.range[1], figure.unit)})`;
  return `${written(figure.value, figure.unit)}${reached === false ? " ✗" : ""}${range}`;
}

/** The table, in Markdown; columns aligned for reading it as it is. */
export function table(runtimes: readonly Runtime[], found: Found): string[] {
  const names = [...new Set([...found.values()].flatMap((figures) => figures.map(({ what }) => what)))];
  const rows = names.map((what) => {
    const figures = runtimes.map(({ name }) => found.get(name)?.find((figure) => figure.what === what));
    const known = figures.find((figure) => figure !== undefined)!;
    const { goal, unit } = known;
    const sign = goal === undefined ? "" : goal.is === "at least" ? "≥ " : "≤ ";
    const wanted = goal === undefined ? "" : `${sign}${written(goal.value, unit)}`;
    return [unit === "ratio" || unit === "count" ? what : `${what}, ${unit}`, wanted, ...figures.map(cell)];
  });
  const head = ["figure", "goal", ...runtimes.map(({ name, version }) => `${name} ${version}`)];
  const widths = head.map((title, at) => Math.max(title.length, ...rows.map((row) => row[at]!.length)));
  const line = (row: readonly string[]): string => `| ${row.map((text, at) => text.padEnd(widths[at]!)).join(" | ")} |`;
  return [line(head), `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`, ...rows.map(line)];
}
