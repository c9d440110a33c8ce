/**
 * Reading the JUnit reports of `deno test`, `bun test` and `node --test`.
 *
 * @module
 */

/** One test in a report. */
export interface TestCase {
  readonly name: string;
  readonly outcome: "passed" | "failed" | "skipped";
  /** Why it was skipped; empty if nobody said. */
  readonly reason: string;
}

const CASE = /<testcase\b((?:\s+[\w:-]+="[^"]*")*)\s*(?:\/>|>([^]*?)<\/testcase>)/g;

/** The tests of a report, in its order. A report that was cut off gives those that it holds whole. */
export function testCases(xml: string): TestCase[] {
  return [...xml.matchAll(CASE)].map(([, attributes = "", body = ""]) => {
    const full = decode(attributes.match(/\sname="([^"]*)"/)?.[1] ?? "");
    const [, name = full, reason = ""] = full.match(/^([^]*) \[skipped: ([^]*)\]$/) ?? [];
    return { name, outcome: outcomeOf(body), reason };
  });
}

function outcomeOf(body: string): TestCase["outcome"] {
  if (/<(failure|error)\b/.test(body)) return "failed";
  return /<skipped\b/.test(body) ? "skipped" : "passed";
}

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/** Node escapes the quotes of a name twice, so a second pass does no harm. */
function decode(text: string): string {
  return once(once(text));
}

function once(text: string): string {
  return text.replaceAll(/&(?:#(x?)([0-9a-f]+)|(\w+));/gi, (whole, hex, number, name) => {
    if (number !== undefined) return String.fromCodePoint(Number.parseInt(number, hex ? 16 : 10));
    return ENTITIES[name] ?? whole;
  });
}
