/**
 * The raw client: what somebody who knows amqplib well would write without this library.
 *
 * @module
 */
import { connect } from "amqplib";
import { Buffer } from "node:buffer";
import { randomUUID } from "node:crypto";
import type { RawEvent } from "../support/broker.ts";
import { eventText, freshOrder, SOURCE, subjectOf, TYPE } from "../support/event.ts";

/** A connected client. */
export type Client = Awaited<ReturnType<typeof connect>>;

/** Connects a client. */
export async function client(url: string): Promise<Client> {
  const connection = await connect(url, { noDelay: true });
  // While the server is away on purpose.
  connection.on("error", () => {});
  return connection;
}

const CONTENT_TYPE = "application/cloudevents+json; charset=UTF-8";
const WINDOW = 256;

/** Runs `use` on a channel with confirms. */
export async function onChannel<T>(
  connection: Client,
  use: (channel: Awaited<ReturnType<Client["createConfirmChannel"]>>) => Promise<T>,
): Promise<T> {
  const channel = await connection.createConfirmChannel();
  channel.on("error", () => {});
  try {
    return await use(channel);
  } finally {
    await channel.close();
  }
}

/** Puts `count` events into a queue. */
export async function fill(connection: Client, queue: string, count: number): Promise<void> {
  await onChannel(connection, async (channel) => {
    for (let at = 0; at < count; at += 1_000) {
      for (let n = at; n < Math.min(count, at + 1_000); n++) {
        channel.sendToQueue(queue, Buffer.from(eventText(n)), {
          persistent: true,
          contentType: CONTENT_TYPE,
          headers: { ce_subject: subjectOf(n) },
        });
      }
      await channel.waitForConfirms();
    }
  });
}

/** Consumes with a window of 256 and acknowledges each message, or every `batch`th with all before it. */
export async function loop(
  connection: Client,
  queue: string,
  count: number,
  handle: (event: RawEvent) => void,
  batch: number,
): Promise<void> {
  await onChannel(connection, async (channel) => {
    await channel.prefetch(WINDOW);
    let done = 0;
    await new Promise<void>((resolve, reject) => {
      channel.consume(queue, (message) => {
        if (message === null || done >= count) return;
        handle(JSON.parse(message.content.toString("utf8")) as RawEvent);
        done++;
        if (done % batch === 0 || done === count) channel.ack(message, batch > 1);
        if (done === count) resolve();
      }).catch(reject);
    });
    // An answer behind the last acknowledgement.
    await channel.prefetch(WINDOW);
  });
}

/** The text of a fresh event as somebody would write it by hand. */
function freshText(n: number, id: string): string {
  return JSON.stringify({
    specversion: "1.0",
    id,
    source: SOURCE,
    type: TYPE,
    subject: subjectOf(n),
    time: new Date().toISOString(),
    datacontenttype: "application/json",
    data: freshOrder(),
  });
}

/** Publishes `count` events to an exchange, `inFlight` at a time, each with a promise of its own. */
export async function publishOneByOne(
  connection: Client,
  exchange: string,
  count: number,
  inFlight: number,
): Promise<void> {
  await onChannel(connection, async (channel) => {
    let next = 0;
    const lane = async (): Promise<void> => {
      while (next < count) {
        const n = next++;
        const id = randomUUID();
        await new Promise<void>((resolve, reject) => {
          channel.publish(
            exchange,
            subjectOf(n),
            Buffer.from(freshText(n, id)),
            {
              persistent: true,
              mandatory: true,
              contentType: CONTENT_TYPE,
              messageId: id,
              type: TYPE,
              headers: { ce_subject: subjectOf(n) },
            },
            (error: unknown) => error === null ? resolve() : reject(error),
          );
        });
      }
    };
    await Promise.all(Array.from({ length: inFlight }, lane));
  });
}

/** Publishes `count` events in rounds of `size`, waiting for the confirmations of a round together. */
export async function publishRounds(connection: Client, exchange: string, count: number, size: number): Promise<void> {
  await onChannel(connection, async (channel) => {
    for (let at = 0; at < count; at += size) {
      for (let n = at; n < Math.min(count, at + size); n++) {
        const id = randomUUID();
        channel.publish(exchange, subjectOf(n), Buffer.from(freshText(n, id)), {
          persistent: true,
          mandatory: true,
          contentType: CONTENT_TYPE,
          messageId: id,
          type: TYPE,
          headers: { ce_subject: subjectOf(n) },
        });
      }
      await channel.waitForConfirms();
    }
  });
}
