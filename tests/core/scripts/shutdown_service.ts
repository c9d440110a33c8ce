// A service over the fake broker. Arguments: how long a handler takes (ms, or "forever"), how long it drains (ms).
import { InboundDispatcher } from "../../../core/dispatch/dispatcher.ts";
import { shutdownSignal } from "../../../core/dispatch/shutdown.ts";
import process from "node:process";
import { FakeBroker } from "../../support/fake_broker.ts";

const [takes = "0", drainMs = "1000", mode = "signal"] = process.argv.slice(2);
const broker = new FakeBroker();
const app = new InboundDispatcher({
  broker,
  drainMs: Number(drainMs),
  logger: false,
  routes: {
    "n.step": () => {
      console.log("started");
      return takes === "forever" ? new Promise(() => {}) : new Promise((resolve) => setTimeout(resolve, Number(takes)));
    },
  },
});
broker.deliver("t", { type: "n.step", subject: "s" });
// Something that keeps the process alive, as sockets do.
const alive = setInterval(() => {}, 1_000);
if (mode === "none") {
  await app.run(["t"]);
} else {
  const signal = shutdownSignal();
  const report = await app.run(["t"], { signal });
  console.log(
    JSON.stringify({ processed: report.processed, released: report.released, settled: broker.settled.length }),
  );
  if (mode === "dispose") {
    signal[Symbol.dispose]();
    console.log("disposed");
    await new Promise((resolve) => setTimeout(resolve, 10_000));
  }
}
clearInterval(alive);
