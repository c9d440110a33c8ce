// Opens a broker, reads, and closes it, fifty times; nothing may be left that keeps the process.
import process from "node:process";
import { NatsJetStreamBroker } from "../../adapters/nats/mod.ts";

const url = process.argv[2]!;
const topic = `t-${process.pid}-${Date.now().toString(36)}`;
for (let cycle = 0; cycle < 50; cycle++) {
  const ordered = cycle % 2 === 0;
  const broker = new NatsJetStreamBroker({
    url,
    ordered,
    isolation: "inline",
    group: "g",
    source: "/s",
    logger: false,
  });
  const stream = broker.subscribe(topic)[Symbol.asyncIterator]();
  const waiting = stream.next();
  await broker.publish(topic, { type: "n", data: cycle });
  await (await waiting).value?.ack();
  const next = stream.next();
  await broker.close({ drainMs: 500 });
  // The other mode's durable had messages of its own; what counts is that the iterator ends.
  if (!(await next).done && !(await stream.next()).done) throw new Error("a closed broker goes on");
}
console.log("done");
