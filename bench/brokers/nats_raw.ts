/**
 * The raw client: what somebody who knows `@nats-io/jetstream` well would write without this library.
 *
 * @module
 */
import { randomUUID } from "node:crypto";
import { AckPolicy, jetstream, jetstreamManager, type JsMsg } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import type { RawEvent } from "../support/broker.ts";
import { eventText, freshOrder, SOURCE, subjectOf, TYPE } from "../support/event.ts";

/** A connected client. */
export type Client = Awaited<ReturnType<typeof connect>>;

const WINDOW = 256;

/** Connects a client. */
export async function client(url: string): Promise<Client> {
  return await connect({ servers: url.replace("nats://", ""), noAsyncTraces: true });
}

/** Makes a stream. */
export async function makeStream(nats: Client, name: string): Promise<void> {
  const manager = await jetstreamManager(nats, { checkAPI: false });
  await manager.streams.add({ name, subjects: [`${name}.>`] });
}

/** Removes a stream. */
export async function removeStream(nats: Client, name: string): Promise<void> {
  const manager = await jetstreamManager(nats, { checkAPI: false });
  await manager.streams.delete(name).catch(() => {});
}

/** Makes a durable. */
export async function makeDurable(nats: Client, stream: string, name: string): Promise<void> {
  const manager = await jetstreamManager(nats, { checkAPI: false });
  await manager.consumers.add(stream, { durable_name: name, ack_policy: AckPolicy.Explicit, max_ack_pending: -1 });
}

/** Appends `count` events to a stream, 256 at a time. */
export async function fill(nats: Client, stream: string, count: number): Promise<void> {
  const js = jetstream(nats);
  for (let from = 0; from < count; from += WINDOW) {
    const size = Math.min(WINDOW, count - from);
    await Promise.all(
      Array.from({ length: size }, (_, at) => js.publish(`${stream}.${subjectOf(from + at)}`, eventText(from + at))),
    );
  }
}

/** Acks all but the last without waiting, as `msg.ack()` does; the last one is confirmed. */
async function settle(message: JsMsg, last: boolean): Promise<void> {
  if (last) await message.ackAck();
  else message.ack();
}

/** The loop of the documentation: `consume()` keeps 256 messages on their way, each is parsed, handled and acked. */
export async function consumeLoop(
  nats: Client,
  stream: string,
  durable: string,
  count: number,
  handle: (event: RawEvent) => void,
): Promise<void> {
  const consumer = await jetstream(nats).consumers.get(stream, durable);
  const messages = await consumer.consume({ max_messages: WINDOW });
  let done = 0;
  for await (const message of messages) {
    handle(message.json<RawEvent>());
    await settle(message, ++done === count);
    if (done === count) break;
  }
  await messages.close();
}

/** Two of these loops beside each other, each with 128 messages on their way. */
export async function twoLoops(
  nats: Client,
  stream: string,
  durable: string,
  count: number,
  handle: (event: RawEvent) => void,
): Promise<void> {
  const consumer = await jetstream(nats).consumers.get(stream, durable);
  const both = await Promise.all([1, 2].map(() => consumer.consume({ max_messages: WINDOW / 2 })));
  let done = 0;
  await Promise.all(both.map(async (messages) => {
    for await (const message of messages) {
      handle(message.json<RawEvent>());
      const last = ++done === count;
      await settle(message, last);
      if (last) { for (const one of both) one.stop(); }
    }
  }));
}

/** The text of a fresh event as somebody would write it by hand. */
function fresh(n: number): { readonly id: string; readonly text: string } {
  const id = randomUUID();
  const text = JSON.stringify({
    specversion: "1.0",
    id,
    source: SOURCE,
    type: TYPE,
    subject: subjectOf(n),
    time: new Date().toISOString(),
    datacontenttype: "application/json",
    data: freshOrder(),
  });
  return { id, text };
}

/** Publishes `count` events with a promise a message, `inFlight` at a time. */
export async function publishInFlight(nats: Client, stream: string, count: number, inFlight: number): Promise<void> {
  const js = jetstream(nats);
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) {
      const n = next++;
      const { id, text } = fresh(n);
      await js.publish(`${stream}.${subjectOf(n)}`, text, { msgID: id });
    }
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
}

/** Publishes `count` events in batches of 256, the next one when the last one is confirmed. */
export async function publishBatches(nats: Client, stream: string, count: number): Promise<void> {
  const js = jetstream(nats);
  for (let from = 0; from < count; from += WINDOW) {
    const size = Math.min(WINDOW, count - from);
    await Promise.all(Array.from({ length: size }, (_, at) => {
      const { id, text } = fresh(from + at);
      return js.publish(`${stream}.${subjectOf(from + at)}`, text, { msgID: id });
    }));
  }
}
