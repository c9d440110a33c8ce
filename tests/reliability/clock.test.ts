import assert from "node:assert/strict";
import { onLeg, until } from "../support/test.ts";
import {
  admin,
  bodies,
  bodiesOf,
  names,
  openTransport,
  pendingOf,
  publish,
  Reader,
} from "../adapters/redis_support.ts";
import { SleepyClock } from "./sleepy_clock.ts";

const LEASE_MS = 900;
const HOUR_MS = 3_600_000;

const onRedis = onLeg("redis");

onRedis("a member whose clock jumps an hour either way neither steals nor loses", async ({ url }, context) => {
  const n = names();
  const options = { url, prefix: n.prefix, ownerLeaseMs: LEASE_MS };
  const clocks = [new SleepyClock(), new SleepyClock()];
  const owner = await openTransport(context, options, clocks[0]);
  const standby = await openTransport(context, options, clocks[1]);
  const reader = new Reader(owner.transport, n.topic, n.group);
  const waiting = new Reader(standby.transport, n.topic, n.group);
  await publish(owner.transport, n.topic, bodies(1, 6), "a");
  const held = await reader.take(2, 5_000, 2);
  assert.deepEqual(await waiting.fetch(0), []);
  for (const offset of [HOUR_MS, -HOUR_MS, 0]) {
    for (const clock of clocks) clock.wallOffset = offset;
    const renewals = owner.listener.count("owned");
    await until(() => owner.listener.count("owned") >= renewals + 4, { what: "more than a lease of renewals" });
    assert.deepEqual(await waiting.fetch(100), []);
  }
  for (const { listener } of [owner, standby]) assert.equal(listener.count("revoked"), 0);
  assert.equal(standby.listener.count("owned"), 0);
  assert.deepEqual(await reader.ack(held), ["settled", "settled"]);
  assert.deepEqual(bodiesOf(await reader.take(4)), bodies(3, 6));
});

onRedis(
  "a suspended machine finds its partitions taken over: it settles and reads nothing",
  async ({ url }, context) => {
    const n = names();
    const options = { url, prefix: n.prefix, ownerLeaseMs: LEASE_MS };
    const client = await admin(context, url);
    const clock = new SleepyClock();
    context.cleanup(() => clock.wake());
    const sleeper = await openTransport(context, options, clock);
    const other = await openTransport(context, options);
    const reader = new Reader(sleeper.transport, n.topic, n.group);
    const next = new Reader(other.transport, n.topic, n.group);
    await publish(other.transport, n.topic, bodies(1, 6), "a");
    const held = await reader.take(4, 5_000, 4);
    clock.sleep();
    const taken = await next.take(6);
    clock.wake();
    // By its own clock hardly any time went by: only the server knows better.
    assert.deepEqual(await reader.ack(held.slice(0, 2)), ["stale", "stale"]);
    assert.deepEqual(await reader.fetch(200), []);
    assert.equal(sleeper.listener.count("revoked"), 1);
    assert.equal(await pendingOf(client, n.stream, n.group), 6);
    assert.deepEqual(bodiesOf(taken), bodies(1, 6));
    assert.ok((await next.ack(taken)).every((outcome) => outcome === "settled"));
  },
);

onRedis("a suspended machine that nobody replaced goes on where it was", async ({ url }, context) => {
  const n = names();
  const client = await admin(context, url);
  const clock = new SleepyClock();
  context.cleanup(() => clock.wake());
  const sleeper = await openTransport(context, { url, prefix: n.prefix, ownerLeaseMs: LEASE_MS }, clock);
  const reader = new Reader(sleeper.transport, n.topic, n.group);
  await publish(sleeper.transport, n.topic, bodies(1, 6), "a");
  const held = await reader.take(4, 5_000, 4);
  clock.sleep();
  await until(async () => await client.call("EXISTS", n.owner) === 0, { what: "its lease to end at the server" });
  clock.wake();
  assert.ok((await reader.ack(held)).every((outcome) => outcome === "settled"));
  const rest = await reader.take(2);
  assert.deepEqual(bodiesOf(rest), ["m5", "m6"]);
  await reader.ack(rest);
  assert.equal(await pendingOf(client, n.stream, n.group), 0);
  assert.equal(sleeper.listener.count("revoked"), 0);
});
