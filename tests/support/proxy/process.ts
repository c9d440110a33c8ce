/**
 * The proxy in a process of its own, for tests that block this process's thread.
 *
 * @module
 */
import { type Child, child } from "../child.ts";
import { type Direction, type Proxy, type ProxyCounts, type ProxyOptions, throughPort } from "./proxy.ts";

/** One order to the proxy's process, one line of JSON. */
export interface Order {
  readonly id: number;
  readonly call:
    | "cut"
    | "cutAfter"
    | "refuse"
    | "accept"
    | "blackHole"
    | "delay"
    | "slow"
    | "heal"
    | "counts"
    | "arrivals";
  readonly args: readonly (string | number)[];
}

/** Its answer, one line of JSON. */
export interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

/** How long the process may run; a test that forgets to close it does not leave it behind. */
const LIFE_MS = 300_000;

/** Starts a proxy in a process of its own, on the runtime of this one. */
export async function startProxyProcess(options: ProxyOptions): Promise<Proxy> {
  const script = new URL("./process_main.ts", import.meta.url);
  const running = child(script, [JSON.stringify(options)], {}, { timeoutMs: LIFE_MS });
  const line = await running.output(/port (\d+)\n/, 20_000);
  return new RemoteProxy(running, Number(line.slice(5)));
}

class RemoteProxy implements Proxy {
  readonly port: number;
  readonly #child: Child;
  #orders = 0;

  constructor(running: Child, port: number) {
    this.#child = running;
    this.port = port;
  }

  url(serverUrl: string): string {
    return throughPort(serverUrl, this.port);
  }

  async cut(): Promise<void> {
    await this.#order("cut");
  }

  async cutAfter(bytes: number, direction: "up" | "down"): Promise<void> {
    await this.#order("cutAfter", bytes, direction);
  }

  async refuse(): Promise<void> {
    await this.#order("refuse");
  }

  async accept(): Promise<void> {
    await this.#order("accept");
  }

  async blackHole(direction: Direction = "both"): Promise<void> {
    await this.#order("blackHole", direction);
  }

  async delay(ms: number, direction: Direction = "both"): Promise<void> {
    await this.#order("delay", ms, direction);
  }

  async slow(bytesPerSecond: number, direction: Direction = "both"): Promise<void> {
    await this.#order("slow", bytesPerSecond, direction);
  }

  async heal(): Promise<void> {
    await this.#order("heal");
  }

  async counts(): Promise<ProxyCounts> {
    return await this.#order("counts") as ProxyCounts;
  }

  async arrivals(total: number): Promise<void> {
    await this.#order("arrivals", total);
  }

  async close(): Promise<void> {
    this.#child.end();
    await this.#child.done;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #order(call: Order["call"], ...args: (string | number)[]): Promise<unknown> {
    const order: Order = { id: ++this.#orders, call, args };
    this.#child.write(`${JSON.stringify(order)}\n`);
    const line = await this.#child.output(new RegExp(`^\\{"id":${order.id},.*\\}$`, "m"), LIFE_MS);
    const { value, error } = JSON.parse(line) as Answer;
    if (error !== undefined) throw new Error(error);
    return value;
  }
}
