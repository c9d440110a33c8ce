// Ends its work in the way that the arguments say, and must then end by itself.
import assert from "node:assert/strict";
import process from "node:process";
import { FixtureBroker } from "../fixtures/fixture_broker.ts";

const [how, isolation] = process.argv.slice(2) as [string, "worker" | "inline"];

switch (how) {
  case "close": {
    const broker = new FixtureBroker({ isolation });
    const sent = await broker.publish("t", { type: "n", data: "result" });
    console.log(sent.data);
    await broker.close();
    break;
  }
  case "close-idle-subscription": {
    const broker = new FixtureBroker({ isolation });
    const waiting = broker.subscribe("t")[Symbol.asyncIterator]().next();
    await broker.connect();
    const start = performance.now();
    await broker.close();
    assert.ok(performance.now() - start < 1_000, "closing took its time");
    assert.equal((await waiting).done, true);
    break;
  }
  case "close-running-handler": {
    const broker = new FixtureBroker({ isolation });
    await broker.publishAll("t", [{ type: "n", subject: "s", data: 1 }, { type: "n", subject: "s", data: 2 }]);
    const stream = broker.subscribe("t")[Symbol.asyncIterator]();
    const delivery = (await stream.next()).value!;
    await (await stream.next()).value!.retry({ delayMs: 60_000 });
    await broker.close();
    assert.equal(delivery.signal.aborted, true);
    assert.equal(await delivery.ack(), "stale");
    assert.equal(await delivery.retry({ delayMs: 60_000 }), "stale");
    break;
  }
  case "close-while-starting": {
    const broker = new FixtureBroker({ isolation, slowStartMs: 100 });
    broker.publish("t", { type: "n" }).catch(() => {});
    await broker.close();
    break;
  }
  case "close-after-crash": {
    const broker = new FixtureBroker({ isolation, session: { beatMs: 100 } });
    await broker.publish("do-throw", { type: "n" }).catch(() => {});
    await broker.close();
    break;
  }
  case "failed-start": {
    const broker = new FixtureBroker({ isolation, failStart: "not today" });
    await assert.rejects(broker.connect());
    break;
  }
  case "let-go": {
    const broker = new FixtureBroker({ isolation, keepAlive: false });
    for (let n = 0; n < 3; n++) await broker.publish("t", { type: "n", data: n });
    console.log(broker.health().status);
    break;
  }
  case "let-go-after-crash": {
    const broker = new FixtureBroker({ isolation, keepAlive: false, session: { beatMs: 100 } });
    await broker.publish("do-throw", { type: "n" }).catch(() => {});
    break;
  }
  default:
    throw new Error(`Nothing is called ${how}`);
}
console.log("done");
