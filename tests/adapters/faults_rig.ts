/**
 * What the tests of consumers under faults share: consumers in this process and in processes of their own.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { BrokerAdapter, Delivery } from "../../core/contract.ts";
import { type Child, child, type TestContext, until } from "../support/test.ts";
import type { ConsumerLine, ConsumerPlan } from "./faults_consumer.ts";

export const TOPIC = "orders";
export const GROUP = "billing";

/** Events numbered `from` … `to - 1`, over `subjects` subjects. */
export function events(from: number, to: number, subjects = 5): { type: string; subject: string; data: number }[] {
  return Array.from({ length: to - from }, (_, at) => ({
    type: "n",
    subject: `s${(from + at) % subjects}`,
    data: from + at,
  }));
}

/** Reads a topic in this process until the test ends, acks everything, and remembers when what came. */
export class Collector {
  readonly got: { readonly n: number; readonly attempt: number; readonly at: number }[] = [];
  readonly done: Promise<void>;
  readonly #stop = new AbortController();

  constructor(
    context: TestContext,
    broker: BrokerAdapter,
    handle?: (delivery: Delivery) => unknown,
    topic: string = TOPIC,
  ) {
    this.done = this.#read(broker, topic, handle ?? ((delivery) => delivery.ack({ confirm: true })));
    this.done.catch(() => {});
    context.cleanup(() => this.stop());
  }

  async #read(broker: BrokerAdapter, topic: string, handle: (delivery: Delivery) => unknown): Promise<void> {
    for await (const delivery of broker.subscribe(topic, { signal: this.#stop.signal })) {
      this.got.push({ n: delivery.envelope.data as number, attempt: delivery.attempt, at: performance.now() });
      try {
        await handle(delivery);
      } catch {
        // Its settle was cut off; it comes again.
      }
    }
  }

  get numbers(): number[] {
    return this.got.map(({ n }) => n);
  }

  /** Resolves when each of these numbers came at least once. */
  async has(numbers: Iterable<number>, timeoutMs = 15_000): Promise<void> {
    const wanted = [...numbers];
    await until(() => wanted.every((n) => this.numbers.includes(n)), { timeoutMs, what: `events ${wanted.join(" ")}` });
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.done;
  }
}

/** A consumer in a process of its own; killed with the test. */
export class Consumer {
  readonly child: Child;

  /** @param script Calls `consume` with its kind of broker. */
  constructor(context: TestContext, script: URL, plan: Omit<ConsumerPlan, "topic"> & { readonly topic?: string }) {
    const full: ConsumerPlan = { topic: TOPIC, ...plan, broker: { group: GROUP, ...plan.broker } };
    this.child = child(script, [JSON.stringify(full)], {}, { timeoutMs: 60_000 });
    context.cleanup(async () => {
      this.child.kill("SIGKILL");
      await this.child.done;
    });
  }

  /** Everything it said so far. */
  get lines(): ConsumerLine[] {
    const whole = this.child.stdout.split("\n").slice(0, -1);
    return whole.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line) as ConsumerLine);
  }

  get got(): number[] {
    return this.lines.flatMap((line) => line.what === "got" ? [line.n] : []);
  }

  /** Resolves with the first line that fits. */
  async said<L extends ConsumerLine>(fits: (line: ConsumerLine) => line is L, timeoutMs?: number): Promise<L>;
  async said(fits: (line: ConsumerLine) => boolean, timeoutMs?: number): Promise<ConsumerLine>;
  async said(fits: (line: ConsumerLine) => boolean, timeoutMs = 15_000): Promise<ConsumerLine> {
    try {
      return await until(() => this.lines.find(fits), { timeoutMs });
    } catch (cause) {
      throw new Error(`The consumer said only\n${this.child.stdout}\n${this.child.stderr}`, { cause });
    }
  }

  /** Asks it to close, and resolves with its counters when it has ended by itself. */
  async close(): Promise<Readonly<Record<string, number>>> {
    this.child.kill("SIGTERM");
    const end = await this.said((line) => line.what === "end") as Extract<ConsumerLine, { what: "end" }>;
    const { code, stderr } = await this.child.done;
    assert.equal(code, 0, stderr);
    return end.counters;
  }
}

/** Each subject's numbers came in order, looking at the first time that each came. */
export function assertFirstInOrder(sequence: readonly number[], subjects = 5): void {
  const first = [...new Set(sequence)];
  for (let s = 0; s < subjects; s++) {
    const lane = first.filter((n) => n % subjects === s);
    assert.deepEqual(lane, [...lane].sort((a, b) => a - b), `subject s${s} is in order`);
  }
}
