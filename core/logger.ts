/**
 * Where the library says what it has to say. Messages name things and never quote values.
 *
 * @module
 */
import { InvalidOptionError } from "./errors.ts";

/** Facts that go with a message: names, counts, codes. */
export type LogFields = Readonly<Record<string, unknown>>;

/** A logger, shaped like `console`. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

type Level = keyof Logger;
const LEVELS: readonly Level[] = ["debug", "info", "warn", "error"];

/** Calls the target's method where there is one; a logger that fails must not take the caller down. */
function tell(target: Partial<Logger>, level: Level, message: string, fields: LogFields | undefined): void {
  try {
    const result: unknown = fields === undefined ? target[level]?.(message) : target[level]?.(message, fields);
    // An async logger's rejection would otherwise end the process.
    if (result instanceof Promise) result.catch(() => {});
  } catch {
    // There is nowhere left to say it.
  }
}

function over(target: Partial<Logger>): Logger {
  return {
    debug: (message, fields) => tell(target, "debug", message, fields),
    info: (message, fields) => tell(target, "info", message, fields),
    warn: (message, fields) => tell(target, "warn", message, fields),
    error: (message, fields) => tell(target, "error", message, fields),
  };
}

const NAME = "@xsm/eda:";

// The console is looked up at each call, so that tools which replace it are heard.
const consoleLogger: Logger = over({
  // deno-lint-ignore no-console -- the default logger: warnings must reach somebody who configured nothing
  warn: (message, fields) => fields === undefined ? console.warn(NAME, message) : console.warn(NAME, message, fields),
  // deno-lint-ignore no-console -- as above
  error: (message, fields) =>
    fields === undefined ? console.error(NAME, message) : console.error(NAME, message, fields),
});

/** Says nothing. */
export const silentLogger: Logger = over({});

/**
 * The logger of an option: warnings and errors to the console by default, nothing for `false`, else the given one, whose
 * failures are swallowed and whose missing methods are skipped. What it answers never throws.
 *
 * @throws InvalidOptionError for anything that has none of the methods.
 */
export function resolveLogger(option: Logger | false | undefined): Logger {
  if (option === undefined) return consoleLogger;
  if (option === false) return silentLogger;
  const given: unknown = option;
  const isObject = typeof given === "object" && given !== null || typeof given === "function";
  if (!isObject || !LEVELS.some((level) => typeof (given as Partial<Logger>)[level] === "function")) {
    throw new InvalidOptionError("logger must be false or an object with the methods debug, info, warn and error");
  }
  return over(option);
}
