/**
 * The raw client: what somebody who knows the SDK well would write without this library.
 *
 * @module
 */
import { randomUUID } from "node:crypto";
import {
  CreateQueueCommand,
  DeleteMessageBatchCommand,
  DeleteQueueCommand,
  type Message,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  SendMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import type { RawEvent } from "../support/broker.ts";
import { eventText, freshText, subjectOf, TYPE } from "../support/event.ts";

/** What SQS takes or brings in one call. */
const BATCH = 10;

/** How the emulator is reached. */
export const ACCESS = { region: "us-east-1", credentials: { accessKeyId: "bench", secretAccessKey: "bench" } };

/** Makes a client. */
export function client(endpoint: string): SQSClient {
  return new SQSClient({ ...ACCESS, endpoint });
}

/** Makes a FIFO or a standard queue; answers its URL. */
export async function makeQueue(sqs: SQSClient, name: string): Promise<string> {
  const fifo = name.endsWith(".fifo");
  const Attributes = fifo
    ? { FifoQueue: "true", DeduplicationScope: "messageGroup", FifoThroughputLimit: "perMessageGroupId" }
    : undefined;
  return (await sqs.send(new CreateQueueCommand({ QueueName: name, Attributes }))).QueueUrl!;
}

/** Removes a queue. */
export async function dropQueue(sqs: SQSClient, url: string): Promise<void> {
  await sqs.send(new DeleteQueueCommand({ QueueUrl: url }));
}

const isFifo = (url: string): boolean => url.endsWith(".fifo");

function entry(url: string, at: number, n: number, text: string) {
  return {
    Id: String(at),
    MessageBody: text,
    MessageAttributes: { ce_type: { DataType: "String", StringValue: TYPE } },
    ...(isFifo(url) ? { MessageGroupId: subjectOf(n), MessageDeduplicationId: randomUUID() } : {}),
  };
}

async function sendBatch(
  sqs: SQSClient,
  url: string,
  ns: readonly number[],
  text: (n: number) => string,
): Promise<void> {
  const Entries = ns.map((n, at) => entry(url, at, n, text(n)));
  const { Failed = [] } = await sqs.send(new SendMessageBatchCommand({ QueueUrl: url, Entries }));
  if (Failed.length > 0) throw new Error(`${Failed.length} of a batch failed`);
}

const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, at) => from + at);

/** Puts `count` events on a queue, eight batches at a time; each subject's stay in order. */
export async function fill(sqs: SQSClient, url: string, count: number): Promise<void> {
  for (let from = 0; from < count; from += 8 * BATCH) {
    const lanes = range(0, 8).map((lane) => from + lane * BATCH).filter((at) => at < count);
    await Promise.all(lanes.map((at) => sendBatch(sqs, url, range(at, Math.min(at + BATCH, count)), eventText)));
  }
}

/** Publishes one event. */
export async function sendOne(sqs: SQSClient, url: string, n: number): Promise<void> {
  await sendBatch(sqs, url, [n], eventText);
}

/**
 * Reads, handles and deletes in batches of ten: `lanes` loops, each with one call at a time. Resolves when `count` messages are
 * deleted.
 */
export async function loop(
  sqs: SQSClient,
  url: string,
  count: number,
  lanes: number,
  handle: (event: RawEvent) => void,
): Promise<void> {
  let done = 0;
  const lane = async (): Promise<void> => {
    let deleting: Promise<unknown> = Promise.resolve();
    while (done < count) {
      const receive = new ReceiveMessageCommand({ QueueUrl: url, MaxNumberOfMessages: BATCH, WaitTimeSeconds: 0 });
      const { Messages = [] } = await sqs.send(receive);
      if (Messages.length === 0) continue;
      for (const message of Messages) handle(JSON.parse(message.Body!) as RawEvent);
      done += Messages.length;
      await deleting;
      deleting = remove(sqs, url, Messages);
    }
    await deleting;
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

async function remove(sqs: SQSClient, url: string, messages: readonly Message[]): Promise<void> {
  const Entries = messages.map(({ ReceiptHandle }, at) => ({ Id: String(at), ReceiptHandle }));
  await sqs.send(new DeleteMessageBatchCommand({ QueueUrl: url, Entries }));
}

/** Publishes `count` events, `inFlight` at a time, one call and one promise each. */
export async function publishOneByOne(sqs: SQSClient, url: string, count: number, inFlight: number): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) {
      const n = next++;
      const { Id: _, ...message } = entry(url, 0, n, freshText(n));
      await sqs.send(new SendMessageCommand({ QueueUrl: url, ...message }));
    }
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
}

/** Publishes `count` events in batches of ten, `lanes` batches at a time. */
export async function publishBatches(sqs: SQSClient, url: string, count: number, lanes: number): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) {
      const from = next;
      next = Math.min(count, next + BATCH);
      await sendBatch(sqs, url, range(from, next), freshText);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}
