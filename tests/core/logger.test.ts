import assert from "node:assert/strict";
import { InvalidOptionError } from "../../core/errors.ts";
import { type Logger, resolveLogger } from "../../core/logger.ts";
import { test } from "../support/test.ts";

type Line = readonly unknown[];

/** Runs with a console that records. */
function withConsole(run: () => void): readonly Line[] {
  const lines: Line[] = [];
  const names = ["debug", "info", "log", "warn", "error"] as const;
  const before = names.map((name) => globalThis.console[name]);
  try {
    for (const name of names) globalThis.console[name] = (...args: unknown[]) => void lines.push([name, ...args]);
    run();
  } finally {
    names.forEach((name, i) => Object.assign(globalThis.console, { [name]: before[i] }));
  }
  return lines;
}

function callAll(logger: Logger): void {
  logger.debug("d");
  logger.info("i", { n: 1 });
  logger.warn("w");
  logger.error("e", { n: 2 });
}

test("resolveLogger: by default warnings and errors go to the console, nothing else", () => {
  const lines = withConsole(() => callAll(resolveLogger(undefined)));
  assert.deepEqual(lines, [["warn", "@xsm/eda:", "w"], ["error", "@xsm/eda:", "e", { n: 2 }]]);
});

test("resolveLogger: false says nothing", () => {
  assert.deepEqual(withConsole(() => callAll(resolveLogger(false))), []);
});

test("resolveLogger: passes to the given logger as its method", () => {
  class Mine {
    readonly lines: Line[] = [];
    debug(...args: unknown[]): void {
      this.lines.push(["debug", ...args]);
    }
    info(...args: unknown[]): void {
      this.lines.push(["info", ...args]);
    }
    warn(...args: unknown[]): void {
      this.lines.push(["warn", ...args]);
    }
    error(...args: unknown[]): void {
      this.lines.push(["error", ...args]);
    }
  }
  const mine = new Mine();
  callAll(resolveLogger(mine));
  assert.deepEqual(mine.lines, [["debug", "d"], ["info", "i", { n: 1 }], ["warn", "w"], ["error", "e", { n: 2 }]]);
  const lines = withConsole(() => callAll(resolveLogger(console)));
  assert.equal(lines.length, 4);
});

test("resolveLogger: never throws when the given logger does, also later", async () => {
  let calls = 0;
  const fail = (): never => {
    calls++;
    throw new Error("x");
  };
  callAll(resolveLogger({ debug: fail, info: fail, warn: fail, error: fail }));
  assert.equal(calls, 4);
  const late = (): void => Promise.reject(new Error("x")) as unknown as void;
  callAll(resolveLogger({ debug: late, info: late, warn: late, error: late }));
  await new Promise((resolve) => setTimeout(resolve, 0));
  callAll(resolveLogger({ warn: fail } as unknown as Logger));
  assert.equal(calls, 5);
});

test("resolveLogger: refuses what is no logger", () => {
  for (const odd of [true, null, 5, "console", {}, { warn: 1 }]) {
    assert.throws(() => resolveLogger(odd as unknown as Logger), InvalidOptionError);
  }
});
