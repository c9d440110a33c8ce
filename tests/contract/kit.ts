/**
 * What the contract's cases are written with. Runner-neutral: a case is a name and a function.
 *
 * @module
 */
import type { BrokerOptions } from "../../core/broker_options.ts";
import type { BrokerAdapter, Delivery, SubscribeOptions } from "../../core/contract.ts";

/** Broker options a case may ask for; the harness adds address, isolation and whatever its broker needs. */
export type CaseOptions = Omit<BrokerOptions, "clock"> & { readonly ordered?: boolean };

/** Faults a harness can make between its brokers and the server. */
export interface Faults {
  /** Ends every connection now and refuses new ones. */
  down(): Promise<void> | void;
  /** Lets connections through again. */
  up(): Promise<void> | void;
  /** Ends every connection once; new ones go through. */
  cut(): Promise<void> | void;
  /** Connections stay open and nothing passes. */
  blackHole(): Promise<void> | void;
}

/** One adapter, with a real server behind it. */
export interface Harness {
  /** `redis inline`, `memory`, … */
  readonly name: string;
  /** A broker object on the same server; the suite closes it. `group` is preset to one per case. */
  broker(options: CaseOptions): BrokerAdapter;
  /** The same, through the fault switch. */
  faultyBroker?(options: CaseOptions): BrokerAdapter;
  readonly faults?: Faults;
  /** Puts bytes on a topic past the library. */
  raw?(topic: string, bytes: Uint8Array): Promise<void>;
  /** What the server itself counts as delivered and unsettled. */
  inFlight?(topic: string, group: string): Promise<number>;
  /** `none`: members compete message by message, so only loss is checked across them. Default `subject`. */
  readonly ordering?: "subject" | "none";
  /** Whether the server ties messages to the connection, so that they are another's as soon as it is lost. Default false. */
  readonly connectionBound?: boolean;
  /** `false`: a topic has one group, so nothing is asked about a second one. Default true. */
  readonly groups?: boolean;
  /** Most messages of one subject that the server hands out before one is settled. Default: as many as there are. */
  readonly inFlightPerSubject?: number;
  /** Whether even a single consumer gets messages in any order. Default false. */
  readonly scattered?: boolean;
  /** Whether a message of these bytes can be on a topic at all. Default: any can. */
  carries?(bytes: Uint8Array): boolean;
  /** How long a take-over after an orderly close may take, ms. Default 1,000. */
  readonly takeOverMs?: number;
}

/** One promise, or one side of it. */
export interface ContractCase {
  /** States the promise; begins with its number. */
  readonly name: string;
  readonly timeoutMs?: number;
  /** Why it cannot run on this harness; undefined = it runs. */
  readonly skip?: string;
  run(): Promise<void>;
}

let counter = 0;

/** Everything a running case uses; closes its brokers at the end. */
export class Case {
  readonly harness: Harness;
  readonly topic: string;
  readonly group: string;
  readonly #brokers: BrokerAdapter[] = [];

  constructor(harness: Harness) {
    this.harness = harness;
    const tag = `${Date.now().toString(36)}${Math.floor(Math.random() * 1e9).toString(36)}${counter++}`;
    this.topic = `t-${tag}`;
    this.group = `g-${tag}`;
  }

  /** A broker of this case's group. */
  broker(options: CaseOptions = {}): BrokerAdapter {
    const broker = this.harness.broker({ group: this.group, source: "/contract", logger: false, ...options });
    this.#brokers.push(broker);
    return broker;
  }

  /** A broker behind the fault switch. */
  faultyBroker(options: CaseOptions = {}): BrokerAdapter {
    const broker = this.harness.faultyBroker!({ group: this.group, source: "/contract", logger: false, ...options });
    this.#brokers.push(broker);
    return broker;
  }

  /** Publishes `count` numbered events over `subjects` subjects, in order. */
  async fill(broker: BrokerAdapter, count: number, subjects: number = 1): Promise<void> {
    const messages = Array.from({ length: count }, (_, n) => ({
      type: "n",
      subject: `s${n % subjects}`,
      data: n,
    }));
    await broker.publishAll(this.topic, messages);
  }

  /** Reads and acks until the stream ends; answers the data of each. */
  async drain(broker: BrokerAdapter, options: SubscribeOptions = { idleMs: 0 }): Promise<unknown[]> {
    const seen: unknown[] = [];
    for await (const delivery of broker.subscribe(this.topic, options)) {
      seen.push(delivery.envelope.data);
      await delivery.ack({ confirm: true });
    }
    return seen;
  }

  /** The next `count` deliveries, unsettled; ends the subscription behind them. */
  async take(broker: BrokerAdapter, count: number, options: SubscribeOptions = {}): Promise<Delivery[]> {
    const taken: Delivery[] = [];
    if (count === 0) return taken;
    for await (const delivery of broker.subscribe(this.topic, options)) {
      taken.push(delivery);
      if (taken.length === count) break;
    }
    return taken;
  }

  /** Closes everything. */
  async end(): Promise<void> {
    await Promise.all(this.#brokers.map((broker) => broker.close({ drainMs: 1_000 })));
  }
}

/** Makes a case of a body. */
export function contractCase(
  harness: Harness,
  name: string,
  run: (c: Case) => Promise<void>,
  options: { readonly timeoutMs?: number; readonly skip?: string | undefined } = {},
): ContractCase {
  return {
    name: `${harness.name}: ${name}`,
    ...(options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
    ...(options.skip === undefined ? {} : { skip: options.skip }),
    run: async () => {
      const c = new Case(harness);
      try {
        await run(c);
      } finally {
        await c.end();
      }
    },
  };
}

/** Why a case that holds several messages of one subject cannot run on this harness; undefined = it can. */
export function severalOfOneSubject({ inFlightPerSubject = Infinity }: Harness): string | undefined {
  return inFlightPerSubject > 2 ? undefined : `the server hands out ${inFlightPerSubject} of a subject at a time`;
}

/** Numbers as they came; in their order where they may come in any. */
export function asTheyCame(harness: Harness, numbers: readonly number[]): number[] {
  return harness.scattered === true ? [...numbers].sort((a, b) => a - b) : [...numbers];
}

/** Resolves after `ms` real milliseconds: for holding a fault, never for guessing when something is done. */
export function hold(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Waits until `check` answers true; fails after `ms`. */
export async function eventually(
  what: string,
  check: () => boolean | Promise<boolean>,
  ms: number = 10_000,
): Promise<void> {
  const until = performance.now() + ms;
  while (!(await check())) {
    if (performance.now() > until) throw new Error(`not within ${ms} ms: ${what}`);
    await hold(10);
  }
}
