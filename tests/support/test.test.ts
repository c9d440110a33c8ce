import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runtimeTest } from "./runner_command.ts";
import { child, fresh, runtime, test, until, within } from "./test.ts";

test("fresh never gives one name twice", () => {
  const names = new Set(Array.from({ length: 1000 }, () => fresh("orders")));
  assert.equal(names.size, 1000);
  for (const name of names) assert.match(name, /^orders-[a-z0-9-]+$/);
});

test("until resolves to the first truthy answer and names what it waited for", async () => {
  let looks = 0;
  assert.equal(await until(() => ++looks === 3 && "there"), "there");
  await assert.rejects(until(() => false, { timeoutMs: 30, what: "godot" }), /30 ms for godot/);
});

test("within rejects what is late", async () => {
  await assert.rejects(within(20, "godot", new Promise(() => {})), /20 ms for godot/);
  assert.equal(await within(1000, "one", Promise.resolve(1)), 1);
});

test("cleanups run in reverse order after the body", async (context) => {
  const order: string[] = [];
  context.cleanup(() => assert.deepEqual(order, ["body", "second"]));
  context.cleanup(() => void order.push("second"));
  await Promise.resolve();
  order.push("body");
});

function scratch(context: { cleanup(fn: () => unknown): void }): string {
  const dir = mkdtempSync(join(tmpdir(), "xsm-test-"));
  context.cleanup(() => rmSync(dir, { recursive: true }));
  return dir;
}

test("child runs a script on this runtime and collects its end", async (context) => {
  const script = join(scratch(context), "script.ts");
  writeFileSync(
    script,
    `import process from "node:process";
    const word: string = process.env.WORD + process.argv[2];
    console.error("Deno" in globalThis ? "deno" : "Bun" in globalThis ? "bun" : "node");
    console.log(word);
    process.exit(3);`,
  );
  const result = await child(script, ["!"], { WORD: "hello" }).done;
  assert.deepEqual([result.code, result.stdout, result.timedOut], [3, "hello!\n", false]);
  assert.match(result.stderr, new RegExp(runtime));
});

test("child waits for output, takes input and is killed on demand", async (context) => {
  const script = join(scratch(context), "script.ts");
  writeFileSync(
    script,
    `import process from "node:process";
    process.stdin.on("data", (text) => console.log("got " + text));
    console.log("ready");`,
  );
  const running = child(script);
  await running.output("ready");
  running.write("line\n");
  assert.equal(await running.output(/got \w+/), "got line");
  await assert.rejects(running.output("never", 50), /did not print within 50 ms/);
  running.kill();
  const result = await running.done;
  assert.deepEqual([result.timedOut, result.signal], [false, "SIGKILL"]);
  await assert.rejects(running.output("never"), /ended before/);
});

test("child is killed at its deadline", async (context) => {
  const script = join(scratch(context), "script.ts");
  writeFileSync(script, "setInterval(() => {}, 1000);");
  const result = await child(script, [], {}, { timeoutMs: 500 }).done;
  assert.deepEqual([result.timedOut, result.signal], [true, "SIGKILL"]);
});

test(
  "a test that fails, hangs or is skipped is reported so by this runtime's runner",
  { timeoutMs: 60_000 },
  async (context) => {
    const dir = scratch(context);
    const file = join(dir, "inner.test.ts");
    const mark = join(dir, "cleaned");
    const shim = new URL("./test.ts", import.meta.url).href;
    writeFileSync(
      file,
      `import { onLeg, test } from ${JSON.stringify(shim)};
    import { writeFileSync } from "node:fs";
    test("good", () => {});
    test("left out", { skip: "as told" }, () => { console.log(["it", "ran"].join(" ")); });
    onLeg("nowhere")("needs a server", () => { console.log(["it", "ran"].join(" ")); });
    test("bad", () => { throw new Error("as expected"); });
    test("hanging", { timeoutMs: 100 }, (context) => {
      context.cleanup(() => writeFileSync(${JSON.stringify(mark)}, ""));
      return new Promise((resolve) => context.signal.addEventListener("abort", () => setTimeout(resolve, 50)));
    });`,
    );
    const result = await runtimeTest(file);
    const output = result.stdout + result.stderr;
    assert.notEqual(result.code, 0);
    assert.match(output, /as expected/);
    assert.match(output, /left out \[skipped: as told\]/);
    assert.match(output, /\[nowhere\] needs a server \[skipped: leg nowhere: set XSM_NOWHERE_URL/);
    assert.doesNotMatch(output, /it ran/);
    assert.match(output, /did not end within 100 ms/);
    assert.ok(existsSync(mark), "the cleanup of the hanging test ran");
  },
);
