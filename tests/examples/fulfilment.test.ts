/**
 * The demo as a reader starts it, on the runtime that runs the test.
 */
import assert from "node:assert/strict";
import { child, type ChildResult, onLeg, test } from "../support/test.ts";

const DEMO = new URL("../../examples/fulfilment/main.ts", import.meta.url);
const OPTIONS = { timeoutMs: 90_000 };

async function run(url: string): Promise<ChildResult> {
  const result = await child(DEMO, [], { XSM_BROKER_URL: url }, { timeoutMs: 60_000 }).done;
  assert.equal(result.code, 0, `${result.stdout}\n${result.stderr}`);
  return result;
}

/** The rows of one table: first column to the rest. */
function table(stdout: string, title: string): Map<string, string> {
  const lines = stdout.split("\n");
  const from = lines.indexOf(title) + 1;
  assert.ok(from > 0, `There is no table "${title}" in:\n${stdout}`);
  const rows = lines.slice(from, lines.indexOf("", from));
  return new Map(rows.map((row) => {
    const [, first = "", rest = ""] = row.match(/^ {2}(\S+) *(.*)$/) ?? [];
    return [first, rest];
  }));
}

function checkTables({ stdout, stderr }: ChildResult, broker: string): void {
  assert.deepEqual(
    Object.fromEntries(table(stdout, "Outcomes of attempts")),
    {
      "dead_lettered:instance_done": "1",
      "dead_lettered:max_attempts": "1",
      duplicate: "1",
      processed: "1,583",
      retry: "4",
      unavailable: "16",
    },
  );
  const letters = table(stdout, "Dead letters");
  assert.match(letters.get("max_attempts") ?? "", /^o-1042 +shop\.packing\.requested +failures: 5 .*no address/);
  assert.match(letters.get("instance_done") ?? "", /^o-1007 +shop\.order\.cancelled +failures: 1 /);
  assert.match(stdout, /\bok +200 orders came in: 187 shipped, 12 cancelled, 1 given up\n/);
  assert.match(stdout, /\bok +order per subject kept: 1586 events in 787 sequences, 0 sequences differ/);
  assert.match(
    stdout,
    /\bok +redeliveries 0, deliveries lost 0, late settles 0, work that the second instance got 0\n/,
  );
  assert.match(stdout, new RegExp(`\\nall of it holds · ${broker} · \\d+\\.\\d s\\n$`));
  assert.doesNotMatch(stderr, /error/i);
}

test("the demo ends by itself with a table in which all holds, in memory", OPTIONS, async () => {
  checkTables(await run(""), "memory");
});

onLeg("redis")("the demo on Redis: 5 s of CPU in a handler cost no redelivery", OPTIONS, async ({ url }) => {
  const result = await run(url);
  checkTables(result, "Redis Streams, in a worker");
  assert.match(result.stdout, /computes for 5000 ms, the owner's lease is 1500 ms/);
});

test("the demo says why it ended early and exits with 1", OPTIONS, async () => {
  const { code, stderr } = await child(DEMO, [], { XSM_BROKER_URL: "redis://127.0.0.1:1" }, { timeoutMs: 60_000 }).done;
  assert.equal(code, 1);
  assert.match(stderr, /ended early: Redis is not connected/);
});
