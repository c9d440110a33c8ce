/**
 * Programs of another system, under another account: how their commands and data folders are made.
 *
 * @module
 */
import { chmodSync, chownSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Binary } from "./kind.ts";
import { isRoot, must, type RunOptions } from "./run.ts";
import { bedDir } from "./state.ts";

/** The command that runs `args` in the system of `binary`, as `user` where root may choose. `exec` of it keeps its id. */
export function commandIn(binary: Binary, args: readonly string[], user?: string): readonly [string, ...string[]] {
  const own = user !== undefined && isRoot();
  if (binary.root === undefined && !own) return args as readonly [string, ...string[]];
  return ["chroot", ...(own ? [`--userspec=${user}:`] : []), binary.root ?? "/", ...args];
}

/**
 * Runs a command in the system of `binary`, as `user` where root may choose.
 *
 * @throws Error with the end of its output.
 */
export function mustIn(
  binary: Binary,
  args: readonly string[],
  options: RunOptions & { readonly user?: string | undefined } = {},
): Promise<string> {
  const [file, ...rest] = commandIn(binary, args, options.user);
  return must(file, rest, options);
}

/** The file of `binary` as this machine sees it. */
export const hostPath = (binary: Binary, file: string): string => join(binary.root ?? "/", file);

/** Makes an empty data folder where the program can see it, and where `user` can reach it. */
export function makeDataDir(binary: Binary, label: string, user?: string): string {
  const parent = join(binary.root ?? bedDir(), "xsm-data");
  mkdirSync(parent, { recursive: true, mode: 0o755 });
  // Others may pass through the bed's folder, not look into it.
  if (binary.root === undefined && user !== undefined && isRoot()) chmodSync(bedDir(), 0o711);
  return mkdtempSync(join(parent, `${label}-`));
}

/** Gives `dir` and all in it to the account `user` of the system of `binary`, where root may. */
export function giveTo(binary: Binary, dir: string, user: string | undefined): void {
  if (user === undefined || !isRoot()) return;
  const lines = readFileSync(hostPath(binary, "/etc/passwd"), "utf8").split("\n");
  const account = lines.find((line) => line.startsWith(`${user}:`))?.split(":");
  if (account === undefined) throw new Error(`The system of ${binary.file} has no account ${user}`);
  chownAll(dir, Number(account[2]), Number(account[3]));
}

function chownAll(path: string, uid: number, gid: number): void {
  const stat = lstatSync(path);
  if (stat.isSymbolicLink()) return;
  if (stat.isDirectory()) { for (const name of readdirSync(path)) chownAll(join(path, name), uid, gid); }
  if (stat.uid !== uid || stat.gid !== gid) chownSync(path, uid, gid);
}
