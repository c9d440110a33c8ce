/**
 * A server that speaks the protocol of Amazon SQS: the npm package `fauxqs` in a process of its own. It keeps all in
 * memory: a restart begins empty. With {@link KEEPS} as an argument it keeps queues and messages in its data folder, but not
 * what it knows of duplicates.
 *
 * The URL of a queue has the address by which its maker came, and stays what it is. A client that takes it for its
 * endpoint goes past a proxy when the queue was made without one.
 *
 * @module
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import type { ServerKind } from "./kind.ts";
import { must, which } from "./run.ts";
import { bedDir } from "./state.ts";

const PACKAGE = "fauxqs";
const VERSION = "2.4.1";
const STORE = `./node_modules/${PACKAGE}/dist/sqs/sqsStore.js`;
const PERSISTENCE = `./node_modules/${PACKAGE}/dist/persistence.js`;

/** The argument with which a server keeps its data over a restart. */
export const KEEPS = "{dir}";

const folder = (): string => join(bedDir(), "sqs");
const program = (): string => join(folder(), "main.mjs");

/** Whether the installation is whole, as the program is written last, and is this one. */
function isInstalled(): boolean {
  try {
    return readFileSync(program(), "utf8") === PROGRAM;
  } catch {
    return false;
  }
}

/**
 * The package's own program listens on every interface, and its queues have URLs below `localhost`, a name that not every
 * system resolves; a store without a host takes the client's `Host` instead.
 */
const PROGRAM = `// ${PACKAGE} ${VERSION}
import process from "node:process";
import { buildApp } from "${PACKAGE}";
import { SqsStore } from "${STORE}";

const sqsStore = new SqsStore();
sqsStore.host = undefined;
const dir = process.argv[3];
if (dir !== undefined) {
  const { PersistenceManager } = await import("${PERSISTENCE}");
  const kept = new PersistenceManager(dir);
  kept.loadSqsQueues(sqsStore);
  // Its own puts nothing into columns that must hold something, and so loses a message that is given back.
  const ready = kept.db.prepare("UPDATE sqs_messages SET receipt_handle = NULL, visibility_deadline = NULL WHERE message_id = ?");
  kept.updateMessageReady = (id) => ready.run(id);
  sqsStore.persistence = kept;
  for (const queue of sqsStore.allQueues()) queue.persistence = kept;
}
const app = buildApp({ logger: false, stores: { sqsStore } });
await app.listen({ host: "127.0.0.1", port: Number(process.argv[2]) });
`;

/** The arguments by which the runtime of this process runs a script. */
const runtimeArgs = (): string[] =>
  "Deno" in globalThis ? ["run", "--quiet", "--no-lock", "-A"] : "Bun" in globalThis ? ["run"] : [];

/** SQS, standard and FIFO queues. */
export const sqs: ServerKind = {
  name: "sqs",
  env: "XSM_SQS_ENDPOINT",
  needs: `npm to install ${PACKAGE} ${VERSION}`,
  find: () => isInstalled() ? { file: process.execPath } : undefined,
  install: async () => {
    const npm = which("npm");
    if (npm === undefined) throw new Error("npm is not on the PATH");
    rmSync(folder(), { recursive: true, force: true });
    mkdirSync(folder(), { recursive: true });
    const manifest = { name: "sqs", private: true, type: "module", dependencies: { [PACKAGE]: VERSION } };
    writeFileSync(join(folder(), "package.json"), JSON.stringify(manifest));
    const args = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
    await must(npm, args, { cwd: folder(), timeoutMs: 300_000, tries: 3 });
    writeFileSync(program(), PROGRAM);
  },
  start: (_binary, { port, tls }) => {
    if (tls) throw new TypeError("The server sqs speaks no TLS");
    return { args: [...runtimeArgs(), program(), String(port)] };
  },
  url: (port) => `http://127.0.0.1:${port}`,
  ready: async (port) => {
    try {
      const answer = await fetch(`http://127.0.0.1:${port}/health`, { signal: AbortSignal.timeout(1_000) });
      return (await answer.text()).includes("ok");
    } catch {
      return false;
    }
  },
  version: () => Promise.resolve(`${PACKAGE} ${VERSION}`),
};
