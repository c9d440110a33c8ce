import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { connect as connectPlain } from "node:net";
import { connect as connectTls } from "node:tls";
import { join } from "node:path";
import { startTicksOf } from "./bed/state.ts";
import { onLegs, onServer, type Server, until, within } from "./test.ts";

/** Sends inline commands on one connection and resolves to all that came back when `until` matches. */
function talk(server: { port: number; dir?: string }, commands: string, end: RegExp, tls = false): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = tls
      ? connectTls({ host: "127.0.0.1", port: server.port, ca: readFileSync(join(server.dir!, "ca.crt"), "utf8") })
      : connectPlain({ host: "127.0.0.1", port: server.port });
    let text = "";
    socket.setEncoding("utf8").on("data", (part: string) => {
      text += part;
      if (!end.test(text)) return;
      socket.destroy();
      resolve(text);
    });
    socket.on("error", reject);
    socket.write(commands);
  });
}

const ask = (server: Server, commands: string, end: RegExp): Promise<string> =>
  within(5_000, `the answer to ${commands.trim()}`, talk(server, commands, end));

onLegs(["redis", "redis8", "valkey"], (legTest) => {
  legTest("answers", async ({ url }) => {
    const port = Number(new URL(url).port || 6379);
    assert.match(await talk({ port }, "PING\r\n", /\n/), /PONG|NOAUTH/);
  });
});

for (const name of ["redis", "redis8", "valkey"]) {
  const withOwn = onServer(name);

  withOwn("its process id is the server's own: frozen it does not answer, going on it does", async (start) => {
    const server = await start();
    assert.match(await ask(server, "INFO server\r\n", /process_id:\d+\r/), new RegExp(`process_id:${server.pid}\r`));
    server.pause();
    const answer = talk(server, "PING\r\n", /PONG/);
    await assert.rejects(within(200, "a frozen server", answer));
    server.resume();
    await answer;
  });

  withOwn("a restart keeps port and data folder, a kill is seen at once, stop removes all", async (start) => {
    const server = await start({ args: ["--appendonly", "yes"] });
    const { pid, port, dir } = server;
    await ask(server, "SET k kept\r\n", /OK/);
    await server.restart();
    assert.equal(server.port, port);
    assert.notEqual(server.pid, pid);
    await until(async () => /kept/.test(await ask(server, "GET k\r\n", /\r\n/)));
    await server.kill();
    assert.equal(startTicksOf(server.pid), undefined);
    await assert.rejects(talk(server, "PING\r\n", /PONG/));
    await server.restart();
    await ask(server, "PING\r\n", /PONG/);
    await server.stop();
    await server.stop();
    assert.equal(existsSync(dir), false);
  });

  withOwn("takes an ACL file from its data folder", async (start) => {
    const server = await start({
      args: ["--aclfile", "{dir}/users.acl"],
      files: { "users.acl": "user default off\nuser tester on >secret ~* &* +@all\n" },
    });
    assert.match(await ask(server, "PING\r\nAUTH tester secret\r\n", /OK|ERR|WRONG/), /NOAUTH[^]*OK/);
  });
}

onServer("redis")("speaks TLS with certificates of its own", async (start) => {
  const server = await start({ tls: true });
  assert.match(server.url, /^rediss:/);
  await within(5_000, "an answer over TLS", talk(server, "PING\r\n", /PONG/, true));
  assert.ok(existsSync(join(server.dir, "client.crt")));
});

onServer("redis")("a server that cannot start is an error with its log", async (start) => {
  await assert.rejects(start({ args: ["--no-such-option", "1"] }), /did not start[^]*no-such-option/i);
});
