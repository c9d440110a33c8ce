import assert from "node:assert/strict";
import { onLegs } from "../support/test.ts";
import { FAULT_KINDS } from "./faults.ts";
import { broken, LOAD, runPlan } from "./plan.ts";
import { Team } from "./team.ts";

/** The rest of the suite runs beside this: leases are longer than they need be, and a take-over may come late. */
const LEASE_MS = 1_500;
const GRACE_MS = 4_000;

onLegs(["redis", "nats"], (onEach) => {
  onEach(
    "members are killed, frozen, restarted, join and leave under load: all arrives, in order, once but for what was in flight",
    { timeoutMs: 120_000 },
    async ({ url }) => {
      const result = await runPlan({
        ...LOAD,
        team: { url, ownerLeaseMs: LEASE_MS, workMs: 100 },
        kinds: FAULT_KINDS,
        rounds: 1,
        roundsPerTeam: 1,
        seed: Date.now() % 1_000,
        perSecond: 200,
      });
      assert.deepEqual(broken(result, GRACE_MS), []);
      assert.ok(result.findings[0]!.messages > 500);
      assert.equal(result.rounds.length, 4);
      assert.ok(result.rolled >= 2, "and all members are restarted one by one");
    },
  );

  onEach(
    "no settle of a frozen owner takes effect once another has its partitions",
    { timeoutMs: 60_000 },
    async ({ url }, context) => {
      const team = new Team({ url, partitions: 4, ownerLeaseMs: LEASE_MS, workMs: 0 });
      context.cleanup(() => team.end());
      const frozen = await team.join("hold");
      await team.balanced();
      await team.put(24);
      await frozen.holds(24);
      await team.freeze(frozen);
      const owner = await team.join("hold");
      await owner.holds(24);
      const floors = await team.server.floors();
      await team.thaw(frozen);
      assert.deepEqual(await frozen.settle(), { stale: 24 });
      assert.deepEqual(await team.server.pendingByName(), { [owner.name]: 24 });
      assert.deepEqual(await team.server.floors(), floors);
      assert.deepEqual(await owner.settle(), { settled: 24 });
      assert.deepEqual(await team.server.backlog(), { pending: 0, waiting: 0 });
    },
  );
});
