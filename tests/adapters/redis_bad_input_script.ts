// Meets every kind of bad input with the default logger; the test reads what this process wrote, and looks for the secret.
import process from "node:process";
import { RedisStreamsBroker, type RedisStreamsBrokerOptions } from "../../adapters/redis/mod.ts";
import { fullText, SECRET } from "./redis_bad_input_rig.ts";

const [url, isolation] = process.argv.slice(2) as [string, "worker" | "inline"];
const secretUrl = url.replace("redis://", `redis://nobody:${SECRET}@`);
const common = { group: "g", source: "/bad", isolation, connectTimeoutMs: 1_500, callTimeoutMs: 1_500 } as const;

const cases: readonly RedisStreamsBrokerOptions[] = [
  { ...common, url: secretUrl },
  { ...common, url, client: { username: "nobody", password: SECRET } },
  { ...common, url: `redis://:${SECRET}@127.0.0.1:1` },
  { ...common, url: `redis://:${SECRET}@${SECRET}.invalid:6379` },
  { ...common, url: `redis://:${SECRET}@127.0.0.1:99999` },
];
const makers: (() => unknown)[] = [
  () => new RedisStreamsBroker({ ...common, url: SECRET }),
  () => new RedisStreamsBroker({ ...common, passwort: SECRET } as never),
  () => new RedisStreamsBroker({ ...common, client: { token: () => SECRET, lazyConnect: SECRET } }),
];

let refusals = 0;
function note(error: unknown): void {
  refusals++;
  // What a service would log of it.
  console.error(error);
  console.error(fullText(error));
}

for (const make of makers) {
  try {
    make();
  } catch (error) {
    note(error);
  }
}
for (const options of cases) {
  const broker = new RedisStreamsBroker(options);
  await broker.connect().catch(note);
  await broker.publish("orders", { type: "n", data: { password: SECRET } }).catch(note);
  await broker.subscribe("orders")[Symbol.asyncIterator]().next().catch(note);
  console.log(broker, JSON.stringify(broker.health()));
  await broker.close();
}
console.log(`${refusals} refusals`);
console.log("done");
