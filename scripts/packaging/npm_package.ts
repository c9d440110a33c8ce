/**
 * Building the npm package: JavaScript and declarations by `tsc`, and a manifest made from `deno.json`.
 *
 * @module
 */
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { must } from "../../tests/support/bed/run.ts";
import { BARE_IMPORT, rangeOf, readRelease, type Release, ROOT } from "./published.ts";

/** The oldest Node that runs the package: the first one whose `require` takes ES modules and that strips types. */
const NODE = ">=22.18";

/** Ranges that npm understands and Deno's import map does not: several major versions at once. */
const PEER_RANGES: Readonly<Record<string, string>> = { ioredis: "^5.4 || ^6" };

/** Where the package is built, under the repository. */
export const NPM_DIR: string = join(ROOT, ".tmp", "npm");

/** Builds the package into an empty folder. */
export async function buildNpm(dir: string = NPM_DIR): Promise<void> {
  const release = readRelease();
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  await compile(release, dir);
  const copy = (file: string) => {
    mkdirSync(dirname(join(dir, file)), { recursive: true });
    copyFileSync(join(ROOT, file), join(dir, file));
  };
  // Hand-written declarations of hand-written JavaScript: the compiler reads them and writes none.
  for (const file of release.files.filter((file) => file.endsWith(".d.ts"))) copy(file);
  for (const file of ["LICENSE", "README.md"]) if (existsSync(join(ROOT, file))) copy(file);
  writeFileSync(join(dir, "package.json"), `${JSON.stringify(manifestOf(release), null, 2)}\n`);
}

async function compile(release: Release, dir: string): Promise<void> {
  const config = join(ROOT, ".tmp", `tsconfig.${process.pid}.json`);
  const { compilerOptions } = JSON.parse(readFileSync(join(ROOT, "deno.json"), "utf8")) as {
    compilerOptions: Record<string, unknown>;
  };
  // The compiler reads the clients' types from the folder that Deno fills.
  await must(process.execPath, ["install", "--quiet"], { cwd: ROOT, tries: 4, timeoutMs: 300_000 });
  const tools = await compilerTools();
  const options = {
    ...compilerOptions,
    // Not with allowJs: TS5053.
    isolatedDeclarations: false,
    lib: ["ESNext", "DOM", "DOM.Iterable", "DOM.AsyncIterable"],
    typeRoots: [join(tools, "@types")],
    types: ["node"],
    target: "ES2023",
    module: "NodeNext",
    rewriteRelativeImportExtensions: true,
    declaration: true,
    allowJs: true,
    skipLibCheck: true,
    noEmitOnError: true,
    rootDir: ROOT,
    outDir: dir,
  };
  const files = release.files.filter((file) => /(?<!\.d)\.ts$|\.js$/.test(file)).map((file) => join(ROOT, file));
  mkdirSync(dirname(config), { recursive: true });
  writeFileSync(config, JSON.stringify({ compilerOptions: options, files }, null, 2));
  try {
    await must(join(tools, ".bin", "tsc"), ["-p", config], { cwd: ROOT, timeoutMs: 300_000 });
  } finally {
    rmSync(config, { force: true });
  }
}

/**
 * The `node_modules` folder with TypeScript and Node's types: npx's own, so that Deno's checks of this repository do not
 * meet a second set of types.
 */
export async function compilerTools(): Promise<string> {
  const packages = ["-p", "typescript@~5.9", "-p", "@types/node@24"];
  const options = { tries: 4, timeoutMs: 300_000, cwd: tmpdir() };
  const output = await must("npx", ["-y", ...packages, "-c", "command -v tsc"], options);
  return dirname(dirname(output.trim().split("\n").at(-1) ?? ""));
}

/** The manifest of the npm package. Clients are optional peers: a service installs the one it uses. */
export function manifestOf(release: Release): Record<string, unknown> {
  const peers = [...new Set(release.files.filter((file) => /\.(ts|js)$/.test(file)).flatMap(packagesIn))].sort();
  return {
    name: release.name,
    version: release.version,
    description: "Event-driven services on any broker, for Deno, Bun and Node",
    license: release.license,
    type: "module",
    engines: { node: NODE },
    // A bundler may drop what is imported and not used, but a worker's entry is imported for what it does.
    sideEffects: Object.values(release.exports).map((path) => conditionsOf(path).default).filter(hasSideEffects),
    exports: {
      ...Object.fromEntries(Object.entries(release.exports).map(([name, path]) => [name, conditionsOf(path)])),
      "./package.json": "./package.json",
    },
    ...(release.exports["./cli"] === undefined ? {} : { bin: { xsm: conditionsOf(release.exports["./cli"]).default } }),
    peerDependencies: Object.fromEntries(peers.map((name) => [name, PEER_RANGES[name] ?? rangeOf(release, name)])),
    peerDependenciesMeta: Object.fromEntries(peers.map((name) => [name, { optional: true }])),
  };
}

/** `default` alone besides `types`: also what `require` takes. */
function conditionsOf(path: string): { types: string; default: string } {
  const base = path.replace(/\.(ts|js)$/, "");
  return { types: `${base}.d.ts`, default: `${base}.js` };
}

const hasSideEffects = (path: string): boolean => /_worker\.js$|^\.\/cli\//.test(path);

function packagesIn(file: string): string[] {
  // A comment's example may import what the package itself does not.
  const code = readFileSync(join(ROOT, file), "utf8").replaceAll(/^\s*\/?\*.*$/gm, "");
  return [...code.matchAll(BARE_IMPORT)].map(([, , name]) => name!);
}
