// Many events, idle polls and reconnects under one signal; prints the listeners before and after, and what was warned of.
import assert from "node:assert/strict";
import process from "node:process";
import { MemoryBroker } from "../../../adapters/memory/mod.ts";
import { RedisStreamsBroker } from "../../../adapters/redis/mod.ts";
import { countedSignal } from "../../support/counted_signal.ts";
import { startProxy } from "../../support/proxy/proxy.ts";
import { until } from "../../support/wait.ts";

const [kind, url = "redis://127.0.0.1:1", prefix = "t"] = process.argv.slice(2) as [string, string?, string?];
const [EVENTS, POLLS, CUTS] = kind === "memory" ? [10_000, 1_000, 0] : [10_000, 1_000, 50];

const warnings: string[] = [];
process.on("warning", (warning: Error) => void warnings.push(`${warning.name}: ${warning.message}`));

const proxy = kind === "memory" ? undefined : await startProxy({ port: Number(new URL(url).port) });
const common = { source: "/signals", group: "g", logger: false } as const;
const broker = kind === "memory" ? new MemoryBroker(common) : new RedisStreamsBroker({
  ...common,
  url: proxy!.url(url),
  prefix,
  isolation: kind === "redis-inline" ? "inline" : "worker",
});
const publisher = kind === "memory" ? broker : new RedisStreamsBroker({ ...common, url, prefix, isolation: "inline" });

const { signal, listeners, abort } = countedSignal();
assert.equal(listeners(), 0);

// Many events in one subscription.
for (let n = 0; n < EVENTS; n += 1_000) {
  await publisher.publishAll("orders", Array.from({ length: 1_000 }, () => ({ type: "n" })));
}
let seen = 0;
const deliverySignals: AbortSignal[] = [];
for await (const delivery of broker.subscribe("orders", { signal, idleMs: 0 })) {
  if (seen++ % 100 === 0) deliverySignals.push(delivery.signal);
  await delivery.ack();
}
assert.equal(seen, EVENTS);
assert.equal(listeners(), 0, "after the events");

// Many idle polls.
for (let n = 0; n < POLLS; n++) {
  for await (const delivery of broker.subscribe("orders", { signal, idleMs: n % 2 })) await delivery.ack();
}
assert.equal(listeners(), 0, "after the polls");

// One subscription through many reconnects.
const handled: unknown[] = [];
const reading = (async () => {
  for await (const delivery of broker.subscribe("orders", { signal })) {
    handled.push(delivery.envelope.data);
    await delivery.ack();
  }
})();
for (let n = 0; n < CUTS; n++) {
  await proxy!.cut();
  await publisher.publish("orders", { type: "n", subject: "s", data: n });
  await until(() => handled.includes(n), { timeoutMs: 10_000, what: `event ${n} after its cut` });
}
assert.ok(listeners() <= 1, `${listeners()} listeners in one subscription`);
abort();
await reading;
assert.ok(listeners() <= 0, "after the end");
assert.equal(deliverySignals.some((one) => one.aborted), false);

await Promise.all([broker.close(), publisher.close()]);
await proxy?.close();
assert.deepEqual(warnings, []);
console.log("done");
