/**
 * NATS servers with JetStream on: the floor, what users run today, and the newest.
 *
 * @module
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { aptInstall, findInNext, installInNext, nextRoot } from "./debian.ts";
import type { Binary, ServerKind } from "./kind.ts";
import { isRoot, must, which } from "./run.ts";
import { bedDir } from "./state.ts";

interface Flavour {
  readonly name: string;
  readonly env: string;
  readonly needs: string;
  find(): Binary | undefined;
  install(): Promise<void>;
}

function natsLike(flavour: Flavour): ServerKind {
  return {
    ...flavour,
    start: (_binary, { port, dir, tls }) => ({
      args: [
        ...["-a", "127.0.0.1", "-p", String(port), "-js", "-sd", `${dir}/data`],
        ...(tls
          ? [
            ...["--tls", "--tlscert", `${dir}/server.crt`, "--tlskey", `${dir}/server.key`],
            ...["--tlscacert", `${dir}/ca.crt`],
          ]
          : []),
      ],
    }),
    url: (port, tls) => `${tls ? "tls" : "nats"}://127.0.0.1:${port}`,
    ready: greets,
    version: async (binary: Binary) => {
      const text = binary.root === undefined
        ? await must(binary.file, ["-v"])
        : await must("chroot", [binary.root, binary.file, "-v"]);
      return versionIn(text);
    },
  };
}

const versionIn = (text: string): string => text.match(/v(\d+\.\d+\.\d+)/)?.[1] ?? "unknown";

const versions = new Map<string, number>();

/** Minor version of a NATS 2 program on this machine; 0 = another major one. */
function minorOf(file: string): number {
  let minor = versions.get(file);
  if (minor === undefined) {
    const [major, found] = versionIn(spawnSync(file, ["-v"], { encoding: "utf8" }).stdout).split(".");
    minor = major === "2" ? Number(found) : 0;
    versions.set(file, minor);
  }
  return minor;
}

/** A program on the PATH, of a version that will do. */
function onPath(accepts: (minor: number) => boolean): Binary | undefined {
  const file = which("nats-server");
  return file !== undefined && accepts(minorOf(file)) ? { file } : undefined;
}

/** Whether a server on the port greets: it does that in plain text also where TLS follows, once it takes clients. */
function greets(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket: Socket = connect({ host: "127.0.0.1", port });
    const timer = setTimeout(() => end(false), 1_000);
    const end = (answer: boolean) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(answer);
    };
    socket.once("data", (bytes) => end(String(bytes).startsWith("INFO ")));
    socket.once("error", () => end(false));
    socket.once("close", () => end(false));
  });
}

const INNER = "/usr/sbin/nats-server";

/** What users run today: NATS 2.10 of the newer Debian release, or a later one on the PATH. */
export const nats: ServerKind = natsLike({
  name: "nats",
  env: "XSM_NATS_URL",
  needs: "a NATS server 2.10 or later (the bed installs one on Debian as root)",
  find: () =>
    isRoot() && findInNext(INNER) !== undefined ? { file: INNER, root: nextRoot() } : onPath((minor) => minor >= 10),
  install: () => installInNext("nats-server"),
});

/** The floor: NATS 2.9 of Debian 12. */
export const nats29: ServerKind = natsLike({
  name: "nats29",
  env: "XSM_NATS29_URL",
  needs: "a NATS server 2.9 on the PATH",
  find: () => onPath((minor) => minor === 9),
  install: () => aptInstall("nats-server"),
});

const NEWEST = "2.15.2";
const newest = (): string => join(bedDir(), `nats-server-${NEWEST}`, "nats-server");

/** The newest, built by Go in the bed's folder. */
export const nats215: ServerKind = natsLike({
  name: "nats215",
  env: "XSM_NATS215_URL",
  needs: `a NATS server 2.15 (the bed builds one where Go is at hand)`,
  find: () => existsSync(newest()) ? { file: newest() } : onPath((minor) => minor >= 15),
  install: async () => {
    const go = which("go");
    if (go === undefined) throw new Error("needs Go to build a NATS server 2.15");
    await must(go, ["install", `github.com/nats-io/nats-server/v2@v${NEWEST}`], {
      env: { GOBIN: join(bedDir(), `nats-server-${NEWEST}`), GOFLAGS: "-modcacherw" },
      timeoutMs: 900_000,
      tries: 2,
    });
  },
});
