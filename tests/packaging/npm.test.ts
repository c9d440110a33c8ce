import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildNpm, compilerTools } from "../../scripts/packaging/npm_package.ts";
import { findRuntime } from "../../scripts/testing/runtimes.ts";
import { must } from "../support/bed/run.ts";
import { fresh, onLeg, test } from "../support/test.ts";
import { assertDone, consumerFolder, deno, entries, GOT, lacks, removeFolder, runIn } from "./consumers.ts";

const OPTIONS = { timeoutMs: 600_000 };
const PROJECT = JSON.stringify({ name: "consumer", private: true, type: "module" });

/** Packs the package once for all tests of this file. */
let packed: Promise<string> | undefined;
const pack = (): Promise<string> =>
  packed ??= (async () => {
    const dir = await buildNpm();
    const output = await must("npm", ["pack", "--json", "--ignore-scripts"], { cwd: dir });
    const [{ filename }] = JSON.parse(output) as [{ filename: string }];
    return join(dir, filename);
  })();

/** A project outside the repository with the tarball installed, and further packages. */
async function install(packages: readonly string[], ...fixtures: string[]): Promise<string> {
  const dir = consumerFolder(...fixtures);
  globalThis.addEventListener("unload", () => removeFolder(dir));
  writeFileSync(join(dir, "package.json"), PROJECT);
  const flags = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"];
  await must("npm", ["install", ...flags, await pack(), ...packages], { cwd: dir, tries: 4, timeoutMs: 300_000 });
  return dir;
}

const folders = new Map<string, Promise<string>>();

/** The project with the client of one adapter, or with none. Made once, removed when all tests of this file ended. */
function project(client: string): Promise<string> {
  const made = folders.get(client) ??
    install(client === "" ? [] : [client], "memory.ts", "redis.ts", "require.cjs", "types.ts");
  folders.set(client, made);
  return made;
}

/** The runtimes that the package promises, by the npm range of each. */
const RUNTIMES = [["node", "24"], ["node", "22.18"], ["bun", "1"]] as const;

for (const [name, range] of RUNTIMES) {
  const title = `${name} ${range}`;
  const start = async (dir: string, args: readonly string[]) => {
    const runtime = await findRuntime(name, range);
    return await runIn(dir, runtime.program, [...(name === "bun" ? ["run"] : []), ...args]);
  };

  test(`from npm on ${title}, the memory broker runs with no client installed`, OPTIONS, async () => {
    assertDone(await start(await project(""), ["memory.ts"]), GOT);
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
    const result = await start(await project(""), ["redis.ts", url, fresh("npm"), "worker"]);
    assert.notEqual(result.code, 0);
    assert.match(result.stderr, /npm install ioredis/);
  });

  test(`from npm on ${title}, CommonJS can require every entry point`, OPTIONS, async () => {
    const wanted = ["@xsm/eda#EdaError", ...(entries.has("./redis") ? ["@xsm/eda/redis#RedisStreamsBroker"] : [])];
    assertDone(await start(await project(""), ["require.cjs", ...wanted]), "@xsm/eda has EdaError");
  });
}

test("from npm on Deno, the memory broker runs from node_modules", OPTIONS, async () => {
  const dir = await project("");
  assertDone(await runIn(dir, deno, ["run", "-A", "--node-modules-dir=manual", "memory.ts"]), GOT);
});

for (const [module, moduleResolution] of [["nodenext", "nodenext"], ["esnext", "bundler"]] as const) {
  test(`from npm, the declarations hold without any client, resolved as ${moduleResolution}`, OPTIONS, async () => {
    const dir = await project("");
    const tools = await compilerTools();
    const compilerOptions = {
      ...{ module, moduleResolution, target: "es2023", strict: true, exactOptionalPropertyTypes: true, noEmit: true },
      // Our declarations are checked as well, not only their use.
      skipLibCheck: false,
      ...{ lib: ["esnext", "dom", "dom.iterable"], typeRoots: [join(tools, "@types")], types: ["node"] },
    };
    const config = join(dir, `tsconfig.${moduleResolution}.json`);
    writeFileSync(config, JSON.stringify({ compilerOptions, files: ["types.ts"] }));
    const { code, stdout } = await runIn(dir, join(tools, ".bin", "tsc"), ["-p", config]);
    assert.equal(code, 0, stdout);
  });
}
