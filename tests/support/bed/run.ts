/**
 * Commands of the system that the bed needs: look up, run, ask for a port.
 *
 * @module
 */
import { spawn } from "node:child_process";
import { accessSync, constants, readFileSync } from "node:fs";
import { type AddressInfo, createServer, type Server } from "node:net";
import { delimiter, join } from "node:path";
import process from "node:process";

/** How a command ended. */
export interface RunResult {
  readonly code: number | null;
  /** Standard output. */
  readonly stdout: string;
  /** Standard error. */
  readonly stderr: string;
}

/** How a command is run. */
export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** It is killed after this many milliseconds; 60,000 by default. */
  readonly timeoutMs?: number;
  /** Its working folder. */
  readonly cwd?: string;
}

/** Runs a command without standard input and resolves to how it ended; never rejects. */
export function run(file: string, args: readonly string[], options: RunOptions = {}): Promise<RunResult> {
  return new Promise((resolve) => {
    const running = spawn(file, [...args], {
      env: { ...process.env, LC_ALL: "C", ...options.env },
      stdio: ["ignore", "pipe", "pipe"],
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
    let stdout = "";
    let stderr = "";
    running.stdout.setEncoding("utf8").on("data", (text: string) => stdout += text);
    running.stderr.setEncoding("utf8").on("data", (text: string) => stderr += text);
    const timer = setTimeout(() => running.kill("SIGKILL"), options.timeoutMs ?? 60_000);
    running.once("error", (error) => {
      clearTimeout(timer);
      resolve({ code: null, stdout, stderr: String(error) });
    });
    running.once("close", (code) => {
      clearTimeout(timer);
      resolve({ code, stdout, stderr });
    });
  });
}

/**
 * Runs a command of the installation, again up to `tries` times: registries and mirrors are slow at times.
 *
 * @throws Error with the end of its output.
 */
export async function must(
  file: string,
  args: readonly string[],
  options: RunOptions & { readonly tries?: number } = {},
): Promise<string> {
  const tries = options.tries ?? 1;
  for (let attempt = 1;; attempt++) {
    const { code, stdout, stderr } = await run(file, args, options);
    if (code === 0) return stdout;
    if (attempt < tries) {
      await new Promise((resolve) => setTimeout(resolve, 2_000 * attempt));
      continue;
    }
    throw new Error(`${file} ${args[0] ?? ""} failed (${code ?? "killed"}): ${(stderr + stdout).trim().slice(-1500)}`);
  }
}

/** The path of a program on the PATH, or in the folders for system programs, or undefined. */
export function which(name: string): string | undefined {
  const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/local/sbin", "/usr/sbin", "/sbin"];
  for (const folder of folders) {
    if (folder === "") continue;
    try {
      accessSync(join(folder, name), constants.X_OK);
      return join(folder, name);
    } catch {
      // Not here.
    }
  }
  return undefined;
}

/** Whether this process may do anything on this machine. */
export const isRoot = (): boolean => process.getuid?.() === 0;

/** The code name of this machine's Debian release (`bookworm`), or undefined on another system. */
export function debianCodename(): string | undefined {
  try {
    const release = readFileSync("/etc/os-release", "utf8");
    if (!/^ID=debian$/m.test(release)) return undefined;
    return release.match(/^VERSION_CODENAME=(\w+)$/m)?.[1];
  } catch {
    return undefined;
  }
}

/** Ports of the loopback interface that were free a moment ago; all different. */
export async function freePorts(count: number): Promise<number[]> {
  const held = await Promise.all(Array.from({ length: count }, holdPort));
  const ports = held.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(held.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

function holdPort(): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => resolve(server));
  });
}
