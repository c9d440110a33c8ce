import { AuthenticationError, type EdaError, InvalidOptionError } from "../../core/errors.ts";
import type { OnChannel } from "./client.ts";
import { channelFailure, harmless, type Inequivalent, inequivalent, replyCode, unknownArgument } from "./errors.ts";
import type { ResolvedOptions } from "./resolve.ts";

type Arguments = Record<string, string | number | boolean>;

/** What a queue turned out to be. */
export interface QueueFinding {
  /** Whether it counts deliveries, as quorum queues do. */
  readonly counts: boolean;
  /** Arguments that it has otherwise than we would have declared them. */
  readonly differing: readonly string[];
}

const QUORUM_ONLY: readonly string[] = ["x-delivery-limit"];
const TYPE = "x-queue-type";
const SINGLE = "x-single-active-consumer";

/** Arguments of a queue that we make. */
export function queueArguments(options: ResolvedOptions): Arguments {
  if (options.reference) return {};
  return {
    [TYPE]: options.queueType,
    // Absent, 4.x drops what came 20 times; -1 lets 3.10 drop what came once, and puts what is given back last on 4.0.
    ...(options.queueType === "quorum" ? { "x-delivery-limit": 1_000_000 } : {}),
    ...(options.ordered ? { [SINGLE]: true } : {}),
    ...(options.deadLetterExchange === undefined ? {} : { "x-dead-letter-exchange": options.deadLetterExchange }),
    ...options.queueArguments,
  };
}

/**
 * Declares a queue. One that is there with other arguments is probed, an argument at a time, until its declaration fits what
 * it is: then it is consumed as it is, or refused by the name of the argument that does not go with the options. So the
 * server's refusals are bounded, and a queue of another's making is never declared anew.
 *
 * @throws InvalidOptionError naming the argument.
 */
export async function declareQueue(on: OnChannel, queue: string, options: ResolvedOptions): Promise<QueueFinding> {
  const wanted = queueArguments(options);
  const differing: string[] = [];
  for (let round = 0; round < 30; round++) {
    try {
      await on((channel) => channel.assertQueue(queue, { durable: true, arguments: wanted }));
      return { counts: wanted[TYPE] === "quorum", differing };
    } catch (error) {
      const unknown = unknownArgument(error);
      const found = inequivalent(error) ?? (unknown === undefined ? undefined : absent(unknown));
      if (found === undefined) {
        // Without the right to declare, what it is cannot be found out.
        if (!options.create && replyCode(error) === 403) return { counts: false, differing };
        throw refused(queue, error);
      }
      mustFit(queue, found, options);
      differing.push(found.argument);
      adapt(wanted, found);
    }
  }
  throw new InvalidOptionError(`the queue "${queue}" has arguments that could not be made out`, {
    details: { option: "topic" },
  });
}

function absent(argument: string): Inequivalent {
  return { argument, current: undefined, type: undefined };
}

function adapt(wanted: Arguments, { argument, current, type }: Inequivalent): void {
  delete wanted[argument];
  if (current !== undefined) {
    wanted[argument] = type === "bool" || current === "true" || current === "false"
      ? current === "true"
      : type === "longstr" || type === undefined || Number.isNaN(Number(current))
      ? current
      : Number(current);
  }
  if (argument === TYPE && wanted[TYPE] !== "quorum") { for (const name of QUORUM_ONLY) delete wanted[name]; }
}

function mustFit(queue: string, { argument, current }: Inequivalent, options: ResolvedOptions): void {
  const details = { option: "topic", queue, argument };
  if (argument === SINGLE && options.ordered && current !== "true") {
    throw new InvalidOptionError(
      `the queue "${queue}" is there without ${SINGLE}, so that its consumers compete and order cannot be kept: ` +
        "choose ordered: false, or delete the queue",
      { details: { ...details, option: "ordered" } },
    );
  }
  if (argument === "durable" || argument === "exclusive" || argument === "auto_delete") {
    throw new InvalidOptionError(`the queue "${queue}" is there with another ${argument}: it would lose messages`, {
      details,
    });
  }
  if (options.insisted.includes(argument)) {
    throw new InvalidOptionError(
      `the queue "${queue}" is there with another ${argument} than the options ask for: change the option, or delete the queue`,
      { details },
    );
  }
}

function refused(queue: string, error: unknown): EdaError {
  const failure = channelFailure(`declaring the queue "${queue}"`, error);
  return failure instanceof AuthenticationError || replyCode(error) !== 406 ? failure : new InvalidOptionError(
    `RabbitMQ refused the declaration of the queue "${queue}"; see cause`,
    { cause: harmless(error), details: { option: "queueArguments", queue } },
  );
}
