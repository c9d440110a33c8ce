/**
 * What a release holds: the files and entry points that `deno.json` names.
 *
 * @module
 */
import { existsSync, readdirSync, statSync } from "node:fs";
import { join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { readManifest } from "../manifests.ts";

/** The root of the repository. */
export const ROOT: string = fileURLToPath(new URL("../..", import.meta.url));

/** The parts of `deno.json` that a release is made of. */
export interface Release {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly exports: Readonly<Record<string, string>>;
  /** Bare names to `npm:` specifiers. */
  readonly imports: Readonly<Record<string, string>>;
  /** Published files, as paths from the root. */
  readonly files: readonly string[];
}

/** Reads the release from the working tree. */
export function readRelease(): Release {
  const manifest = readManifest("deno.json");
  const { include } = manifest.publish as { include: readonly string[] };
  const files = include.filter((path) => existsSync(join(ROOT, path))).flatMap(filesIn)
    .filter((file) => !file.endsWith(".test.ts"));
  return {
    name: manifest.name as string,
    version: manifest.version as string,
    license: manifest.license as string,
    exports: manifest.exports as Record<string, string>,
    imports: manifest.imports as Record<string, string>,
    files,
  };
}

function filesIn(path: string): string[] {
  if (!statSync(join(ROOT, path)).isDirectory()) return [path];
  return readdirSync(join(ROOT, path)).flatMap((name) => filesIn(posix.join(path, name))).sort();
}

/** npm's range for a bare name that the source imports. */
export function rangeOf(release: Release, name: string): string {
  const specifier = release.imports[name];
  const range = specifier?.match(/^npm:(?:@[^/@]+\/)?[^@]+@(.+)$/)?.[1];
  if (range === undefined) throw new Error(`deno.json maps "${name}" to no npm range`);
  return range;
}

/** Bare package names in import and export declarations and in calls of `import()`. */
export const BARE_IMPORT: RegExp = /(\bfrom\s+|^import\s+|\bimport\(\s*)"((?:@[a-z0-9-]+\/)?[a-z][\w.-]*)"/gm;
