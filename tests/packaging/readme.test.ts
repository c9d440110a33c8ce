import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startJsrRegistry } from "../../scripts/packaging/jsr_registry.ts";
import { readRelease } from "../../scripts/packaging/published.ts";
import { onLeg, test, type TestContext } from "../support/test.ts";
import { consumerFolder, deno, removeFolder, runIn } from "./consumers.ts";

const OPTIONS = { timeoutMs: 300_000 };

/** The first example below a heading of the README. */
function example(heading: string): string {
  const text = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
  const section = text.split(/^## /m).find((part) => part.startsWith(heading));
  const code = section?.match(/```ts\n([\s\S]*?)```/)?.[1];
  assert.ok(code !== undefined, `the README has an example under "${heading}"`);
  return code;
}

/** Runs code in a project that gets the package from a registry as JSR would serve it. */
async function fromJsr(context: TestContext, code: string) {
  const registry = await startJsrRegistry();
  context.cleanup(() => registry.close());
  const { name, version } = readRelease();
  const dir = consumerFolder();
  context.cleanup(() => removeFolder(dir));
  const imports = { [name]: `jsr:${name}@${version}`, [`${name}/`]: `jsr:/${name}@${version}/` };
  writeFileSync(join(dir, "deno.json"), JSON.stringify({ imports }));
  writeFileSync(join(dir, "example.ts"), code);
  const env = { JSR_URL: registry.url, DENO_DIR: join(dir, "cache") };
  const result = await runIn(dir, deno, ["run", "-A", "--no-prompt", "example.ts"], { env, timeoutMs: 240_000 });
  return { result, requests: registry.requests };
}

test("README: the first example runs from JSR and prints both events in order", OPTIONS, async (context) => {
  const { result } = await fromJsr(context, example("A first service"));
  assert.equal(result.code, 0, result.stderr);
  const lines = result.stdout.trim().split("\n");
  assert.deepEqual(lines.map((line) => line.split(" ")[0]), ["shop.order.placed", "shop.order.cancelled"]);
});

onLeg("redis")("README: the Redis example runs from JSR, in a worker", OPTIONS, async ({ url }, context) => {
  const code = example("The same on Redis");
  assert.ok(code.includes("redis://127.0.0.1:6379"), "the example names a local server");
  const group = `readme-${Date.now().toString(36)}`;
  const here = code.replace("redis://127.0.0.1:6379", url).replaceAll('"billing"', `"${group}"`);
  const { result, requests } = await fromJsr(context, `${here}\nconsole.log("ended");\n`);
  assert.equal(result.code, 0, result.stderr);
  assert.ok(result.stdout.includes("ended"));
  assert.ok(requests.some((path) => path.endsWith("/redis_worker.js")), "the worker's file was fetched");
});
