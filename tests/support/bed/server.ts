/**
 * Servers of a test's own, to be stopped, killed, frozen and restarted.
 *
 * @module
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import type { Binary, ServerKind, StartOptions } from "./kind.ts";
import { kindOf } from "./kinds.ts";
import { makeDataDir } from "./inside.ts";
import { type EndOptions, endProcess, logOf, removeDir, signalAll, type Started, startProcess } from "./process.ts";
import { bedDir, startTicksOf } from "./state.ts";

/** A running server that only its starter uses. */
export interface Server extends AsyncDisposable {
  readonly name: string;
  readonly url: string;
  readonly host: string;
  readonly port: number;
  /** Further ports, by the names in its kind. */
  readonly ports: Readonly<Record<string, number>>;
  /** The server's own process. */
  readonly pid: number;
  /** The data folder as this machine sees it; with `tls` it holds `ca.crt`, `client.crt` and `client.key`. */
  readonly dir: string;
  /** Such as `7.0.15`. */
  readonly version: string;
  /** Ends it in order (SIGKILL when it takes too long), waits until it is gone and removes its data. Twice does nothing. */
  stop(): Promise<void>;
  /** SIGKILL to every process of it; waits until they are gone. Its data stays for {@link restart}. */
  kill(): Promise<void>;
  /** SIGSTOP to every process of it: connections stay open and nothing answers. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
  /** Ends it if it runs, and starts it on the same port with the same arguments and data. Resolves when it answers. */
  restart(): Promise<void>;
  /** What it wrote so far. */
  log(): string;
}

/** Whether {@link startServer} can start `name` here; the reason if not. */
export function whyNoServer(name: string): string | undefined {
  const kind = kindOf(name);
  return kind.find() === undefined ? `needs ${kind.needs} to start servers of its own` : undefined;
}

/**
 * Starts a server of the kind `name` on a free loopback port and resolves when it answers. It ends with `stop()`; one
 * whose owner died is ended by the next `deno task bed down` or test run.
 *
 * @throws Error when the program is not installed or does not start; the message holds the end of its log.
 */
export async function startServer(name: string, options: StartOptions = {}): Promise<Server> {
  const kind = kindOf(name);
  const binary = kind.find();
  if (binary === undefined) throw new Error(whyNoServer(name));
  const dir = makeDataDir(binary, `${name}-private`, kind.user);
  try {
    const started = await startProcess(kind, binary, dir, options);
    return new PrivateServer(kind, binary, options, started, await kind.version(binary));
  } catch (error) {
    removeDir(dir);
    throw error;
  }
}

class PrivateServer implements Server {
  readonly name: string;
  readonly host = "127.0.0.1";
  readonly version: string;
  readonly #kind: ServerKind;
  readonly #binary: Binary;
  readonly #options: StartOptions;
  #started: Started;

  constructor(kind: ServerKind, binary: Binary, options: StartOptions, started: Started, version: string) {
    this.name = kind.name;
    this.version = version;
    this.#kind = kind;
    this.#binary = binary;
    this.#options = options;
    this.#started = started;
    remember(started);
  }

  get url(): string {
    return this.#kind.url(this.#started.port, this.#options.tls === true);
  }

  get port(): number {
    return this.#started.port;
  }

  get ports(): Readonly<Record<string, number>> {
    return this.#started.ports;
  }

  get pid(): number {
    return this.#started.pid;
  }

  get dir(): string {
    return this.#started.dir;
  }

  async stop(): Promise<void> {
    await this.#end(this.#kind.stopSignal);
    removeDir(this.dir);
  }

  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  pause(): void {
    signalAll(this.#started, "SIGSTOP");
  }

  resume(): void {
    signalAll(this.#started, "SIGCONT");
  }

  async restart(): Promise<void> {
    await this.#end(this.#kind.stopSignal);
    const options = { ...this.#options, port: this.port, ports: this.ports };
    this.#started = await startProcess(this.#kind, this.#binary, this.dir, options);
    remember(this.#started);
  }

  log(): string {
    return logOf(this.dir);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #end(signal: EndOptions["signal"]): Promise<void> {
    await endProcess(this.#started, { signal, stopMs: this.#kind.stopMs });
    forget(this.#started);
  }
}

interface Note {
  readonly server: Started;
  readonly owner: number;
  readonly ownerTicks: string;
}

const notes = (): string => join(bedDir(), "private");
const noteOf = (server: Started): string => join(notes(), `${server.pid}.json`);

function remember(server: Started): void {
  mkdirSync(notes(), { recursive: true });
  const note: Note = { server, owner: process.pid, ownerTicks: startTicksOf(process.pid) ?? "" };
  writeFileSync(noteOf(server), JSON.stringify(note));
}

/** The notes there are, by file. */
function* allNotes(): Iterable<readonly [file: string, note: Note]> {
  let files: string[] = [];
  try {
    files = readdirSync(notes());
  } catch {
    // None was ever started.
  }
  for (const name of files) {
    const file = join(notes(), name);
    try {
      yield [file, JSON.parse(readFileSync(file, "utf8")) as Note];
    } catch {
      // Written this moment, or removed: its owner lives.
    }
  }
}

/** What is known of the private server on a port, whoever started it; undefined if there is none. */
export function privateServer(port: number): Started | undefined {
  for (const [, { server }] of allNotes()) {
    if (server.port === port && startTicksOf(server.pid) === server.startTicks) return server;
  }
  return undefined;
}

function forget(server: Started): void {
  rmSync(noteOf(server), { force: true });
}

/** Ends private servers whose owner is gone. */
export async function sweepPrivate(): Promise<void> {
  for (const [file, { server, owner, ownerTicks }] of allNotes()) {
    if (startTicksOf(owner) === ownerTicks) continue;
    try {
      await endProcess(server);
      removeDir(server.dir);
    } catch {
      continue;
    }
    rmSync(file, { force: true });
  }
}
