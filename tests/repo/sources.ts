/**
 * Reading the repository's own files, for the tests of its rules.
 *
 * @module
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { posix } from "node:path";
import { fileURLToPath } from "node:url";

/** The root of the repository. */
export const ROOT: string = fileURLToPath(new URL("../..", import.meta.url));

const SKIPPED = new Set(["node_modules", ".git", ".tmp", ".bed", "coverage", "dist"]);

/** Every file of the repository or of a folder in it, as paths from its root; none if there is no such folder. */
export function allFiles(folder = "."): string[] {
  const found: string[] = [];
  if (!existsSync(join(ROOT, folder))) return found;
  for (const entry of readdirSync(join(ROOT, folder), { withFileTypes: true })) {
    if (SKIPPED.has(entry.name)) continue;
    const path = posix.join(folder, entry.name);
    if (entry.isDirectory()) found.push(...allFiles(path));
    else if (entry.isFile()) found.push(path);
  }
  return found.sort();
}

/** Whether a path holds code. */
export const isCode = (path: string): boolean => /\.(ts|js)$/.test(path);

/** Code that is published: the library without its tests. */
export const isLibrary = (path: string): boolean =>
  isCode(path) && /^(core|workers|adapters|cli)\/|^[^/]+\.ts$/.test(path);

/** The text of a file. */
export function textOf(path: string): string {
  return readFileSync(join(ROOT, path), "utf8");
}

/** One import of a file. */
export interface Import {
  /** As it is written. */
  readonly specifier: string;
  /** The imported file as a path from the root; undefined for a package or a built-in module. */
  readonly file: string | undefined;
  /** `type` disappears when types are erased; `lazy` is `import(…)`; `url` is `new URL(…, import.meta.url)`. */
  readonly kind: "static" | "type" | "lazy" | "url";
}

const STATIC = /^(?:import|export)\s+(type\s+)?(?:[\w*{][^;"'`]*?\s*from\s+)?"([^"\n]+)"/gm;
const LAZY = /\bimport\(\s*"([^"\n]+)"/g;
const WORKER = /\bnew URL\(\s*"(\.[^"\n]+)",\s*import\.meta\.url/g;

/** The imports of a file, also those that are made later by a call. */
export function importsOf(path: string): Import[] {
  const code = withoutComments(textOf(path));
  const target = (specifier: string): string | undefined =>
    specifier.startsWith(".") ? posix.join(dirname(path), specifier) : undefined;
  const read = (pattern: RegExp, kind: Import["kind"]): Import[] =>
    [...code.matchAll(pattern)].map((match) => {
      const specifier = match.at(-1)!;
      return { specifier, file: target(specifier), kind: kind === "static" && match[1] ? "type" : kind };
    });
  return [...read(STATIC, "static"), ...read(LAZY, "lazy"), ...read(WORKER, "url")];
}

/** A path from the root in the form used here. */
export function fromRoot(path: string): string {
  return relative(ROOT, path).replaceAll("\\", "/");
}

/** A slash after one of these starts a regular expression, not a division. */
const BEFORE_PATTERN = /(?:^|[(,=:[!&|?{};+\-*%<>~^]|=>|\breturn|\btypeof|\bcase)\s*$/;

/** The code with comments blanked out, and the contents of strings too if asked; line numbers stay. */
export function withoutComments(source: string, strings = false): string {
  let out = "";
  for (let at = 0; at < source.length;) {
    const length = lengthOfToken(source, at, out);
    const token = source.slice(at, at + length);
    const comment = token.startsWith("//") || token.startsWith("/*");
    const text = strings && /^["'`]/.test(token);
    out += comment || text ? token.replaceAll(/[^\n]/g, " ") : token;
    at += length;
  }
  return out;
}

/** The length of the comment, string or pattern that starts at `at`; 1 for any other character. */
function lengthOfToken(source: string, at: number, before: string): number {
  const rest = source.slice(at, at + 2);
  if (rest === "//") return endOf(source, at, "\n") - at;
  if (rest === "/*") return endOf(source, at + 2, "*/") + 2 - at;
  const first = source[at]!;
  if (first === '"' || first === "'" || first === "`") return closing(source, at, first) - at;
  if (first === "/" && BEFORE_PATTERN.test(before.slice(-40))) return closingPattern(source, at) - at;
  return 1;
}

function endOf(source: string, from: number, mark: string): number {
  const end = source.indexOf(mark, from);
  return end < 0 ? source.length : end;
}

function closing(source: string, at: number, quote: string): number {
  for (let end = at + 1; end < source.length; end++) {
    if (source[end] === "\\") end++;
    else if (source[end] === quote) return end + 1;
  }
  return source.length;
}

function closingPattern(source: string, at: number): number {
  let inClass = false;
  for (let end = at + 1; end < source.length && source[end] !== "\n"; end++) {
    const char = source[end];
    if (char === "\\") end++;
    else if (char === "[") inClass = true;
    else if (char === "]") inClass = false;
    else if (char === "/" && !inClass) return end + 1;
  }
  return at + 1;
}
