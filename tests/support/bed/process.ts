/**
 * A server process: start, wait until it answers, and end exactly that process.
 *
 * @module
 */
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import type { Binary, Launch, ServerKind, StartOptions } from "./kind.ts";
import { freePort } from "./run.ts";
import { bedDir, startTicksOf } from "./state.ts";
import { makeCertificates } from "./tls.ts";

/** How long a server may take until it answers. */
const START_MS = 30_000;
/** How long it may take to end after SIGTERM. */
const STOP_MS = 5_000;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A started server. */
export interface Started {
  readonly pid: number;
  readonly startTicks: string;
  readonly port: number;
  /** The data folder, as this machine sees it. */
  readonly dir: string;
}

/** Makes an empty data folder where the program can see it. */
export function makeDataDir(binary: Binary, label: string): string {
  const parent = join(binary.root ?? bedDir(), "xsm-data");
  mkdirSync(parent, { recursive: true, mode: 0o755 });
  return mkdtempSync(join(parent, `${label}-`));
}

/** Starts a server of `kind` in `dir` and resolves when it answers. `dir` holds its log as `server.log`. */
export async function startProcess(
  kind: ServerKind,
  binary: Binary,
  dir: string,
  options: StartOptions = {},
): Promise<Started> {
  const tls = options.tls === true;
  if (tls) await makeCertificates(dir);
  for (const [name, text] of Object.entries(options.files ?? {})) writeFileSync(join(dir, name), text);
  const inside = binary.root === undefined ? dir : dir.slice(binary.root.length);
  for (let attempt = 1;; attempt++) {
    const port = options.port ?? await freePort();
    const launch = kind.start(binary, { port, dir: inside, tls });
    const extra = (options.args ?? []).map((arg) => arg.replaceAll("{dir}", inside));
    const pid = spawnServer(binary, { ...launch, args: [...launch.args, ...extra] }, join(dir, "server.log"));
    const startTicks = startTicksOf(pid) ?? "";
    if (await answers(kind, pid, startTicks, port, tls)) return { pid, startTicks, port, dir };
    await endProcess(pid, startTicks);
    // Another process may have taken the free port in between.
    if (options.port === undefined && attempt < 3) continue;
    throw new Error(`${kind.name} did not start on port ${port}: ${logOf(dir).trim().slice(-1000)}`);
  }
}

/**
 * Starts the program in a session of its own, so that neither the end of the starter nor Ctrl-C reaches it. `exec` makes
 * the process id the server's own: a signal to it hits the server, not a shell.
 */
function spawnServer(binary: Binary, launch: Launch, log: string): number {
  const command = [...(binary.root === undefined ? [] : ["chroot", binary.root]), binary.file, ...launch.args];
  const started = spawn("/bin/sh", ["-c", 'exec "$@" >>"$0" 2>&1', log, ...command], {
    detached: true,
    stdio: "ignore",
    env: { ...process.env, ...launch.env },
  });
  started.on("error", () => {});
  started.unref();
  const { pid } = started;
  if (pid === undefined) throw new Error(`Cannot start ${binary.file}`);
  unreaped.add(pid);
  started.once("exit", () => unreaped.delete(pid));
  return pid;
}

async function answers(
  kind: ServerKind,
  pid: number,
  startTicks: string,
  port: number,
  tls: boolean,
): Promise<boolean> {
  const end = performance.now() + START_MS;
  while (performance.now() < end) {
    // A server that could not bind is gone while another one may answer on its port.
    if (await kind.ready(port, tls) && startTicksOf(pid) === startTicks) return true;
    if (startTicksOf(pid) !== startTicks) return false;
    await pause(20);
  }
  return false;
}

/** Ends the process `pid` if it is still the one that started at `startTicks`; resolves when it is gone. */
export async function endProcess(
  pid: number,
  startTicks: string,
  signal: "SIGTERM" | "SIGKILL" = "SIGTERM",
): Promise<void> {
  const gone = () => startTicksOf(pid) !== startTicks;
  if (gone()) return await reaped(pid);
  send(pid, signal);
  // A stopped process takes SIGTERM only when it goes on.
  if (signal === "SIGTERM") send(pid, "SIGCONT");
  const end = performance.now() + STOP_MS;
  while (!gone()) {
    if (performance.now() > end) send(pid, "SIGKILL");
    await pause(10);
  }
  await reaped(pid);
}

/** The runtime learns of the end a moment later than the system; a test that ended before would be said to leak. */
async function reaped(pid: number): Promise<void> {
  const end = performance.now() + STOP_MS;
  while (unreaped.has(pid) && performance.now() < end) await pause(5);
}

/** Sends a signal; a process that is gone is no error. */
export function send(pid: number, signal: "SIGTERM" | "SIGKILL" | "SIGSTOP" | "SIGCONT"): void {
  try {
    process.kill(pid, signal);
  } catch {
    // Gone.
  }
}

/** Servers that this process itself started and whose end its runtime did not report yet. */
const unreaped = new Set<number>();

/** What the server wrote so far. */
export function logOf(dir: string): string {
  try {
    return readFileSync(join(dir, "server.log"), "utf8");
  } catch {
    return "";
  }
}

/** Removes a data folder. */
export function removeDir(dir: string): void {
  rmSync(dir, { recursive: true, force: true });
}
