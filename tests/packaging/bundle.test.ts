import { join } from "node:path";
import { tmpdir } from "node:os";
import { findRuntime, NEWEST } from "../../scripts/testing/runtimes.ts";
import { must } from "../support/bed/run.ts";
import { fresh, onLeg } from "../support/test.ts";
import { assertDone, GOT, lacks, runIn } from "./consumers.ts";
import { project } from "./npm_project.ts";

const onRedis = onLeg("redis");
const OPTIONS = { timeoutMs: 600_000, skip: lacks("./redis") };

/** CommonJS clients call `require`, which a bundle of ES modules lacks. */
const REQUIRE =
  "--banner:js=import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";

for (const isolation of ["worker", "inline"]) {
  onRedis(`bundled by esbuild with the worker as a second entry, it runs ${isolation}`, OPTIONS, async ({ url }) => {
    const dir = await project("ioredis@5");
    const entries = ["redis.ts", ...(isolation === "worker" ? ["redis_worker=@xsm/eda/redis/worker"] : [])];
    const out = join(dir, `esbuild-${isolation}`);
    const options = ["--bundle", "--platform=node", "--format=esm", `--outdir=${out}`, REQUIRE];
    await must("npx", ["-y", "esbuild@0.25", ...entries, ...options], { cwd: dir, tries: 3, timeoutMs: 300_000 });
    const { program } = await findRuntime("node", NEWEST.node);
    assertDone(await runIn(tmpdir(), program, [join(out, "redis.js"), url, fresh("bundle"), isolation]), GOT);
  });

  onRedis(`bundled by bun build with the worker as a second entry, it runs ${isolation}`, OPTIONS, async ({ url }) => {
    const dir = await project("ioredis@5");
    const { program } = await findRuntime("bun", NEWEST.bun);
    const worker = "node_modules/@xsm/eda/adapters/redis/redis_worker.js";
    const out = join(dir, `bun-${isolation}`);
    const options = ["--target=bun", "--entry-naming", "[name].[ext]", "--outdir", out];
    await must(program, ["build", "redis.ts", ...(isolation === "worker" ? [worker] : []), ...options], { cwd: dir });
    assertDone(await runIn(tmpdir(), program, ["run", join(out, "redis.js"), url, fresh("bundle"), isolation]), GOT);
  });
}
