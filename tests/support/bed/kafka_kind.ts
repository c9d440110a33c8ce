/**
 * Kafka in KRaft mode, one node that is broker and controller.
 *
 * Clients follow the addresses that a listener advertises, so a server behind a fault proxy needs a listener that
 * advertises the proxy. Every server has {@link KAFKA_DOORS} of them: the listener `inner<n>` advertises the port
 * `outer<n>`, on which nothing listens until a test starts its proxy there.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { aptInstall } from "./debian.ts";
import type { ServerKind, StartPlan } from "./kind.ts";
import { probe } from "./probe.ts";
import { must, which } from "./run.ts";
import { bedDir } from "./state.ts";

const VERSION = "4.3.1";
const ARTIFACTS = [
  ["org.apache.kafka", "kafka_2.13", VERSION],
  ["org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.3"],
] as const;

/** How many proxies at a time can stand before one server. */
export const KAFKA_DOORS = 4;
const doors: readonly number[] = Array.from({ length: KAFKA_DOORS }, (_, at) => at + 1);

const folder = (): string => join(bedDir(), "kafka");

/** The folder with the server's jars: the bed's own, or that of an installation on the PATH. */
function libraries(): string | undefined {
  const own = join(folder(), "lib");
  if (existsSync(own)) return own;
  const script = which("kafka-server-start.sh");
  if (script === undefined) return undefined;
  const lib = join(dirname(realpathSync(script)), "..", "libs");
  return versionOf(lib) === undefined ? undefined : lib;
}

/** The version of the server whose jars are in `lib`. */
function versionOf(lib: string): string | undefined {
  try {
    return readdirSync(lib).map((name) => name.match(/^kafka_[\d.]+-(\d[\d.]*)\.jar$/)?.[1]).find((found) => found);
  } catch {
    return undefined;
  }
}

/** Kafka 4. */
export const kafka: ServerKind = {
  name: "kafka",
  env: "XSM_KAFKA_BROKERS",
  needs: "Java 17 or newer and Kafka 4 (the bed fetches it with Maven)",
  ports: ["controller", ...doors.flatMap((door) => [`inner${door}`, `outer${door}`])],
  startMs: 90_000,
  stopMs: 20_000,
  find: () => {
    const java = suitableJava();
    return java === undefined || libraries() === undefined ? undefined : { file: java };
  },
  install: async () => {
    const missing = [
      ...(suitableJava() === undefined ? ["default-jre-headless"] : []),
      ...(libraries() === undefined && which("mvn") === undefined ? ["maven"] : []),
    ];
    if (missing.length > 0) await aptInstall(...missing);
    if (libraries() === undefined) await fetchJars();
  },
  prepare: async (binary, plan) => {
    const file = join(plan.hostDir, "server.properties");
    writeFileSync(file, Object.entries(properties(plan)).map(([key, value]) => `${key}=${value}\n`).join(""));
    if (plan.tls) {
      const parts = ["server.key", "server.crt"].map((name) => readFileSync(join(plan.hostDir, name), "utf8"));
      writeFileSync(join(plan.hostDir, "server.pem"), parts.join(""), { mode: 0o600 });
    }
    if (existsSync(join(plan.hostDir, "data", "meta.properties"))) return;
    // It would take a leading dash for an option.
    const id = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString("base64url").replace(/^-/, "A");
    await must(binary.file, [...java("64m"), "kafka.tools.StorageTool", "format", "-t", id, "-c", file]);
  },
  start: (_binary, { dir }) => ({ args: [...java("512m"), "kafka.Kafka", join(dir, "server.properties")] }),
  url: (port) => `127.0.0.1:${port}`,
  ready: async (port, tls) => (await brokerPorts(port, tls))?.includes(port) ?? false,
  version: () => Promise.resolve(versionOf(libraries() ?? "") ?? "unknown"),
};

const java = (heap: string): string[] => [`-Xmx${heap}`, "-XX:+UseSerialGC", "-cp", `${libraries()}/*`];

