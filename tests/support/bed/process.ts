/**
 * A server process: start, wait until it answers, and end exactly that process.
 *
 * @module
 */
import { spawn } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { MARK, type Member, relativesOf } from "./family.ts";
import { commandIn, giveTo } from "./inside.ts";
import type { Binary, Launch, ServerKind, StartOptions } from "./kind.ts";
import { freePorts } from "./run.ts";
import { startTicksOf } from "./state.ts";
import { makeCertificates } from "./tls.ts";

const START_MS = 30_000;
const STOP_MS = 5_000;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A started server. */
export interface Started extends Member {
  readonly port: number;
  /** Its further ports, by name. */
  readonly ports: Readonly<Record<string, number>>;
  /** The data folder, as this machine sees it. */
  readonly dir: string;
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
  giveTo(binary, dir, kind.user);
  const inside = binary.root === undefined ? dir : dir.slice(binary.root.length);
  const names = kind.ports ?? [];
  for (let attempt = 1;; attempt++) {
    const [free = 0, ...others] = await freePorts(1 + names.length);
    const port = options.port ?? free;
    const ports = Object.fromEntries(names.map((name, at) => [name, options.ports?.[name] ?? others[at] ?? 0]));
    const plan = { port, ports, dir: inside, hostDir: dir, tls };
    await kind.prepare?.(binary, plan);
    const launch = kind.start(binary, plan);
    const extra = (options.args ?? []).map((arg) => arg.replaceAll("{dir}", inside));
    const pid = spawnServer(kind, binary, { ...launch, args: [...launch.args, ...extra] }, dir);
    const started: Started = { pid, startTicks: startTicksOf(pid) ?? "", port, ports, dir };
    if (await answers(kind, started, tls)) return started;
    await endProcess(started, { signal: "SIGKILL" });
    // Another process may have taken a free port in between.
    if (options.port === undefined && attempt < 3) continue;
    throw new Error(`${kind.name} did not start on port ${port}: ${logOf(dir).trim().slice(-1000)}`);
  }
}

/**
 * Starts the program in a session of its own, so that neither the end of the starter nor Ctrl-C reaches it. `exec` makes
 * the process id the server's own: a signal to it hits the server, not a shell.
 */
function spawnServer(kind: ServerKind, binary: Binary, launch: Launch, dir: string): number {
  const command = commandIn(binary, [binary.file, ...launch.args], kind.user);
  const started = spawn("/bin/sh", ["-c", 'exec "$@" >>"$0" 2>&1', join(dir, "server.log"), ...command], {
    detached: true,
    stdio: "ignore",
    env: { ...process.env, ...launch.env, [MARK]: dir },
  });
  started.on("error", () => {});
  started.unref();
  const { pid } = started;
  if (pid === undefined) throw new Error(`Cannot start ${binary.file}`);
  unreaped.add(pid);
  started.once("exit", () => unreaped.delete(pid));
  return pid;
}

async function answers(kind: ServerKind, started: Started, tls: boolean): Promise<boolean> {
  const end = performance.now() + (kind.startMs ?? START_MS);
  while (performance.now() < end) {
    // A server that could not bind is gone while another one may answer on its port.
    if (await kind.ready(started.port, tls) && runs(started)) return true;
    if (!runs(started)) return false;
    await pause(20);
  }
  return false;
}

const runs = (member: Member): boolean => startTicksOf(member.pid) === member.startTicks;

/** How {@link endProcess} ends a server. */
export interface EndOptions {
  /** SIGTERM by default. After SIGKILL nothing of it gets a turn. */
  readonly signal?: "SIGTERM" | "SIGINT" | "SIGKILL" | undefined;
  /** How long it may take to end in order, milliseconds; 5,000 by default. */
  readonly stopMs?: number | undefined;
}

/** Ends a server with every process of it, if it is still the one that was started; resolves when all are gone. */
export async function endProcess(
  server: Member & { readonly dir: string },
  { signal = "SIGTERM", stopMs = STOP_MS }: EndOptions = {},
): Promise<void> {
  const relatives = relativesOf(runs(server) ? server.pid : undefined, server.dir);
  const signalled = (to: Member, what: Signal) => runs(to) && send(to.pid, what);
  signalled(server, signal);
  if (signal === "SIGKILL") relatives.forEach((one) => signalled(one, signal));
  // A stopped process takes other signals only when it goes on.
  else for (const one of [server, ...relatives]) signalled(one, "SIGCONT");
  const end = performance.now() + stopMs;
  while (runs(server)) {
    if (performance.now() > end) signalled(server, "SIGKILL");
    await pause(10);
  }
  for (const one of [...relatives, ...relativesOf(undefined, server.dir)]) {
    signalled(one, "SIGKILL");
    while (runs(one)) await pause(5);
  }
  await reaped(server.pid);
}

/** Freezes a server with every process of it (SIGSTOP), or lets it go on (SIGCONT). */
export function signalAll(server: Member & { readonly dir: string }, signal: "SIGSTOP" | "SIGCONT"): void {
  if (!runs(server)) return;
  // Its own process first: it starts no further ones then.
  for (const one of [server, ...relativesOf(server.pid, server.dir)]) if (runs(one)) send(one.pid, signal);
}

/** The runtime learns of the end a moment later than the system; a test that ended before would be said to leak. */
async function reaped(pid: number): Promise<void> {
  const end = performance.now() + STOP_MS;
  while (unreaped.has(pid) && performance.now() < end) await pause(5);
}

type Signal = "SIGTERM" | "SIGINT" | "SIGKILL" | "SIGSTOP" | "SIGCONT";

/** Sends a signal; a process that is gone is no error. */
function send(pid: number, signal: Signal): void {
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
