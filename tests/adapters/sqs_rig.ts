/**
 * What the tests of the SQS adapter share: an endpoint that does what a test asks of it, brokers and transports before it.
 *
 * @module
 */
import { SqsBroker, type SqsBrokerOptions } from "../../adapters/sqs/mod.ts";
import { createTransport } from "../../adapters/sqs/transport.ts";
import type { Clock } from "../../core/clock.ts";
import type { Outgoing, Raw, Transport, TransportEvents } from "../../core/transport.ts";
import { fresh, type TestContext } from "../support/test.ts";
import { SqsEndpoint } from "../support/sqs/endpoint.ts";
import type { RulesQueue } from "../support/sqs/queue.ts";
import { EMULATED } from "./sqs_harness.ts";

/** An endpoint that ends with the test. */
export async function startEndpoint(context: TestContext): Promise<SqsEndpoint> {
  const endpoint = await SqsEndpoint.start();
  context.cleanup(() => endpoint.close());
  return endpoint;
}

/** A broker of the test, closed with it. Inline, with the shortest visibility timeout. */
export function makeBroker(context: TestContext, endpoint: string, options: SqsBrokerOptions = {}): SqsBroker {
  const broker = new SqsBroker({
    ...EMULATED,
    endpoint,
    isolation: "inline",
    visibilityTimeoutMs: 2_000,
    waitMs: 1_000,
    group: "billing",
    source: "/sqs",
    logger: false,
    ...options,
  });
  context.cleanup(() => broker.close({ drainMs: 500 }));
  return broker;
}

/** A transport on its own, and what it told. */
export interface Bare {
  readonly transport: Transport;
  readonly topic: string;
  readonly queue: RulesQueue;
  readonly signals: string[];
  readonly lost: unknown[];
}

export async function makeTransport(
  context: TestContext,
  endpoint: SqsEndpoint,
  options: Parameters<typeof createTransport>[0] = {},
  clock?: Clock,
): Promise<Bare> {
  const { region, client } = EMULATED;
  const all = { region: region!, client: client!, endpoint: endpoint.url, ...options };
  const transport = await createTransport(all, clock);
  context.cleanup(() => transport.close());
  const signals: string[] = [];
  const lost: unknown[] = [];
  const events: TransportEvents = {
    ...SILENT,
    lost: (_topic, _group, natives) => void lost.push(...natives),
    signal: (name) => void signals.push(name),
  };
  await transport.open(events);
  const topic = fresh("t");
  // Finds or makes the queue.
  await transport.send(topic, []);
  return {
    transport,
    topic,
    queue: endpoint.queues.get(options.ordered === false ? topic : `${topic}.fifo`)!,
    signals,
    lost,
  };
}

/** Events that nobody listens to. */
export const SILENT: TransportEvents = {
  owned: () => {},
  revoked: () => {},
  lost: () => {},
  topic: () => {},
  lag: () => {},
  signal: () => {},
};

/** Events numbered from 0, over `subjects` subjects. */
export function outgoing(count: number, subjects: number = count): Outgoing[] {
  return Array.from({ length: count }, (_, n) => {
    const subject = `s${n % subjects}`;
    return {
      subject,
      body: JSON.stringify({ specversion: "1.0", id: `${n}`, source: "/a", type: "n", subject, data: n }),
    };
  });
}

/** What a message's data is. */
export const numberOf = (body: unknown): number => JSON.parse(String(body)).data as number;

/** Reads until `count` came. */
export async function fetchAll({ transport, topic }: Bare, count: number): Promise<Raw[]> {
  const signal = new AbortController().signal;
  const raws: Raw[] = [];
  while (raws.length < count) {
    raws.push(
      ...await transport.fetch(topic, { group: "", max: count - raws.length, window: count, waitMs: 0, signal }),
    );
  }
  return raws;
}
