import { join } from "node:path";
import { tmpdir } from "node:os";
import { findRuntime, NEWEST } from "../../scripts/testing/runtimes.ts";
import { must } from "../support/bed/run.ts";
import { fresh, onLeg, test } from "../support/test.ts";
import { assertDone, GOT, lacks, runIn } from "./consumers.ts";
import { project } from "./npm_project.ts";

const onRedis = onLeg("redis");
const OPTIONS = { timeoutMs: 600_000, skip: lacks("./redis") };

/** CommonJS clients call `require`, which a bundle of ES modules lacks. */
const REQUIRE =
  "--banner:js=import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";

/** Bundles one entry, and more where a worker is one, for Node by esbuild. */
async function esbuild(dir: string, out: string, entries: readonly string[]): Promise<void> {
  const options = ["--bundle", "--platform=node", "--format=esm", `--outdir=${out}`, REQUIRE];
  await must("npx", ["-y", "esbuild@0.25", ...entries, ...options], { cwd: dir, tries: 3, timeoutMs: 300_000 });
}

/** The same for Bun by its own bundler; resolves to Bun's program. */
async function bunBuild(dir: string, out: string, entries: readonly string[]): Promise<string> {
  const { program } = await findRuntime("bun", NEWEST.bun);
  // Without this naming the worker lands where the bundle does not look for it.
  const options = ["--target=bun", "--entry-naming", "[name].[ext]", "--outdir", out];
  await must(program, ["build", ...entries, ...options], { cwd: dir });
  return program;
}

for (const isolation of ["worker", "inline"]) {
  onRedis(`bundled by esbuild with the worker as a second entry, it runs ${isolation}`, OPTIONS, async ({ url }) => {
    const dir = await project("ioredis@5");
    const out = join(dir, `esbuild-${isolation}`);
    await esbuild(dir, out, ["redis.ts", ...(isolation === "worker" ? ["redis_worker=@xsm/eda/redis/worker"] : [])]);
    const { program } = await findRuntime("node", NEWEST.node);
    assertDone(await runIn(tmpdir(), program, [join(out, "redis.js"), url, fresh("bundle"), isolation]), GOT);
  });

  onRedis(`bundled by bun build with the worker as a second entry, it runs ${isolation}`, OPTIONS, async ({ url }) => {
    const dir = await project("ioredis@5");
    const worker = "node_modules/@xsm/eda/adapters/redis/redis_worker.js";
    const out = join(dir, `bun-${isolation}`);
    const program = await bunBuild(dir, out, ["redis.ts", ...(isolation === "worker" ? [worker] : [])]);
    assertDone(await runIn(tmpdir(), program, ["run", join(out, "redis.js"), url, fresh("bundle"), isolation]), GOT);
  });
}

const CONNECT = { timeoutMs: 600_000, skip: lacks("./connect") };

test("bundled by esbuild with no client installed, ./connect runs", CONNECT, async () => {
  const dir = await project();
  await esbuild(dir, join(dir, "esbuild-connect"), ["connect.ts"]);
  const { program } = await findRuntime("node", NEWEST.node);
  assertDone(await runIn(tmpdir(), program, [join(dir, "esbuild-connect", "connect.js")]), GOT);
});

test("bundled by bun build with no client installed, ./connect runs", CONNECT, async () => {
  const dir = await project();
  const program = await bunBuild(dir, join(dir, "bun-connect"), ["connect.ts"]);
  assertDone(await runIn(tmpdir(), program, ["run", join(dir, "bun-connect", "connect.js")]), GOT);
});
