import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assertExits, leakCheck, test, type TestContext } from "./test.ts";

function script(context: TestContext, source: string): string {
  const dir = mkdtempSync(join(tmpdir(), "xsm-test-"));
  context.cleanup(() => rmSync(dir, { recursive: true }));
  writeFileSync(join(dir, "script.ts"), source);
  return join(dir, "script.ts");
}

test("assertExits takes a script that ends and refuses one that hangs or fails", async (context) => {
  await assertExits(script(context, `console.log("done");`));
  const hanging = script(context, `console.log("done"); setInterval(() => {}, 1000);`);
  await assert.rejects(assertExits(hanging, [], {}, { withinMs: 300 }), /did not end within 300 ms of "done"/);
  const failing = script(context, `console.log("done"); process.exitCode = 3;`);
  await assert.rejects(assertExits(failing), /ended with code 3/);
  await assert.rejects(assertExits(script(context, `console.log("no");`)), /ended before/);
});

async function listen(): Promise<Server> {
  const server = createServer((socket) => socket.on("error", () => {}).resume());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

function open(server: Server): Promise<Socket> {
  const { port } = server.address() as { port: number };
  return new Promise((resolve) => {
    const socket: Socket = connect({ host: "127.0.0.1", port }, () => resolve(socket));
    socket.on("error", () => {});
  });
}

test("leakCheck takes connections that are closed and refuses some that are not", async (context) => {
  const server = await listen();
  context.cleanup(() => new Promise((resolve) => server.close(resolve)));
  await leakCheck(async () => {
    const socket = await open(server);
    await new Promise((resolve) => socket.once("close", resolve).destroy());
  });
  const kept: Socket[] = [];
  context.cleanup(() => kept.forEach((socket) => socket.destroy()));
  await assert.rejects(leakCheck(async () => void kept.push(await open(server))), /open socket from \d+ to \d+/);
});
