/**
 * The script of a proxy's own process: orders come on standard input, answers go to standard output, and it ends with
 * its input.
 *
 * @module
 */
import process from "node:process";
import { createInterface } from "node:readline";
import type { Answer, Order } from "./process.ts";
import { type Proxy, type ProxyOptions, startProxy } from "./proxy.ts";

const say = (line: string): void => void process.stdout.write(`${line}\n`);

const proxy = await startProxy(JSON.parse(process.argv[2] ?? "{}") as ProxyOptions);
say(`port ${proxy.port}`);

const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const { id, call, args } = JSON.parse(line) as Order;
  const method = proxy[call] as (this: Proxy, ...args: readonly (string | number)[]) => Promise<unknown>;
  method.call(proxy, ...args).then(
    (value) => answer({ id, value: value ?? null }),
    (error) => answer({ id, error: String(error) }),
  );
});
lines.on("close", () => void proxy.close());

function answer(value: Answer): void {
  say(JSON.stringify(value));
}
