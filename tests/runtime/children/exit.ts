// Does one thing with a broker and must then end by itself: `exit.ts HOW KIND [URL] [PREFIX]`.
import assert from "node:assert/strict";
import process from "node:process";
import { MemoryBroker } from "../../../adapters/memory/mod.ts";
import { RedisStreamsBroker, type RedisStreamsBrokerOptions } from "../../../adapters/redis/mod.ts";
import { until } from "../../support/wait.ts";

const [how, kind, url = "", prefix = "t"] = process.argv.slice(2) as [string, string, string?, string?];

function make(options: RedisStreamsBrokerOptions = {}): MemoryBroker | RedisStreamsBroker {
  const common = { source: "/exit", group: "g", logger: false } as const;
  if (kind === "memory") return new MemoryBroker(common);
  const isolation = kind === "redis-inline" ? "inline" : "worker";
  return new RedisStreamsBroker({ ...common, url, prefix, isolation, ...options });
}

switch (how) {
  case "publish": {
    const broker = make();
    await broker.connect();
    await broker.publish("orders", { type: "n", data: 1 });
    await broker.close();
    break;
  }
  case "consume": {
    const broker = make();
    await broker.publishAll("orders", Array.from({ length: 20 }, (_, n) => ({ type: "n", subject: "s", data: n })));
    let seen = 0;
    for await (const delivery of broker.subscribe("orders")) {
      await delivery.ack();
      if (++seen === 20) break;
    }
    await broker.close();
    break;
  }
  case "idle": {
    const broker = make();
    const waiting = broker.subscribe("orders")[Symbol.asyncIterator]().next();
    await until(() => broker.health().topics[0]?.state === "active");
    const start = performance.now();
    await broker.close();
    const tookMs = performance.now() - start;
    assert.ok(tookMs < 1_000, `closing took ${Math.round(tookMs)} ms`);
    assert.equal((await waiting).done, true);
    break;
  }
  case "held": {
    const broker = make();
    await broker.publishAll("orders", Array.from({ length: 5 }, (_, n) => ({ type: "n", subject: "s", data: n })));
    const stream = broker.subscribe("orders")[Symbol.asyncIterator]();
    const held = (await stream.next()).value!;
    await (await stream.next()).value!.retry({ delayMs: 60_000 });
    const report = await broker.close();
    assert.equal(report.released, 5);
    assert.equal(await held.ack(), "stale");
    break;
  }
  case "refused": {
    const broker = make({ url: "redis://127.0.0.1:1" });
    await assert.rejects(broker.connect());
    await assert.rejects(broker.publish("orders", { type: "n" }));
    await broker.close();
    break;
  }
  case "let-go": {
    const broker = make({ keepAlive: false });
    await broker.publish("orders", { type: "n" });
    const seen: unknown[] = [];
    for await (const delivery of broker.subscribe("orders", { idleMs: 0 })) {
      seen.push(delivery.envelope.type);
      await delivery.ack();
    }
    assert.deepEqual(seen, ["n"]);
    break;
  }
  default:
    throw new Error(`Nothing is called ${how}`);
}
console.log("done");
