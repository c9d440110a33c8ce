/**
 * Projects outside the repository with the npm package installed from its tarball.
 *
 * @module
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildNpm } from "../../scripts/packaging/npm_package.ts";
import { must } from "../support/bed/run.ts";
import { consumerFolder, removeFolder } from "./consumers.ts";

const FIXTURES = ["connect.ts", "memory.ts", "redis.ts", "require.cjs", "types.ts"];

/** A new folder that is removed when all tests of the file ended. */
function folder(...fixtures: readonly string[]): string {
  const dir = consumerFolder(...fixtures);
  globalThis.addEventListener("unload", () => removeFolder(dir));
  return dir;
}

let tarball: Promise<string> | undefined;

/** The path of the packed package; built once. */
export function packed(): Promise<string> {
  return tarball ??= (async () => {
    const dir = folder();
    await buildNpm(dir);
    const output = await must("npm", ["pack", "--json", "--ignore-scripts"], { cwd: dir });
    const [{ filename }] = JSON.parse(output) as [{ filename: string }];
    return join(dir, filename);
  })();
}

const projects = new Map<string, Promise<string>>();

/** The folder of a project with the package, the fixtures and `packages`; made once for each list. */
export function project(...packages: readonly string[]): Promise<string> {
  const key = packages.join(" ");
  const made = projects.get(key) ?? install(packages);
  projects.set(key, made);
  return made;
}

async function install(packages: readonly string[]): Promise<string> {
  const dir = folder(...FIXTURES);
  writeFileSync(join(dir, "package.json"), JSON.stringify({ name: "consumer", private: true, type: "module" }));
  const flags = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"];
  await must("npm", ["install", ...flags, await packed(), ...packages], { cwd: dir, tries: 4, timeoutMs: 300_000 });
  return dir;
}
