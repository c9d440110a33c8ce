import assert from "node:assert/strict";
import process from "node:process";
import { readManifest } from "../../scripts/manifests.ts";
import { must } from "../support/bed/run.ts";
import { test } from "../support/test.ts";
import { adapterOf, CLIENTS } from "./layers.ts";
import { allFiles, fromRoot, ROOT } from "./sources.ts";

interface Graph {
  /** Modules, as paths from the root of the repository. */
  readonly files: readonly string[];
  /** Names of npm packages that a module of the graph imports. */
  readonly packages: readonly string[];
}

/** The module graph as Deno sees it, with what is imported only by calls to `import()`. */
async function graphOf(path: string): Promise<Graph> {
  const { modules } = JSON.parse(await must(process.execPath, ["info", "--json", path], { cwd: ROOT })) as {
    modules: { kind: string; specifier: string; npmPackage?: string }[];
  };
  const names = modules.filter(({ kind }) => kind === "npm").map(({ specifier, npmPackage }) =>
    (npmPackage ?? specifier.replace(/^npm:\/?/, "")).replace(/(?<=.)@.*$/, "")
  );
  const files = modules.filter(({ specifier }) => specifier.startsWith("file:")).map(({ specifier }) =>
    fromRoot(new URL(specifier).pathname)
  );
  return { files, packages: [...new Set(names)] };
}

const exported = readManifest("deno.json").exports as Record<string, string>;

test("the main entry point brings in no package", async () => {
  assert.deepEqual((await graphOf("mod.ts")).packages, []);
});

for (const file of allFiles("adapters").filter((file) => /^adapters\/[^/]+\/mod\.ts$/.test(file))) {
  const name = adapterOf(file)!;
  test(`${name} brings in its own client and worker, and no other adapter's`, async () => {
    const { files, packages } = await graphOf(file);
    const own = CLIENTS[name] ?? [];
    assert.deepEqual(packages.filter((found) => !own.includes(found)), []);
    const worker = allFiles("adapters").filter((path) =>
      path.startsWith(`adapters/${name}/`) && /_worker\.js$/.test(path)
    );
    // The worker is named by a URL, which Deno neither loads nor caches: an import that is never made anchors it.
    assert.deepEqual(worker.filter((path) => !files.includes(path)), []);
    if (worker.length > 0) {
      assert.deepEqual(own.length > 0 && packages.length === 0, false, "the client is not in the graph");
    }
    const others = files.map(adapterOf).filter((other) => other !== undefined && other !== name && other !== "memory");
    assert.deepEqual([...new Set(others)], []);
  });
}

test("no entry point but ./connect brings in two clients", async () => {
  for (const [entry, path] of Object.entries(exported)) {
    if (entry === "./connect" || entry === "./cli") continue;
    const { packages } = await graphOf(path);
    const owners = Object.keys(CLIENTS).filter((name) => CLIENTS[name]!.some((client) => packages.includes(client)));
    assert.ok(owners.length <= 1, `${entry} brings in ${packages.join(", ")}`);
  }
});
