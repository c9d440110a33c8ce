/**
 * Redis and its fork Valkey: one protocol, one command line.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { spawnSync } from "node:child_process";
import { aptInstall, findInNext, installInNext, nextRoot } from "./debian.ts";
import { mustIn } from "./inside.ts";
import type { Binary, ServerKind } from "./kind.ts";
import { probe } from "./probe.ts";
import { isRoot, which } from "./run.ts";

interface Flavour {
  readonly name: string;
  readonly env: string;
  readonly needs: string;
  readonly program: string;
  /** The Debian package. */
  readonly package: string;
  /** Installed in the bed's newer system rather than on this machine. */
  readonly next: boolean;
  /** Whether a program on the PATH with this major version will do. */
  accepts(major: number): boolean;
}

function redisLike(flavour: Flavour): ServerKind {
  const inner = `/usr/bin/${flavour.program}`;
  return {
    name: flavour.name,
    env: flavour.env,
    needs: flavour.needs,
    find: () => {
      if (flavour.next && isRoot() && findInNext(inner) !== undefined) return { file: inner, root: nextRoot() };
      const file = which(flavour.program);
      return file !== undefined && flavour.accepts(majorOf(file)) ? { file } : undefined;
    },
    install: () => flavour.next ? installInNext("redis-server", "valkey-server") : aptInstall(flavour.package),
    start: (_binary, { port, dir, tls }) => ({
      args: [
        ...["--bind", "127.0.0.1", "--protected-mode", "no", "--daemonize", "no"],
        ...["--dir", dir, "--save", "", "--appendonly", "no", "--logfile", ""],
        ...(tls
          ? [
            ...["--port", "0", "--tls-port", String(port), "--tls-auth-clients", "optional"],
            ...["--tls-cert-file", `${dir}/server.crt`, "--tls-key-file", `${dir}/server.key`],
            ...["--tls-ca-cert-file", `${dir}/ca.crt`],
          ]
          : ["--port", String(port)]),
      ],
    }),
    url: (port, tls) => `${tls ? "rediss" : "redis"}://127.0.0.1:${port}`,
    ready: answersPing,
    version: async (binary: Binary) => versionIn(await mustIn(binary, [binary.file, "--version"])),
  };
}

const versionIn = (text: string): string => text.match(/v=([\d.]+)/)?.[1] ?? "unknown";

const majors = new Map<string, number>();

function majorOf(file: string): number {
  let major = majors.get(file);
  if (major === undefined) {
    major = Number.parseInt(versionIn(spawnSync(file, ["--version"], { encoding: "utf8" }).stdout));
    majors.set(file, major);
  }
  return major;
}

const PING = Buffer.from("PING\r\n");

/** Whether a server on the port answers PING: also with "authenticate first", but not while it loads its data. */
async function answersPing(port: number, tls: boolean): Promise<boolean> {
  return await probe({ port, tls }, PING, (bytes) => /^(\+PONG|-NOAUTH|-NOPERM)/.test(String(bytes))) === true;
}

/** The floor: Redis 7.0 on Debian 12, or what is on the PATH. */
export const redis: ServerKind = redisLike({
  name: "redis",
  env: "XSM_REDIS_URL",
  needs: "redis-server on the PATH",
  program: "redis-server",
  package: "redis-server",
  next: false,
  accepts: (major) => major >= 7,
});

/** Redis 8. */
export const redis8: ServerKind = redisLike({
  name: "redis8",
  env: "XSM_REDIS8_URL",
  needs: "a Redis 8 (the bed installs one on Debian as root)",
  program: "redis-server",
  package: "redis-server",
  next: true,
  accepts: (major) => major >= 8,
});

/** Valkey 8. */
export const valkey: ServerKind = redisLike({
  name: "valkey",
  env: "XSM_VALKEY_URL",
  needs: "a Valkey 8 (the bed installs one on Debian as root)",
  program: "valkey-server",
  package: "valkey-server",
  next: true,
  accepts: () => true,
});
