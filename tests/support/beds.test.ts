import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { kindOf } from "./bed/kinds.ts";
import { relativesOf } from "./bed/family.ts";
import { whyNoServer } from "./bed/server.ts";
import { type BedState, startTicksOf } from "./bed/state.ts";
import { child, isRequired, test, type TestContext, until } from "./test.ts";

/** Two kinds that need nothing in the bed's folder: one of a single process, one of many under another account. */
const NAMES = ["redis", "postgres15"] as const;
const SCRIPT = new URL("../../scripts/bed.ts", import.meta.url);

const reasons = NAMES.flatMap((name) => isRequired(name) ? [] : whyNoServer(name) ?? []);
const skip = reasons.length === 0 ? undefined : reasons.join("; ");

/** A bed in a folder of its own, driven by the command that people use. */
class Bed {
  readonly dir: string = mkdtempSync(join(tmpdir(), "xsm-beds-"));

  constructor(context: TestContext) {
    context.cleanup(async () => {
      await this.run("down");
      rmSync(this.dir, { recursive: true, force: true });
    });
  }

  async run(...args: readonly string[]): Promise<string> {
    // What the run of the tests gave to this process is not there for a bed of its own.
    const given = Object.fromEntries(NAMES.map((name) => [kindOf(name).env, ""]));
    const env = { ...given, XSM_BED_DIR: this.dir };
    const { code, stdout, stderr } = await child(SCRIPT, args, env, { timeoutMs: 60_000 }).done;
    assert.equal(code, 0, stderr);
    return stdout;
  }

  get state(): BedState {
    return JSON.parse(readFileSync(join(this.dir, "state.json"), "utf8")) as BedState;
  }

  leg(name: string): BedState["legs"][string] {
    const leg = this.state.legs[name];
    assert.ok(leg !== undefined, `${name} did not start`);
    return leg;
  }

  async answers(name: string): Promise<boolean> {
    return await kindOf(name).ready(this.leg(name).port, false);
  }
}

test("two beds that start at the same time share nothing, and the end of one is not the other's", {
  skip,
  timeoutMs: 120_000,
}, async (context) => {
  const beds = [new Bed(context), new Bed(context)] as const;
  await Promise.all(beds.map((bed) => bed.run("up", ...NAMES)));
  const legs = beds.flatMap((bed) => NAMES.map((name) => bed.leg(name)));
  assert.equal(new Set(legs.map(({ port }) => port)).size, legs.length);
  assert.equal(new Set(legs.map(({ pid }) => pid)).size, legs.length);
  for (const bed of beds) for (const name of NAMES) assert.ok(await bed.answers(name), name);

  const ended = NAMES.map((name) => beds[0].leg(name));
  assert.match(await beds[0].run("down"), /redis ended[^]*postgres15 ended/);
  for (const { pid, startTicks, dir } of ended) {
    assert.notEqual(startTicksOf(pid), startTicks);
    assert.deepEqual(relativesOf(undefined, dir), []);
    assert.equal(existsSync(dir), false);
  }
  for (const name of NAMES) assert.ok(await beds[1].answers(name), name);
});

test("a bed that is started twice at once starts each server once", { skip, timeoutMs: 120_000 }, async (context) => {
  const bed = new Bed(context);
  const outputs = await Promise.all([bed.run("up", ...NAMES), bed.run("up", ...NAMES)]);
  for (const name of NAMES) {
    const { pid } = bed.leg(name);
    for (const output of outputs) assert.match(output, new RegExp(`^${name}: .* process ${pid},`, "m"));
  }
  assert.equal(readdirSync(join(bed.dir, "xsm-data")).length, NAMES.length);
});

test("the servers of a bed outlive the command that started them, and status finds them", { skip }, async (context) => {
  const bed = new Bed(context);
  await bed.run("up", "redis");
  assert.match(await bed.run("status"), /^redis: \d+\.\d+[^]*^postgres15: not running/m);
  assert.ok(await bed.answers("redis"));
});

test("a server that somebody else ended is started anew, and nothing of the old one stays", {
  skip,
  timeoutMs: 120_000,
}, async (context) => {
  const bed = new Bed(context);
  await bed.run("up", ...NAMES);
  const { pid, dir } = bed.leg("postgres15");
  const untouched = bed.leg("redis").pid;
  process.kill(pid, "SIGKILL");
  await until(() => startTicksOf(pid) === undefined);
  assert.match(await bed.run("status"), /^postgres15: not running/m);
  await bed.run("up", ...NAMES);
  assert.ok(await bed.answers("postgres15"));
  assert.equal(bed.leg("redis").pid, untouched);
  assert.equal(existsSync(dir), false);
});

test("a leg that there is not is refused by name", async () => {
  const { code, stderr } = await child(SCRIPT, ["up", "redis", "rediss"], { XSM_BED_DIR: "/nonexistent" }).done;
  assert.equal(code, 2);
  assert.match(stderr, /no leg "rediss": use redis, /);
});
