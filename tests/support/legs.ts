/**
 * The legs: servers that tests run against. A missing one is never silent: its tests are registered as skipped, by name
 * and reason, or fail if `XSM_REQUIRE` names the leg.
 *
 * @module
 */
import process from "node:process";
import { bedState } from "./bed/state.ts";
import { test, type TestBody, type TestContext, type TestOptions } from "./runner.ts";

/** A server to test against. */
export interface LegInfo {
  readonly name: string;
  /** How it is reached: a URL, but a list of brokers for `kafka` and the path of a Python program for `reference`. */
  readonly url: string;
  /** Further ports of a server of the bed, by the names in its kind; empty where a user gives the server. */
  readonly ports: Readonly<Record<string, number>>;
}

/** The environment variable by which a leg is given: `XSM_<NAME>_URL` but for three. */
export function legVariable(name: string): string {
  if (name === "kafka") return "XSM_KAFKA_BROKERS";
  if (name === "sqs") return "XSM_SQS_ENDPOINT";
  if (name === "reference") return "XSM_REFERENCE_PYTHON";
  return `XSM_${name.toUpperCase()}_URL`;
}

/** The leg called `name`, from the environment or from a running test bed; undefined if there is none. */
export function leg(name: string): LegInfo | undefined {
  const given = process.env[legVariable(name)];
  const state = bedState();
  const url = given !== undefined && given !== "" ? given : state?.legs[name]?.url ?? state?.tools[name];
  const own = state?.legs[name];
  return url === undefined ? undefined : { name, url, ports: own?.url === url ? own.ports : portsGiven(name) };
}

/** `XSM_KAFKA_DOORS`, pairs of ports such as `19093:19193,…`, as the ports of a server of the bed. */
function portsGiven(name: string): Record<string, number> {
  if (name !== "kafka") return {};
  const pairs = [...(process.env.XSM_KAFKA_DOORS ?? "").matchAll(/(\d+):(\d+)/g)];
  return Object.fromEntries(pairs.flatMap(([, inner, outer], at) => [
    [`inner${at + 1}`, Number(inner)],
    [`outer${at + 1}`, Number(outer)],
  ]));
}

/** Why a leg is missing. */
export function missingReason(name: string): string {
  return bedState()?.missing[name] ?? `leg ${name}: set ${legVariable(name)} or run \`deno task bed up\``;
}

/** Whether the run must fail when the leg is missing. */
export function isRequired(name: string): boolean {
  return (process.env.XSM_REQUIRE ?? "").split(",").map((word) => word.trim()).includes(name);
}

/** The body of a test that needs a server. */
export type LegBody = (leg: LegInfo, context: TestContext) => unknown;

/** Registers tests that need one leg. */
export interface LegTest {
  (name: string, fn: LegBody): void;
  (name: string, options: TestOptions, fn: LegBody): void;
}

/**
 * A `test` for tests that need the leg `name`; their names begin with it in brackets.
 *
 * @example
 * ```ts ignore
 * const onRedis = onLeg("redis");
 * onRedis("publishes", async ({ url }) => { … });
 * ```
 */
export function onLeg(name: string): LegTest {
  const info = leg(name);
  const reason = info === undefined ? missingReason(name) : "";
  return (title: string, second: TestOptions | LegBody, third?: LegBody) => {
    const options = typeof second === "function" ? {} : second;
    const fn = typeof second === "function" ? second : third;
    if (fn === undefined) throw new TypeError(`Test "${title}" has no body`);
    const full = `[${name}] ${title}`;
    const body: TestBody = (context) => {
      if (info === undefined) throw new Error(`The leg is required and missing: ${reason}`);
      return fn(info, context);
    };
    const skip = info === undefined && !isRequired(name) ? reason : options.skip;
    test(full, { ...options, skip }, body);
  };
}

/** Registers the same tests once per leg. */
export function onLegs(names: readonly string[], define: (legTest: LegTest, name: string) => void): void {
  for (const name of names) define(onLeg(name), name);
}
