/**
 * What time does to members: one that sleeps for a minute, one whose clock jumps.
 *
 * @module
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../support/test.ts";
import { LOAD, type PlanResult } from "./plan.ts";
import { Team } from "./team.ts";

const MINUTE_MS = 60_000;

/** One of three members is stopped for a minute, four times the usual lease, and goes on. */
export async function sleepAMinute(url: string, perSecond: number): Promise<PlanResult> {
  const ownerLeaseMs = 15_000;
  const team = new Team({ url, ownerLeaseMs, workMs: 150 });
  try {
    for (let n = 0; n < 3; n++) await team.join();
    await team.publish({ ...LOAD, perSecond });
    await team.balanced();
    const sleeper = [...team.members.values()][0]!;
    const busy = async (): Promise<boolean> => ((await team.server.pendingByName())[sleeper.name] ?? 0) >= 5;
    await until(busy, { what: "the member to have something in hand" });
    const owned = (await team.server.owners()).flatMap((owner, at) => owner === sleeper.name ? [at] : []);
    await team.freeze(sleeper);
    const from = performance.now();
    const limitMs = ownerLeaseMs + 1_000;
    await team.takenOver(owned, sleeper.name, limitMs + 5_000);
    const takeOverMs = performance.now() - from;
    await new Promise((resolve) => setTimeout(resolve, MINUTE_MS - takeOverMs));
    await team.thaw(sleeper);
    const balancedMs = await team.balanced();
    const findings = [await team.finish()];
    return { rounds: [{ kind: "freeze", takeOverMs, limitMs, balancedMs }], findings, rolled: 0 };
  } finally {
    await team.end();
  }
}

/** Where Debian's package libfaketime puts its library for programs with threads. */
const FAKETIME = ["x86_64", "aarch64"].map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketimeMT.so.1`);
/** How long a clock stays wrong: several leases. */
const WRONG_MS = 4_000;

/** The wall clock of one of three members jumps an hour ahead, two hours back, and right again. Nothing may move. */
export async function jumpAnHour(url: string, perSecond: number): Promise<PlanResult> {
  const library = FAKETIME.find((path) => existsSync(path));
  if (library === undefined) {
    console.log("SKIPPED: it takes libfaketime (Debian: apt-get install libfaketime)");
    return { rounds: [], findings: [], rolled: 0 };
  }
  const folder = mkdtempSync(join(tmpdir(), "xsm-clock-"));
  const file = join(folder, "offset");
  const set = (offset: string): void => writeFileSync(file, `${offset}\n`);
  set("+0");
  const env = {
    LD_PRELOAD: library,
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: "1",
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
  };
  const team = new Team({ url, workMs: 150 });
  try {
    const jumper = await team.join("settle", env);
    for (let n = 0; n < 2; n++) await team.join();
    await team.publish({ ...LOAD, perSecond });
    await team.balanced();
    const before = (await team.server.owners()).join();
    for (const offset of ["+1h", "-1h", "+0"]) {
      set(offset);
      const end = performance.now() + WRONG_MS;
      while (performance.now() < end) {
        const owners = (await team.server.owners()).join();
        if (owners !== before) throw new Error(`at ${offset} the owners ${before} became ${owners}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      const wall = (await jumper.wallClock() - Date.now()) / 3_600_000;
      console.log(`     its clock is ${wall.toFixed(2)} hours ahead, and nothing moved`);
    }
    return { rounds: [], findings: [await team.finish()], rolled: 0 };
  } finally {
    await team.end();
    rmSync(folder, { recursive: true, force: true });
  }
}
