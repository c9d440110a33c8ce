/**
 * Errors of the client and error answers of the server as our errors. What goes on as a cause is rebuilt from name, code and
 * the harmless part of the text: the client's own error objects quote subjects, hosts and what they were given.
 *
 * @module
 */
import {
  AuthenticationError,
  BrokerUnavailableError,
  type EdaError,
  InvalidOptionError,
  isEdaError,
  OutcomeUnknownError,
  PublishRefusedError,
  ServerUnsupportedError,
} from "../../core/errors.ts";

/** JetStream's own numbers of errors, as far as they are told apart. */
export const API = {
  noMessage: 10037,
  streamMissing: 10059,
  consumerMissing: 10014,
  streamExists: 10058,
  subjectsOverlap: 10065,
  wrongLastSequence: 10071,
  consumerExists: [10012, 10013, 10105, 10148],
  notEnabled: [10039, 10076],
  /** Two durables that read the same of a stream which removes what is acked. */
  workQueueOverlap: [10099, 10100],
  messageTooLarge: 10054,
  storeFailed: 10077,
  accountLimits: [10002, 10026, 10027, 10028, 10047],
  replicas: [10005, 10074],
} as const;

/** What the JetStream API answers where it refuses. */
export class ApiRefusal extends Error {
  /** As HTTP has it: 400, 404, 503. */
  readonly status: number;
  /** JetStream's own number. */
  readonly number: number;

  constructor(status: number, number: number, description: string) {
    super(description);
    this.name = "JetStreamApiError";
    this.status = status;
    this.number = number;
  }
}

/** Whether an error is a refusal of the API with one of these numbers. */
export function refusedAs(error: unknown, ...numbers: readonly (number | readonly number[])[]): boolean {
  return error instanceof ApiRefusal && numbers.flat().includes(error.number);
}

interface Clue {
  readonly name?: unknown;
  readonly message?: unknown;
  readonly code?: unknown;
  readonly syscall?: unknown;
  readonly cause?: unknown;
}

/** An error that says what went wrong, and nothing that it was given. */
export function harmless(error: unknown): Error {
  const { name, message, code, syscall, cause } = (error ?? {}) as Clue;
  const inner = (cause ?? {}) as Clue;
  let text: string;
  if (error instanceof ApiRefusal) {
    text = `${error.message.replaceAll(/'[^']*'|"[^"]*"/g, "…").slice(0, 200)} (${error.number})`;
  } else if (typeof code === "string") text = `${typeof syscall === "string" ? `${syscall} ` : ""}${code}`;
  else if (typeof inner.code === "string") text = inner.code;
  else text = typeof message === "string" && KNOWN.test(message) ? message.slice(0, 200) : "see its name";
  const plain = new Error(text);
  plain.name = typeof name === "string" ? name : "Error";
  if (typeof code === "string") Object.assign(plain, { code });
  return plain;
}

/** Texts of the client and the server that quote nothing. */
const KNOWN =
  /^(?:timeout|connection refused|connection disconnected|closed connection|Authorization Violation|Authentication Timeout|User Authentication (?:Expired|Revoked)|Stale Connection|Slow Consumer|Maximum (?:Payload|Connections|Control Line).*|maximum (?:account active )?connections exceeded|the server .*|Server Shutdown|Secure Connection - TLS Required)$/i;

/** It was never written. */
export function unsent(why: string, cause?: unknown): BrokerUnavailableError {
  return new BrokerUnavailableError(
    `NATS is not connected: ${why}`,
    cause === undefined ? {} : { cause: harmless(cause) },
  );
}

/** It was written and not answered. */
export function unanswered(what: string, why: string, cause?: unknown): OutcomeUnknownError {
  return new OutcomeUnknownError(
    `${what} was sent to NATS and not answered: ${why}`,
    cause === undefined ? {} : { cause: harmless(cause) },
  );
}

/** Why connecting failed, or a connection ended, as one of our errors. */
export function connectError(error: unknown): EdaError {
  if (isEdaError(error)) return error;
  const { name } = (error ?? {}) as Clue;
  if (name === "AuthorizationError" || name === "UserAuthenticationExpiredError") {
    return new AuthenticationError("NATS refused the credentials", { cause: harmless(error) });
  }
  return unsent("connecting failed", error);
}

/** The user lacks a right. */
export function forbidden(what: string, cause: unknown): AuthenticationError {
  return new AuthenticationError(`the NATS user lacks a right that ${what} needs on the subjects of this topic`, {
    cause: harmless(cause),
    details: { call: what },
  });
}

/** Nobody answers the JetStream API. */
export function noJetStream(cause?: unknown): ServerUnsupportedError {
  return new ServerUnsupportedError(
    "JetStream is not enabled on this server, or not for this account",
    cause === undefined ? {} : { cause: harmless(cause) },
  );
}

/** A refusal of the API to `what` as one of our errors. */
export function refusal(what: string, error: unknown): EdaError {
  if (isEdaError(error)) return error;
  const about = { cause: harmless(error), details: { call: what } };
  if (refusedAs(error, API.notEnabled)) return noJetStream(error);
  if (refusedAs(error, API.subjectsOverlap)) {
    return new InvalidOptionError(
      "a stream of another name takes subjects of this topic already: choose another topic",
      about,
    );
  }
  if (refusedAs(error, API.replicas)) {
    return new InvalidOptionError("replicas is more than the servers can hold", about);
  }
  if (refusedAs(error, API.accountLimits)) {
    return new BrokerUnavailableError(`NATS refused ${what}: a limit of the account or the server is reached`, about);
  }
  return new BrokerUnavailableError(`NATS refused ${what}; see cause`, about);
}

/** The same for a message to publish: what waiting alone will not cure is a refusal. */
export function publishRefusal(error: unknown): EdaError {
  if (isEdaError(error)) return error;
  const about = { cause: harmless(error), details: { call: "publishing" } };
  const { message } = error as Error;
  if (refusedAs(error, API.messageTooLarge)) {
    return new PublishRefusedError(
      "NATS refused the message: it is larger than the stream takes (max_msg_size)",
      about,
    );
  }
  if (refusedAs(error, API.storeFailed) && /maximum/i.test(message)) {
    return new PublishRefusedError("NATS refused the message: the stream is full, and its policy is to refuse", about);
  }
  if (refusedAs(error, API.accountLimits)) {
    return new PublishRefusedError("NATS refused the message: a limit of the account is reached", about);
  }
  if (refusedAs(error, API.notEnabled)) return noJetStream(error);
  if (error instanceof ApiRefusal && error.status >= 500) {
    return new BrokerUnavailableError("NATS could not store the message; see cause", about);
  }
  return new PublishRefusedError("NATS refused the message; see cause", about);
}

/** The message does not fit what the server takes at all. */
export function overPayload(): PublishRefusedError {
  return new PublishRefusedError("NATS would refuse the message: it is larger than the server takes (max_payload)");
}
