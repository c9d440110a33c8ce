import assert from "node:assert/strict";
import { appendFileSync, existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { relativesOf } from "./bed/family.ts";
import { giveTo, makeDataDir } from "./bed/inside.ts";
import type { ServerKind } from "./bed/kind.ts";
import { endProcess, type Started, startProcess } from "./bed/process.ts";
import { isRoot } from "./bed/run.ts";
import { startTicksOf } from "./bed/state.ts";
import { test, type TestContext, until } from "./test.ts";

const SHELL = { file: "/bin/sh" } as const;

/** A program that starts a child and a daemon which is nobody's child, notes their ids and goes on for long. */
const PROGRAM = `sleep 600 & echo $! >>"$0/ids"
(setsid sleep 600 & echo $! >>"$0/ids")
echo both >>"$0/ids"
exec sleep 600`;

/** A kind of server whose program is the shell's. */
function kindOf(dir: string, part: Partial<ServerKind> = {}): ServerKind {
  return {
    name: "shell",
    env: "XSM_SHELL_URL",
    needs: "a shell",
    find: () => SHELL,
    install: () => Promise.resolve(),
    start: (_binary, plan) => ({ args: ["-c", PROGRAM, plan.dir] }),
    url: (port) => `shell://127.0.0.1:${port}`,
    ready: () =>
      Promise.resolve(existsSync(join(dir, "ids")) && readFileSync(join(dir, "ids"), "utf8").includes("both")),
    version: () => Promise.resolve("1"),
    ...part,
  };
}

function dataDir(context: TestContext): string {
  const dir = makeDataDir(SHELL, "shell");
  context.cleanup(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

async function start(context: TestContext, kind: ServerKind, dir: string): Promise<Started> {
  const started = await startProcess(kind, SHELL, dir);
  context.cleanup(() => endProcess(started, { signal: "SIGKILL" }));
  return started;
}

const idsIn = (dir: string): number[] => readFileSync(join(dir, "ids"), "utf8").match(/\d+/g)!.map(Number);

for (const signal of ["SIGTERM", "SIGKILL"] as const) {
  test(`a server's end by ${signal} is the end of its children and of daemons that left it`, async (context) => {
    const dir = dataDir(context);
    const started = await start(context, kindOf(dir), dir);
    const ids = idsIn(dir);
    assert.equal(ids.length, 2);
    // The daemon is a child of the server no more once the shell between them is gone.
    await until(() => relativesOf(undefined, dir).length >= 2);
    for (const id of ids) assert.notEqual(startTicksOf(id), undefined);
    await endProcess(started, { signal });
    for (const id of [started.pid, ...ids]) assert.equal(startTicksOf(id), undefined);
  });
}

test("a daemon that outlived its server ends with it, and no process of another one", async (context) => {
  const dirs = [dataDir(context), dataDir(context)] as const;
  const [one, other] = [await start(context, kindOf(dirs[0]), dirs[0]), await start(context, kindOf(dirs[1]), dirs[1])];
  process.kill(one.pid, "SIGKILL");
  await until(() => startTicksOf(one.pid) === undefined);
  for (const id of idsIn(dirs[0])) assert.notEqual(startTicksOf(id), undefined);
  await endProcess(one);
  for (const id of idsIn(dirs[0])) assert.equal(startTicksOf(id), undefined);
  for (const id of [other.pid, ...idsIn(dirs[1])]) assert.notEqual(startTicksOf(id), undefined);
});

test("a kind is prepared before every start, and has a port for each name", async (context) => {
  const dir = dataDir(context);
  const plans: Record<string, number>[] = [];
  const kind = kindOf(dir, {
    ports: ["control", "extra"],
    prepare: (_binary, { port, ports, hostDir }) => {
      plans.push({ port, ...ports });
      appendFileSync(join(hostDir, "prepared"), "x");
      return Promise.resolve();
    },
  });
  const started = await start(context, kind, dir);
  assert.equal(new Set(Object.values(plans[0]!)).size, 3);
  assert.deepEqual({ port: started.port, ...started.ports }, plans[0]);
  await endProcess(started);
  const again = await startProcess(kind, SHELL, dir, { port: started.port, ports: { extra: started.ports.extra! } });
  context.cleanup(() => endProcess(again));
  assert.deepEqual([again.port, again.ports.extra], [started.port, started.ports.extra]);
  assert.equal(readFileSync(join(dir, "prepared"), "utf8"), "xx");
});

test("a server that ends at once is an error with its log", async (context) => {
  const dir = dataDir(context);
  const kind = kindOf(dir, {
    start: () => ({ args: ["-c", "echo cannot go on; exit 3"] }),
    ready: () => Promise.resolve(false),
  });
  await assert.rejects(startProcess(kind, SHELL, dir), /shell did not start[^]*cannot go on/);
});

test("an account that the system does not have is an error by name", {
  skip: isRoot() ? undefined : "only root chooses the account",
}, (context) => {
  const dir = dataDir(context);
  assert.throws(() => giveTo(SHELL, dir, "no-such-account"), /no account no-such-account/);
});
