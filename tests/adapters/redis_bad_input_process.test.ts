import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { assertExits, onLeg, test } from "../support/test.ts";
import { SECRET } from "./redis_bad_input_rig.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

for (const isolation of ["worker", "inline"] as const) {
  onLeg("redis")(
    `${isolation}: nothing a process writes about bad input shows a password, a host or a value`,
    { timeoutMs: 60_000 },
    async ({ url }) => {
      const script = new URL("./redis_bad_input_script.ts", import.meta.url);
      const { stdout, stderr } = await assertExits(script, [url, isolation], {}, { timeoutMs: 50_000 });
      assert.match(stdout, /^18 refusals$/m);
      assert.match(stderr, /broker unavailable/, "the default logger says that something is wrong");
      assert.ok(!stdout.includes(SECRET), stdout);
      assert.ok(!stderr.includes(SECRET), stderr);
    },
  );

  test(
    `${isolation}: without the client's package, every call says which one to install, and how`,
    { timeoutMs: 60_000 },
    async (context) => {
      const dir = mkdtempSync(join(tmpdir(), "xsm-no-client-"));
      context.cleanup(() => rmSync(dir, { recursive: true, force: true }));
      for (const part of ["core", "workers", "adapters"]) {
        cpSync(join(ROOT, part), join(dir, part), { recursive: true });
      }
      // No import map and no node_modules: the bare name leads nowhere. Bun must not fetch it by itself either.
      writeFileSync(join(dir, "deno.json"), "{}");
      writeFileSync(join(dir, "package.json"), '{ "type": "module" }');
      writeFileSync(join(dir, "bunfig.toml"), readFileSync(join(ROOT, "bunfig.toml")));
      const script = join(dir, "main.ts");
      writeFileSync(script, MAIN.replace("ISOLATION", isolation));
      const { stdout } = await assertExits(script, [], {}, { cwd: dir, timeoutMs: 40_000 });
      const said = stdout.split("\n").filter((line) => line.startsWith("client-missing: "));
      assert.equal(said.length, 3, stdout);
      for (const line of said) {
        assert.match(line, /npm install ioredis/);
        assert.match(line, /deno add npm:ioredis/);
        assert.match(line, /bun add ioredis/);
      }
      assert.ok(!stdout.includes(SECRET), stdout);
    },
  );
}

/** Where the copy of the tree has the adapter. */
const ADAPTER = "./adapters/redis/mod.ts";

const MAIN = `
import { RedisStreamsBroker } from "${ADAPTER}";

const broker = new RedisStreamsBroker({
  url: "redis://:${SECRET}@127.0.0.1:1",
  isolation: "ISOLATION",
  group: "g",
  source: "/s",
  logger: false,
});
const calls = [
  () => broker.connect(),
  () => broker.publish("orders", { type: "n" }),
  () => broker.subscribe("orders")[Symbol.asyncIterator]().next(),
];
for (const call of calls) await call().catch((error) => console.log(error.code + ": " + error.message));
await broker.close();
console.log("done");
`;
