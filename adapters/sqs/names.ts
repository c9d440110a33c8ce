/**
 * What queues are called.
 *
 * @module
 */
import { InvalidOptionError } from "../../core/errors.ts";

/** The queue of a topic. */
export interface QueueName {
  readonly name: string;
  /** Only where the user gave it. */
  readonly url?: string;
  readonly fifo: boolean;
  /** The standard queue that would be this topic's with `ordered: false`; only where nobody said which of the two is meant. */
  readonly standard?: string;
}

const FIFO = ".fifo";

/** Whether it is a queue's URL and not its name. */
export function isQueueUrl(text: string): boolean {
  return /^https?:\/\//.test(text) && URL.canParse(text);
}

/** Why SQS would not take it as the name of a queue; `undefined` = it does. Source: CreateQueue, `QueueName`. */
export function queueNameProblem(name: string): string | undefined {
  if (name.length > 80) return "a name has at most 80 characters, .fifo included";
  if (!/^[A-Za-z0-9_-]+(?:\.fifo)?$/.test(name)) {
    return "a name has only letters, digits, - and _, and may end in .fifo";
  }
  return undefined;
}

/**
 * The queue of a topic.
 *
 * @throws InvalidOptionError where the topic can be no queue's name, or its queue keeps no order and order is asked for.
 */
export function queueOf(
  topic: string,
  options: { readonly ordered: boolean | undefined; readonly queues: Readonly<Record<string, string>> },
): QueueName {
  const { ordered } = options;
  const given = Object.hasOwn(options.queues, topic) ? options.queues[topic]! : undefined;
  const url = given !== undefined && isQueueUrl(given) ? given : undefined;
  const appends = given === undefined && ordered !== false && !topic.endsWith(FIFO);
  const name = url === undefined ? given ?? `${topic}${appends ? FIFO : ""}` : new URL(url).pathname.split("/").pop()!;
  const problem = queueNameProblem(name);
  if (problem !== undefined) {
    throw new InvalidOptionError(`the topic cannot be the name of a queue (${problem}): name its queue in queues`, {
      details: { option: "topic" },
    });
  }
  const fifo = name.endsWith(FIFO);
  if (!fifo && ordered !== false) throw noOrder();
  return {
    name,
    fifo,
    ...(url === undefined ? {} : { url }),
    ...(appends && ordered === undefined ? { standard: topic } : {}),
  };
}

/** The queue that is there is a standard one. */
export function noOrder(): InvalidOptionError {
  return new InvalidOptionError(
    "the queue of this topic is a standard queue, which keeps no order: say ordered: false to use it as it is, " +
      "or ordered: true with a FIFO queue, whose name ends in .fifo",
    { details: { option: "ordered" } },
  );
}
