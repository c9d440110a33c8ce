/**
 * Checks of option objects: an unknown option is refused by its name, a wrong one by its name and range. No value is ever
 * part of a message.
 *
 * @module
 */
import { InvalidOptionError } from "./errors.ts";

/** Edits from `a` to `b`: a letter added, left out, changed, or two neighbours swapped count one each. */
function distance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swap = swapped ? (before[j - 2] ?? 0) + 1 : change;
      next.push(Math.min(change, swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    [before, row] = [row, next];
  }
  return row[b.length] ?? 0;
}

/** Lower case, letters and digits only, so that `max_bytes` and `MaxBytes` are both near `maxBytes`. */
function bare(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, "");
}

/** The name that was probably meant; `undefined` where none is near. */
export function closestName(name: string, known: readonly string[]): string | undefined {
  const wanted = bare(name.slice(0, 64));
  let best: string | undefined;
  let least = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of known) {
    const far = distance(wanted, bare(candidate));
    if (far < least) [best, least] = [candidate, far];
  }
  return best;
}

/** A number with its digits in groups of three: 10,000. */
export function grouped(value: number): string {
  return String(value).replace(/\B(?=(?:\d{3})+(?!\d))(?<!\..*)/g, ",");
}

function quoted(name: string): string {
  return JSON.stringify(name.length > 64 ? `${name.slice(0, 64)}…` : name);
}

function invalid(option: string, message: string): InvalidOptionError {
  return new InvalidOptionError(message, { details: { option: option.slice(0, 64) } });
}

/**
 * Refuses what is no option, by name.
 *
 * @param owner Whose options they are, such as `RedisStreamsBroker`.
 * @param options The object given; `undefined` passes.
 * @param known Names of all options.
 * @param hint Where options of a client belong, such as `client options go into clientOptions`.
 * @throws InvalidOptionError
 */
export function checkOptions(
  owner: string,
  options: object | undefined,
  known: readonly string[],
  hint?: string,
): void {
  if (options === undefined) return;
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new InvalidOptionError(`${owner}: options must be an object`);
  }
  // Names only: a getter is not run, and what a proxy throws is not ours to pass on.
  let names: readonly string[];
  try {
    names = Object.keys(options);
  } catch {
    throw new InvalidOptionError(`${owner}: options must be a plain object whose names can be listed`);
  }
  const unknown = names.filter((name) => !known.includes(name));
  const [first] = unknown;
  if (first === undefined) return;
  const close = closestName(first, known);
  const meant = unknown.length === 1 && close !== undefined ? `; did you mean ${quoted(close)}?` : "";
  const list = unknown.slice(0, 10).map(quoted).join(", ");
  const what = unknown.length === 1 ? "unknown option" : "unknown options";
  const rest = hint === undefined ? "" : `; ${hint}`;
  throw invalid(first, `${owner}: ${what} ${list}${meant}${rest}. Known are ${[...known].sort().join(", ")}`);
}

function rangeText(min: number, max: number): string {
  if (max >= Number.MAX_SAFE_INTEGER) return `of at least ${grouped(min)}`;
  return `from ${grouped(min)} to ${grouped(max)}`;
}

/**
 * Answers an option that is an integer within bounds. `max` of `Number.MAX_SAFE_INTEGER` means no upper bound worth naming.
 *
 * @throws InvalidOptionError, its text made from the bounds: `prefetch must be an integer from 1 to 10,000`.
 */
export function checkRange(name: string, value: unknown, min: number, max: number): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) return value;
  throw invalid(name, `${name} must be an integer ${rangeText(min, max)}`);
}

/**
 * Answers an option that is a number within bounds, with a fraction or without.
 *
 * @throws InvalidOptionError
 */
export function checkNumber(name: string, value: unknown, min: number, max: number): number {
  if (typeof value === "number" && value >= min && value <= max) return value;
  throw invalid(name, `${name} must be a number ${rangeText(min, max)}`);
}

/**
 * Answers an option that is one of a few texts.
 *
 * @throws InvalidOptionError listing them.
 */
export function checkOneOf<V extends string>(name: string, value: unknown, allowed: readonly V[]): V {
  if (allowed.includes(value as V)) return value as V;
  throw invalid(name, `${name} must be ${allowed.map(quoted).join(" or ")}`);
}

/**
 * Answers a name of a topic or group. Names travel into keys and subjects of brokers: a text of 1 to 200 characters without
 * control characters.
 *
 * @throws InvalidOptionError
 */
export function checkName(what: string, name: unknown): string {
  // deno-lint-ignore no-control-regex
  if (typeof name === "string" && name !== "" && name.length <= 200 && !/[\x00-\x1f\x7f]/.test(name)) return name;
  throw invalid(what, `${what} must be a text of 1 to 200 characters without control characters`);
}
