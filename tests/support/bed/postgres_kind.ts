/**
 * PostgreSQL: version 17 from the newer Debian release, and the floor.
 *
 * @module
 */
import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, readdirSync, writeFileSync } from "node:fs";
import { Buffer } from "node:buffer";
import { join } from "node:path";
import { aptInstall, findInNext, installInNext, nextRoot } from "./debian.ts";
import { giveTo, hostPath, mustIn } from "./inside.ts";
import type { Binary, ServerKind, StartPlan } from "./kind.ts";
import { probe } from "./probe.ts";
import { isRoot, which } from "./run.ts";

/** The account that Debian's package makes; the server refuses to run as root. */
const USER = "postgres";
const PROGRAMS = "/usr/lib/postgresql";

interface Flavour {
  readonly name: string;
  readonly env: string;
  readonly needs: string;
  /** The oldest major version that will do. */
  readonly from: number;
  /** Installed in the bed's newer system rather than on this machine. */
  readonly next: boolean;
}

function postgresOf(flavour: Flavour): ServerKind {
  return {
    name: flavour.name,
    env: flavour.env,
    needs: flavour.needs,
    user: USER,
    // SIGTERM waits until every client went.
    stopSignal: "SIGINT",
    stopMs: 20_000,
    find: () => {
      if (flavour.next && isRoot()) {
        const file = newestIn(nextRoot());
        if (file !== undefined && findInNext(file) !== undefined) return { file, root: nextRoot() };
      }
      const file = newestIn("/", flavour) ?? which("postgres");
      return file !== undefined && majorOf(file) >= flavour.from ? { file } : undefined;
    },
    install: () => flavour.next ? installInNext("postgresql") : aptInstall("postgresql"),
    prepare,
    start: (_binary, { port, dir, tls }) => ({
      args: [
        ...["-D", `${dir}/data`, "-p", String(port)],
        ...settings({
          listen_addresses: "127.0.0.1",
          unix_socket_directories: "",
          hba_file: `${dir}/pg_hba.conf`,
          max_connections: "200",
          // A `chroot` has no /dev/shm.
          dynamic_shared_memory_type: "mmap",
          ...(tls
            ? {
              ssl: "on",
              ssl_cert_file: `${dir}/server.crt`,
              ssl_key_file: `${dir}/postgres.key`,
              ssl_ca_file: `${dir}/ca.crt`,
            }
            : {}),
        }),
      ],
    }),
    url: (port, tls) => `postgres://${USER}@127.0.0.1:${port}/postgres${tls ? "?sslmode=require" : ""}`,
    ready: answersStartup,
    version: async (binary) => versionIn(await mustIn(binary, [binary.file, "--version"])),
  };
}

const settings = (values: Readonly<Record<string, string>>): string[] =>
  Object.entries(values).flatMap(([name, value]) => ["-c", `${name}=${value}`]);

/** The server program of the newest version in Debian's folder below `root`, or of the flavour's own version there. */
function newestIn(root: string, flavour?: Flavour): string | undefined {
  let versions: number[] = [];
  try {
    versions = readdirSync(join(root, PROGRAMS)).map(Number).filter((major) => major > 0).sort((a, b) => b - a);
  } catch {
    // None is installed.
  }
  const files = versions.map((major) => [major, `${PROGRAMS}/${major}/bin/postgres`] as const)
    .filter(([major, file]) => major >= (flavour?.from ?? 0) && existsSync(join(root, file)));
  const own = files.find(([major]) => major === flavour?.from);
  return (own ?? files[0])?.[1];
}

const versionIn = (text: string): string => text.match(/\d+(\.\d+)*/)?.[0] ?? "unknown";

const majorOf = (file: string): number =>
  Number.parseInt(versionIn(String(spawnSync(file, ["--version"], { encoding: "utf8" }).stdout)));

/** Makes the database cluster, the list of who may connect, and a key that only the server's account reads. */
async function prepare(binary: Binary, { dir, hostDir, tls }: StartPlan): Promise<void> {
  const rules = join(hostDir, "pg_hba.conf");
  if (!existsSync(rules)) {
    writeFileSync(rules, `${tls ? "hostssl" : "host"} all all 127.0.0.1/32 trust\n`);
  }
  if (tls) {
    copyFileSync(join(hostDir, "server.key"), join(hostDir, "postgres.key"));
    chmodSync(join(hostDir, "postgres.key"), 0o600);
  }
  giveTo(binary, hostDir, USER);
  if (existsSync(join(hostDir, "data", "PG_VERSION"))) return;
  const program = binary.file.replace(/postgres$/, "initdb");
  const initdb = existsSync(hostPath(binary, program)) ? program : "initdb";
  const options = ["--auth=trust", `--username=${USER}`, "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"];
  await mustIn(binary, [initdb, "-D", `${dir}/data`, ...options], { user: USER, env: { TZ: "UTC" } });
}

/** The code of "the database system is starting up, shutting down or in recovery". */
const NOT_YET = "57P03";

/** Whether a server on the port answers a client's first packet: also with a refusal, but not while it starts. */
async function answersStartup(port: number): Promise<boolean> {
  const answer = await probe({ port, tls: false }, startupPacket({ user: USER, database: "postgres" }), (bytes) => {
    const text = bytes.toString("latin1");
    // 'R' asks for a password or takes the client as it is; 'E' is a refusal, with its code in the field 'C'.
    if (text.startsWith("R")) return true;
    return text.startsWith("E") && text.endsWith("\0\0") ? !text.includes(`C${NOT_YET}\0`) : undefined;
  });
  return answer === true;
}

/** The first packet of a client of protocol 3.0. */
export function startupPacket(parameters: Readonly<Record<string, string>>): Uint8Array {
  const text = Object.entries(parameters).map(([name, value]) => `${name}\0${value}\0`).join("") + "\0";
  const packet = Buffer.alloc(8 + Buffer.byteLength(text));
  packet.writeInt32BE(packet.length, 0);
  packet.writeInt32BE(3 << 16, 4);
  packet.write(text, 8);
  return packet;
}

/** PostgreSQL 17. */
export const postgres: ServerKind = postgresOf({
  name: "postgres",
  env: "XSM_POSTGRES_URL",
  needs: "a PostgreSQL 17 (the bed installs one on Debian as root)",
  from: 17,
  next: true,
});

/** The floor: PostgreSQL 15 on Debian 12, or what is installed. */
export const postgres15: ServerKind = postgresOf({
  name: "postgres15",
  env: "XSM_POSTGRES15_URL",
  needs: "a PostgreSQL 15 or newer in Debian's folder or on the PATH",
  from: 15,
  next: false,
});
