/**
 * Errors of the client and closes of the server as our errors. The client's own texts quote users and hosts: what goes on as
 * a cause is rebuilt from the reply's number and name, or the code of the system call.
 *
 * @module
 */
import {
  AuthenticationError,
  BrokerUnavailableError,
  type EdaError,
  InvalidOptionError,
  isEdaError,
  PublishRefusedError,
  ServerUnsupportedError,
} from "../../core/errors.ts";

interface Clue {
  readonly name?: unknown;
  readonly message?: unknown;
  readonly code?: unknown;
  readonly syscall?: unknown;
}

function textOf(error: unknown): string {
  const { message } = (error ?? {}) as Clue;
  return typeof message === "string" ? message : "";
}

/** The number of the server's reply: 403, 404, 406 …; `undefined` where the error is none of the server's. */
export function replyCode(error: unknown): number | undefined {
  const { code } = (error ?? {}) as Clue;
  if (typeof code === "number") return code;
  const found = /^(?:Handshake terminated|Channel closed|Connection closed|Operation failed)[^"]*?: (\d{3}) \(/.exec(
    textOf(error),
  );
  return found === null ? undefined : Number(found[1]);
}

/** An error that says what kind of failure it was, and nothing it was given. */
export function harmless(error: unknown): Error {
  const { name, code, syscall } = (error ?? {}) as Clue;
  const reply = replyCode(error);
  const word = /\((\w[\w-]*)\) with message/.exec(textOf(error))?.[1];
  const plain = new Error(
    reply !== undefined
      ? `${reply}${word === undefined ? "" : ` ${word}`}`
      : typeof code === "string"
      ? `${typeof syscall === "string" ? `${syscall} ` : ""}${code}`
      : /^(?:Socket closed abruptly|Heartbeat timeout|Unexpected close|connect ETIMEDOUT|channel closed)/i.exec(
        textOf(error),
      )?.[0] ?? "unknown error",
  );
  plain.name = typeof name === "string" ? name : "Error";
  if (typeof code === "string" || typeof code === "number") Object.assign(plain, { code });
  return plain;
}

/** Nothing was sent. */
export function unsent(why: string, cause?: unknown): BrokerUnavailableError {
  return new BrokerUnavailableError(
    `RabbitMQ is not connected: ${why}`,
    cause === undefined ? {} : { cause: harmless(cause) },
  );
}

/** Why a connection could not be opened. */
export function openFailure(error: unknown): EdaError {
  if (isEdaError(error)) return error;
  const text = textOf(error);
  const about = { cause: harmless(error) };
  if (/ACCESS.REFUSED|Handshake terminated by server: 403/.test(text)) {
    return new AuthenticationError("RabbitMQ refused the user name or password", about);
  }
  // The client drops the reply; both reasons end the handshake at this point.
  if (/Expected ConnectionOpenOk/.test(text)) {
    return new AuthenticationError(
      "RabbitMQ refused the virtual host: it does not exist, or the user may not use it, or it has too many connections",
      about,
    );
  }
  if (/SASL mechanism .* not provided/.test(text)) {
    return new ServerUnsupportedError("the server does not offer the way of logging in that the client uses", about);
  }
  return unsent("connecting failed", error);
}

/** A close of a channel, or a failed call on one, as one of our errors. `what` says what was being done. */
export function channelFailure(what: string, error: unknown): EdaError {
  if (isEdaError(error)) return error;
  const about = { cause: harmless(error) };
  const text = textOf(error);
  switch (replyCode(error)) {
    case 403:
      return new AuthenticationError(
        `the RabbitMQ user lacks a right that ${what} needs; without the right to configure, give create: false`,
        about,
      );
    case 404:
      return new BrokerUnavailableError(`${what}: a queue or an exchange of it does not exist (any more)`, about);
    case 405:
      return new InvalidOptionError(`${what}: its queue is exclusive to another connection`, about);
    case 503:
    case 540:
      if (/unknown exchange type|invalid exchange type/i.test(text)) return missingPlugin(about);
      break;
    case 406:
      if (/invalid exchange type|unknown exchange type/i.test(text)) return missingPlugin(about);
      if (/delivery acknowledgement/.test(text)) {
        return new BrokerUnavailableError(`${what}: a message stayed unsettled for longer than consumer_timeout`, {
          ...about,
          details: { reason: "consumer-timeout" },
        });
      }
      break;
  }
  return new BrokerUnavailableError(`${what} failed; see cause`, about);
}

/** More than one partition, and nothing at the server to divide by. */
export function missingPlugin(about: { readonly cause: Error }): ServerUnsupportedError {
  return new ServerUnsupportedError(
    "partitions: the server lacks the plugin rabbitmq_consistent_hash_exchange",
    { ...about, details: { needed: "rabbitmq_consistent_hash_exchange" } },
  );
}

/** The close of a publishing channel as a refusal of what went over it; `undefined`: the server said no such thing. */
export function publishFailure(error: unknown): EdaError | undefined {
  const about = { cause: harmless(error) };
  const text = textOf(error);
  if (replyCode(error) === 403) {
    return new AuthenticationError("the RabbitMQ user may not write to the exchange of this topic", about);
  }
  if (replyCode(error) === 406 && /message size \d+ is larger/.test(text)) {
    return new PublishRefusedError("the message is larger than the server's max_message_size", about);
  }
  return undefined;
}

/** The size in bytes of the message that a server refused for it; `undefined` where the error is another. */
export function refusedSize(error: unknown): number | undefined {
  const found = /message size (\d+) is larger/.exec(textOf(error))?.[1];
  return found === undefined ? undefined : Number(found);
}

/** What a declaration found different at the server. */
export interface Inequivalent {
  /** Such as `x-queue-type`, `type` or `durable`. */
  readonly argument: string;
  /** What is there; `undefined` = nothing. */
  readonly current: string | undefined;
  /** Such as `longstr`; absent for what is no argument of the table. */
  readonly type: string | undefined;
}

/** Reads the refusal of a declaration; `undefined` where the error is another. */
export function inequivalent(error: unknown): Inequivalent | undefined {
  if (replyCode(error) !== 406) return undefined;
  const text = textOf(error);
  const argument = /inequivalent arg '([^']+)'/.exec(text)?.[1];
  if (argument === undefined) return undefined;
  const is = /but current is (?:none|(?:the value )?'(.*?)'(?: of type '(\w+)')?)(?:"|$)/.exec(text);
  return { argument, current: is?.[1], type: is?.[2] };
}

/** The argument that a kind of queue does not know; `undefined` where the error is another. */
export function unknownArgument(error: unknown): string | undefined {
  return replyCode(error) === 406 ? /invalid arg '([^']+)'/.exec(textOf(error))?.[1] : undefined;
}