function properties({ port, ports, hostDir, tls }: StartPlan): Record<string, string> {
  const listeners: [name: string, bound: number | undefined, advertised: number | undefined][] = [
    ["CLIENT", port, port],
    ...doors.map((door): [string, number | undefined, number | undefined] => [
      `DOOR${door}`,
      ports[`inner${door}`],
      ports[`outer${door}`],
    ]),
  ];
  const protocol = tls ? "SSL" : "PLAINTEXT";
  const addresses = (at: 1 | 2) => listeners.map((listener) => `${listener[0]}://127.0.0.1:${listener[at]}`).join(",");
  return {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": `1@127.0.0.1:${ports.controller}`,
    "controller.listener.names": "CONTROLLER",
    "listeners": `${addresses(1)},CONTROLLER://127.0.0.1:${ports.controller}`,
    "advertised.listeners": addresses(2),
    "listener.security.protocol.map": [
      ...listeners.map(([name]) => `${name}:${protocol}`),
      "CONTROLLER:PLAINTEXT",
    ].join(","),
    "inter.broker.listener.name": "CLIENT",
    "log.dirs": join(hostDir, "data"),
    "num.network.threads": "1",
    "num.partitions": "3",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    // After a kill the new process is let in only when the session of the old one is over.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    // Tests of a consumer that is put out wait for its session to end.
    "group.min.session.timeout.ms": "1000",
    // The cleaner takes a buffer of 128 MB otherwise.
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.index.size.max.bytes": "1048576",
    "controlled.shutdown.max.retries": "1",
    ...(tls
      ? {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": join(hostDir, "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": join(hostDir, "ca.crt"),
        "ssl.client.auth": "requested",
      }
      : {}),
  };
}

const majors = new Map<string, number>();

/** The path of a Java that can run the server. */
function suitableJava(): string | undefined {
  const file = which("java");
  if (file === undefined) return undefined;
  let major = majors.get(file);
  if (major === undefined) {
    const { stderr } = spawnSync(file, ["-version"], { encoding: "utf8" });
    majors.set(file, major = Number(String(stderr).match(/version "(\d+)/)?.[1] ?? 0));
  }
  return major >= 17 ? file : undefined;
}

async function fetchJars(): Promise<void> {
  const mvn = which("mvn");
  if (mvn === undefined) throw new Error("mvn is not on the PATH");
  rmSync(folder(), { recursive: true, force: true });
  mkdirSync(folder(), { recursive: true });
  const dependencies = ARTIFACTS.map(([group, name, version]) =>
    `<dependency><groupId>${group}</groupId><artifactId>${name}</artifactId><version>${version}</version></dependency>`
  );
  writeFileSync(
    join(folder(), "pom.xml"),
    "<project><modelVersion>4.0.0</modelVersion><groupId>bed</groupId><artifactId>kafka</artifactId>" +
      `<version>1</version><dependencies>${dependencies.join("")}</dependencies></project>`,
  );
  const cache = `-Dmaven.repo.local=${join(folder(), "cache")}`;
  const args = ["-q", "-B", cache, "dependency:copy-dependencies", "-DoutputDirectory=draft"];
  await must(mvn, args, { cwd: folder(), timeoutMs: 300_000, tries: 3 });
  rmSync(join(folder(), "cache"), { recursive: true, force: true });
  renameSync(join(folder(), "draft"), join(folder(), "lib"));
}

/** A request of Metadata, version 4, for no topic. */
const METADATA = Buffer.from("0000000f" + "0003" + "0004" + "00000001" + "ffff" + "00000000" + "00", "hex");

/**
 * The ports that a broker advertises on the listener of `port`; undefined without an answer, empty while it is not yet
 * registered.
 */
export function brokerPorts(port: number, tls = false): Promise<number[] | undefined> {
  return probe({ port, tls }, METADATA, (bytes) => {
    if (bytes.length < 4 || bytes.length < 4 + bytes.readInt32BE(0)) return undefined;
    // Length, correlation id, throttle time; then the brokers: node id, host, port, rack.
    const ports: number[] = [];
    let at = 12;
    const count = bytes.readInt32BE(at);
    at += 4;
    for (let broker = 0; broker < count; broker++) {
      at += 4 + 2 + bytes.readInt16BE(at + 4);
      ports.push(bytes.readInt32BE(at));
      at += 4;
      at += 2 + Math.max(0, bytes.readInt16BE(at));
    }
    return ports;
  });
}
