/**
 * What the packaging tests have in common: fixtures copied to a folder outside the repository, and what must come out.
 *
 * @module
 */
import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { readManifest } from "../../scripts/manifests.ts";
import { run, type RunOptions, type RunResult } from "../support/bed/run.ts";

/** The entry points that the package has. */
export const entries: ReadonlySet<string> = new Set(Object.keys(readManifest("deno.json").exports as object));

/** Why a test of an entry point cannot run yet; undefined if it can. */
export function lacks(entry: string): string | undefined {
  return entries.has(entry) ? undefined : `the package has no entry point ${entry}`;
}

/** A folder outside the repository with the fixtures in it. */
export function consumerFolder(...fixtures: readonly string[]): string {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "xsm-consumer-")));
  for (const name of fixtures) copyFileSync(new URL(`./fixtures/${name}`, import.meta.url), join(dir, name));
  return dir;
}

/** Removes such a folder. */
export function removeFolder(dir: string): void {
  rmSync(dir, { recursive: true, force: true });
}

/** Runs a program in a consumer's folder, with nothing of this process's module settings. */
export function runIn(
  dir: string,
  file: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<RunResult> {
  return run(file, args, { timeoutMs: 60_000, ...options, cwd: dir, env: { NO_COLOR: "1", ...options.env } });
}

/** Asserts that a fixture did its work and ended by itself. */
export function assertDone(result: RunResult, ...lines: readonly string[]): void {
  assert.equal(result.code, 0, `exit code ${result.code}\n${result.stdout}\n${result.stderr}`);
  for (const line of [...lines, "done"]) assert.ok(result.stdout.includes(line), `no "${line}" in:\n${result.stdout}`);
}

/** What the memory and the Redis fixture print. */
export const GOT = 'got shop.order.placed {"total":42}';

/** The Deno that runs this test. */
export const deno: string = process.execPath;
