// Waits for one event with nothing else to do, and prints how long it took to come.
import { FixtureBroker } from "../fixtures/fixture_broker.ts";

const broker = new FixtureBroker();
const next = broker.subscribe("t")[Symbol.asyncIterator]().next();
await broker.connect();
console.log("idle");
setTimeout(() => {
  const start = performance.now();
  void broker.publish("t", { type: "n" });
  void next.then(async ({ value }) => {
    console.log(`came after ${Math.round(performance.now() - start)} ms`);
    await value!.ack();
    await broker.close();
    console.log("done");
  });
}, 5_000);
