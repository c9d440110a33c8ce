import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { startJsrRegistry } from "../../scripts/packaging/jsr_registry.ts";
import { readRelease } from "../../scripts/packaging/published.ts";
import { fresh, onLeg, test, type TestContext } from "../support/test.ts";
import { assertDone, consumerFolder, deno, GOT, lacks, removeFolder, runIn } from "./consumers.ts";

const OPTIONS = { timeoutMs: 300_000 };

/** A project that depends on the package by its JSR name, and a registry that has it. */
async function setUp(context: TestContext, fixture: string) {
  const registry = await startJsrRegistry();
  context.cleanup(() => registry.close());
  const { name, version } = readRelease();
  const dir = consumerFolder(fixture);
  context.cleanup(() => removeFolder(dir));
  const imports = { [name]: `jsr:${name}@${version}`, [`${name}/`]: `jsr:/${name}@${version}/` };
  writeFileSync(join(dir, "deno.json"), JSON.stringify({ imports }));
  const env = { JSR_URL: registry.url, DENO_DIR: join(dir, "cache") };
  const run = (args: readonly string[]) => runIn(dir, deno, args, { env, timeoutMs: 240_000 });
  return { registry, dir, run };
}

test("from JSR, the memory broker runs without any permission", OPTIONS, async (context) => {
  const { run, registry } = await setUp(context, "memory.ts");
  assertDone(await run(["run", "--no-prompt", "memory.ts"]), GOT);
  const foreign = registry.requests.filter((path) =>
    path.includes("/adapters/") && !path.includes("/adapters/memory/")
  );
  assert.deepEqual(foreign, []);
});

test("from JSR, the memory example passes the type check", OPTIONS, async (context) => {
  const { run } = await setUp(context, "memory.ts");
  const { code, stderr } = await run(["check", "memory.ts"]);
  assert.equal(code, 0, stderr);
});

const onRedis = onLeg("redis");

for (const isolation of ["worker", "inline"]) {
  onRedis(`from JSR, the Redis adapter runs ${isolation} with the permissions it documents`, {
    ...OPTIONS,
    skip: lacks("./redis"),
  }, async ({ url }, context) => {
    const { run, registry } = await setUp(context, "redis.ts");
    const { host } = new URL(url);
    // Starting a worker counts as importing its file from the registry.
    const permissions = [`--allow-net=${host},127.0.0.1:${registry.port}`, "--allow-env"];
    const result = await run(["run", "--no-prompt", ...permissions, "redis.ts", url, fresh("jsr"), isolation]);
    assertDone(result, GOT);
    const foreign = registry.requests.filter((path) => /\/adapters\/(?!redis\/|memory\/)/.test(path));
    assert.deepEqual(foreign, []);
  });
}

onRedis("from JSR, a cached service starts its worker without the registry", {
  ...OPTIONS,
  skip: lacks("./redis"),
}, async ({ url }, context) => {
  const { run, registry } = await setUp(context, "redis.ts");
  const cached = await run(["cache", "redis.ts"]);
  assert.equal(cached.code, 0, cached.stderr);
  await registry.close();
  const result = await run(["run", "--cached-only", "-A", "redis.ts", url, fresh("jsr"), "worker"]);
  assertDone(result, GOT);
});
