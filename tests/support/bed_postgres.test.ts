import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { kindOf } from "./bed/kinds.ts";
import { startTicksOf } from "./bed/state.ts";
import { PostgresTalk } from "./talk/postgres.ts";
import { onLegs, onServer, type TestContext, until, within } from "./test.ts";

const PORT_BY_DEFAULT = 5432;

async function talk(port: number, context: TestContext): Promise<PostgresTalk> {
  const connection = await within(5_000, "a connection", PostgresTalk.open(port));
  context.cleanup(() => connection.close());
  return connection;
}

onLegs(["postgres", "postgres15"], (legTest) => {
  legTest("answers", async ({ url }, context) => {
    const { username, password, port: given } = new URL(url);
    const port = Number(given || PORT_BY_DEFAULT);
    assert.ok(await kindOf("postgres").ready(port, false));
    // A server that a user gives may ask for more than a name.
    if (username !== "postgres" || password !== "") return;
    const connection = await talk(port, context);
    assert.deepEqual(await connection.ask("select 1 + 1, 'a'"), ["2|a"]);
  });
});

for (const [name, major] of [["postgres", 17], ["postgres15", 15]] as const) {
  const withOwn = onServer(name);

  withOwn("runs a version that is promised, under an account that is not root's", async (start, context) => {
    const server = await start();
    const connection = await talk(server.port, context);
    const [version] = await connection.ask("show server_version_num");
    assert.ok(Number(version) >= major * 10_000);
    const [folder] = await connection.ask("show data_directory");
    assert.match(folder!, /xsm-data\/postgres/);
  });

  withOwn("frozen it answers nothing, on open connections either, and goes on", async (start, context) => {
    const server = await start();
    const connection = await talk(server.port, context);
    server.pause();
    const answer = connection.ask("select 7");
    await assert.rejects(within(300, "a frozen server", answer));
    server.resume();
    assert.deepEqual(await within(5_000, "the answer", answer), ["7"]);
  });

  withOwn("a kill takes every process at once; a restart has what was committed", async (start, context) => {
    const server = await start();
    const { port, dir } = server;
    const before = await talk(port, context);
    await before.ask("create table kept (id int primary key)");
    await before.ask("insert into kept select generate_series(1, 1000)");
    const backend = Number((await before.ask("select pg_backend_pid()"))[0]);
    assert.notEqual(startTicksOf(server.pid), undefined);
    await server.kill();
    assert.equal(startTicksOf(server.pid), undefined);
    assert.equal(startTicksOf(backend), undefined);
    await server.restart();
    assert.equal(server.port, port);
    const after = await talk(port, context);
    assert.deepEqual(await after.ask("select count(*), sum(id) from kept"), ["1000|500500"]);
    await server.restart();
    const again = await talk(port, context);
    assert.deepEqual(await again.ask("select count(*) from kept"), ["1000"]);
    await server.stop();
    await server.stop();
    assert.equal(existsSync(dir), false);
    await assert.rejects(PostgresTalk.open(port));
  });

  withOwn("stops with clients connected, in order", async (start, context) => {
    const server = await start();
    const connection = await talk(server.port, context);
    await connection.ask("select 1");
    const log = () => server.log();
    let written = "";
    const watching = until(() => /database system is shut down/.test(written = log()), { timeoutMs: 20_000 });
    await server.restart();
    await watching;
    assert.doesNotMatch(written, /was not properly shut down/);
  });

  withOwn("takes rules of access from its data folder", async (start) => {
    const server = await start({ files: { "pg_hba.conf": "host all all 127.0.0.1/32 reject\n" } });
    await assert.rejects(PostgresTalk.open(server.port), /28000|pg_hba/);
  });

  withOwn("with TLS it has a certificate of the bed's own, and takes nobody without", async (start, context) => {
    const server = await start({ tls: true });
    assert.match(server.url, /sslmode=require/);
    await assert.rejects(PostgresTalk.open(server.port), /28000|pg_hba/);
    const ca = readFileSync(join(server.dir, "ca.crt"), "utf8");
    const connection = await within(5_000, "a connection over TLS", PostgresTalk.open(server.port, ca));
    context.cleanup(() => connection.close());
    assert.deepEqual(await connection.ask("select ssl from pg_stat_ssl where pid = pg_backend_pid()"), ["t"]);
  });

  withOwn("a server that cannot start is an error with its log", async (start) => {
    await assert.rejects(start({ args: ["-c", "no_such_setting=1"] }), /did not start[^]*no_such_setting/);
  });
}
