import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compilerTools } from "../../scripts/packaging/npm_package.ts";
import { findRuntime, FLOORS, NEWEST } from "../../scripts/testing/runtimes.ts";
import { STATIC_CLIENTS } from "../repo/layers.ts";
import { must } from "../support/bed/run.ts";
import { fresh, onLeg, test } from "../support/test.ts";
import { assertDone, deno, entries, GOT, lacks, runIn } from "./consumers.ts";
import { packed, project } from "./npm_project.ts";

const OPTIONS = { timeoutMs: 600_000 };

/** The runtimes that the package promises, by the npm range of each. */
const RUNTIMES = [["node", NEWEST.node], ["node", FLOORS.node], ["bun", NEWEST.bun]] as const;

for (const [name, range] of RUNTIMES) {
  const title = `${name} ${range}`;
  const start = async (dir: string, args: readonly string[]) => {
    const runtime = await findRuntime(name, range);
    return await runIn(dir, runtime.program, [...(name === "bun" ? ["run"] : []), ...args]);
  };

  test(`from npm on ${title}, the memory broker runs with no client installed`, OPTIONS, async () => {
    assertDone(await start(await project(), ["memory.ts"]), GOT);
  });

  for (const isolation of ["worker", "inline"]) {
    onLeg("redis")(`from npm on ${title}, the Redis adapter runs ${isolation}`, {
      ...OPTIONS,
      skip: lacks("./redis"),
    }, async ({ url }) => {
      assertDone(await start(await project("ioredis@5"), ["redis.ts", url, fresh("npm"), isolation]), GOT);
    });
  }

  onLeg("redis")(`from npm on ${title}, a missing client is an error that names the install command`, {
    ...OPTIONS,
    skip: lacks("./redis"),
  }, async ({ url }) => {
    const result = await start(await project(), ["redis.ts", url, fresh("npm"), "worker"]);
    assert.notEqual(result.code, 0);
    assert.match(result.stderr, /npm install ioredis/);
  });

  test(`from npm on ${title}, CommonJS can require every entry point`, OPTIONS, async () => {
    const wanted = ["@xsm/eda#EdaError", ...(entries.has("./redis") ? ["@xsm/eda/redis#RedisStreamsBroker"] : [])];
    assertDone(await start(await project(), ["require.cjs", ...wanted]), "@xsm/eda has EdaError");
  });
}

test("from npm on Deno, the memory broker runs from node_modules", OPTIONS, async () => {
  const dir = await project();
  assertDone(await runIn(dir, deno, ["run", "-A", "--node-modules-dir=manual", "memory.ts"]), GOT);
});

for (const [module, moduleResolution] of [["nodenext", "nodenext"], ["esnext", "bundler"]] as const) {
  test(`from npm, the declarations hold without any client, resolved as ${moduleResolution}`, OPTIONS, async () => {
    const dir = await project();
    const tools = await compilerTools();
    const compilerOptions = {
      ...{ module, moduleResolution, target: "es2023", strict: true, exactOptionalPropertyTypes: true, noEmit: true },
      // Our declarations are checked as well, not only their use.
      skipLibCheck: false,
      ...{ lib: ["esnext", "dom", "dom.iterable"], typeRoots: [join(tools, "@types")], types: ["node"] },
    };
    // Every entry point's declarations, but those of an adapter whose users hand over the package's own objects.
    const names = [...entries].filter((entry) => !STATIC_CLIENTS.has(entry.slice(2)));
    const imports = names.map((entry) => `import "@xsm/eda${entry.slice(1)}";`);
    writeFileSync(join(dir, "entries.ts"), `${imports.join("\n")}\n`);
    const config = join(dir, `tsconfig.${moduleResolution}.json`);
    writeFileSync(config, JSON.stringify({ compilerOptions, files: ["types.ts", "entries.ts"] }));
    const { code, stdout } = await runIn(dir, join(tools, ".bin", "tsc"), ["-p", config]);
    assert.equal(code, 0, stdout);
  });
}

test("publint and are-the-types-wrong find nothing in the npm package", OPTIONS, async () => {
  const tarball = await packed();
  const options = { cwd: tmpdir(), tries: 2, timeoutMs: 300_000 };
  await must("npx", ["-y", "publint@0.3", "run", tarball, "--strict"], options);
  // The package holds ES modules alone; Node's require takes them, which this tool does not know.
  await must("npx", ["-y", "@arethetypeswrong/cli@0.18", "--profile", "esm-only", tarball], options);
});
