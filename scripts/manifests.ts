/**
 * `deno task manifests`: writes what `jsr.json` and `package.json` repeat of `deno.json`.
 *
 * @module
 */
import { readFileSync, writeFileSync } from "node:fs";
import process from "node:process";

type Manifest = Record<string, unknown>;

/** The members of `deno.json` that `jsr.json` repeats; JSR reads it where there is no `deno.json`. */
export const MIRRORED = ["name", "version", "license", "exports", "publish"] as const;
/** The members of `deno.json` that `package.json` repeats: `exports` lets Node and Bun resolve the package's own name. */
export const NAMED = ["name", "version", "license", "exports"] as const;

const place = (name: string): URL => new URL(`../${name}`, import.meta.url);

/** Reads a manifest of the repository. */
export function readManifest(name: "deno.json" | "jsr.json" | "package.json"): Manifest {
  return JSON.parse(readFileSync(place(name), "utf8")) as Manifest;
}

function pick(from: Manifest, keys: readonly string[]): Manifest {
  return Object.fromEntries(keys.filter((key) => key in from).map((key) => [key, from[key]]));
}

/** What `jsr.json` should hold. */
export function jsrManifest(): Manifest {
  return pick(readManifest("deno.json"), MIRRORED);
}

/** What `package.json` should hold. */
export function packageManifest(): Manifest {
  return { ...readManifest("package.json"), ...pick(readManifest("deno.json"), NAMED) };
}

if (import.meta.main) {
  const save = (name: string, value: Manifest) => writeFileSync(place(name), `${JSON.stringify(value, null, 2)}\n`);
  save("jsr.json", jsrManifest());
  save("package.json", packageManifest());
  process.stdout.write("jsr.json and package.json follow deno.json\n");
}
