/**
 * Tests that start servers of their own, to stop, kill, freeze and restart them.
 *
 * @module
 */
import type { StartOptions } from "./bed/kind.ts";
import { type Server, startServer, whyNoServer } from "./bed/server.ts";
import { isRequired } from "./legs.ts";
import { test, type TestContext, type TestOptions } from "./runner.ts";

/** Starts a server that ends with the test. */
export type Start = (options?: StartOptions) => Promise<Server>;

/** The body of a test with servers of its own. */
export type ServerBody = (start: Start, context: TestContext) => unknown;

/** Registers tests that start servers of one kind. */
export interface ServerTest {
  (name: string, fn: ServerBody): void;
  (name: string, options: TestOptions, fn: ServerBody): void;
}

/**
 * A `test` for tests that start servers of the kind `name` themselves. Where the program is not installed they are
 * skipped by name and reason, or fail if `XSM_REQUIRE` names the leg.
 *
 * @example
 * ```ts ignore
 * const withRedis = onServer("redis");
 * withRedis("survives a restart", async (start) => {
 *   const server = await start({ args: ["--appendonly", "yes"] });
 *   await server.restart();
 * });
 * ```
 */
export function onServer(name: string): ServerTest {
  const reason = whyNoServer(name);
  return (title: string, second: TestOptions | ServerBody, third?: ServerBody) => {
    const options = typeof second === "function" ? {} : second;
    const fn = typeof second === "function" ? second : third;
    if (fn === undefined) throw new TypeError(`Test "${title}" has no body`);
    const skip = reason !== undefined && !isRequired(name) ? reason : options.skip;
    test(`[own ${name}] ${title}`, { ...options, skip }, (context) =>
      fn(async (startOptions) => {
        const server = await startServer(name, startOptions);
        context.cleanup(() => server.stop());
        return server;
      }, context));
  };
}
