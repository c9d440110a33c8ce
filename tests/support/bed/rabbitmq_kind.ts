/**
 * RabbitMQ: a current one from the newer Debian release, and the floor.
 *
 * A server is one Erlang virtual machine with a node name, a port for its peers, a port mapper (epmd) and a cookie of its own,
 * so that any number of them run side by side.
 *
 * @module
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { aptInstall, findInNext, installInNext, nextRoot } from "./debian.ts";
import { commandIn, hostPath } from "./inside.ts";
import type { Binary, ServerKind, StartPlan } from "./kind.ts";
import { probe } from "./probe.ts";
import { isRoot, run, type RunResult } from "./run.ts";

/** What Debian's package installs; its wrappers elsewhere insist on the system's own node. */
const HOME = "/usr/lib/rabbitmq";
const PROGRAM = `${HOME}/bin/rabbitmq-server`;
const HEADER = new Uint8Array([65, 77, 81, 80, 0, 0, 9, 1]);
/** A further file of settings that a test gives, `extra.conf`. */
const EXTRA = "extra.conf";

interface Flavour {
  readonly name: string;
  readonly env: string;
  readonly needs: string;
  /** Installed in the bed's newer system rather than on this machine. */
  readonly next: boolean;
}

function rabbitMq({ name, env, needs, next }: Flavour): ServerKind {
  return {
    name,
    env,
    needs,
    ports: ["peers", "mapper"],
    startMs: 60_000,
    stopMs: 20_000,
    find: () => {
      if (!next) return existsSync(PROGRAM) ? { file: PROGRAM } : undefined;
      return isRoot() && findInNext(PROGRAM) !== undefined ? { file: PROGRAM, root: nextRoot() } : undefined;
    },
    install: () => next ? installInNext("rabbitmq-server") : aptInstall("rabbitmq-server"),
    prepare,
    start: (_binary, { port, ports, dir }) => ({
      args: [],
      env: {
        ...common(dir, ports["mapper"]!),
        ERL_EPMD_ADDRESS: "127.0.0.1",
        // The script then becomes the server instead of waiting for it.
        RUNNING_UNDER_SYSTEMD: "1",
        RABBITMQ_NODENAME: nodeOf(port),
        RABBITMQ_NODE_IP_ADDRESS: "127.0.0.1",
        RABBITMQ_DIST_PORT: String(ports["peers"]),
        RABBITMQ_CONFIG_FILE: `${dir}/rabbitmq.conf`,
        RABBITMQ_ENABLED_PLUGINS_FILE: `${dir}/enabled_plugins`,
        RABBITMQ_MNESIA_BASE: `${dir}/mnesia`,
        RABBITMQ_LOG_BASE: `${dir}/log`,
        RABBITMQ_LOGS: "-",
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: "-kernel inet_dist_use_interface {127,0,0,1}",
      },
    }),
    url: (port, tls) => `${tls ? "amqps" : "amqp"}://127.0.0.1:${port}`,
    // The greeting: a method frame with the first method of the class "connection".
    ready: async (port, tls) =>
      await probe(
        { port, tls },
        HEADER,
        (bytes) => bytes.length < 11 ? undefined : bytes[0] === 1 && bytes[8] === 10,
      ) ===
        true,
    version: (binary: Binary) => Promise.resolve(versionIn(hostPath(binary, `${HOME}/lib`))),
  };
}

const nodeOf = (port: number): string => `xsm${port}@localhost`;

function common(dir: string, mapper: number): Record<string, string> {
  return {
    PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
    HOME: dir,
    LC_ALL: "C.UTF-8",
    ERL_EPMD_PORT: String(mapper),
    RABBITMQ_CONF_ENV_FILE: "/dev/null",
  };
}

function prepare(_binary: Binary, { port, dir, hostDir, tls }: StartPlan): Promise<void> {
  for (const folder of ["log", "mnesia"]) mkdirSync(join(hostDir, folder), { recursive: true });
  const plugins = join(hostDir, "enabled_plugins");
  if (!existsSync(plugins)) writeFileSync(plugins, "[rabbitmq_consistent_hash_exchange].\n");
  const extra = join(hostDir, EXTRA);
  const lines = [
    "disk_free_limit.absolute = 1MB",
    "vm_memory_high_watermark.absolute = 2GB",
    ...(tls
      ? [
        "listeners.tcp = none",
        `listeners.ssl.default = 127.0.0.1:${port}`,
        `ssl_options.cacertfile = ${dir}/ca.crt`,
        `ssl_options.certfile = ${dir}/server.crt`,
        `ssl_options.keyfile = ${dir}/server.key`,
        "ssl_options.verify = verify_none",
      ]
      : [`listeners.tcp.default = 127.0.0.1:${port}`]),
    ...(existsSync(extra) ? [readFileSync(extra, "utf8")] : []),
  ];
  writeFileSync(join(hostDir, "rabbitmq.conf"), `${lines.join("\n")}\n`);
  return Promise.resolve();
}

function versionIn(lib: string): string {
  const folder = readdirSync(lib).find((entry) => entry.startsWith("rabbitmq_server-"));
  return folder?.slice("rabbitmq_server-".length) ?? "unknown";
}

/** What of a server has to be known to run `rabbitmqctl` against it. */
export interface ControlledServer {
  readonly dir: string;
  readonly port: number;
  readonly ports: Readonly<Record<string, number>>;
}

/** Runs `rabbitmqctl` against a server of the bed. */
export function rabbitmqctl({ dir, port, ports }: ControlledServer, args: readonly string[]): Promise<RunResult> {
  const root = dir.startsWith(`${nextRoot()}/`) ? nextRoot() : undefined;
  const program = `${HOME}/bin/rabbitmqctl`;
  const binary: Binary = root === undefined ? { file: program } : { file: program, root };
  const [file, ...rest] = commandIn(binary, [program, "-q", "-n", nodeOf(port), ...args]);
  return run(file, rest, { env: common(root === undefined ? dir : dir.slice(root.length), ports["mapper"]!) });
}

/** RabbitMQ 4. */
export const rabbitmq: ServerKind = rabbitMq({
  name: "rabbitmq",
  env: "XSM_RABBITMQ_URL",
  needs: "a RabbitMQ 4 (the bed installs one on Debian as root)",
  next: true,
});

/** The floor: RabbitMQ 3.10 on Debian 12, or what is installed. */
export const rabbitmq310: ServerKind = rabbitMq({
  name: "rabbitmq310",
  env: "XSM_RABBITMQ310_URL",
  needs: `rabbitmq-server in ${HOME}`,
  next: false,
});
