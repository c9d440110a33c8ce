/**
 * Errors of the client and error replies of the server as our errors. What goes on as a cause is rebuilt from name, code and
 * the harmless part of the text: the client's own error objects carry the arguments of the command, secrets and bodies
 * included.
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

interface Clue {
  readonly name?: unknown;
  readonly message?: unknown;
  readonly code?: unknown;
  readonly syscall?: unknown;
}

/** An error that says what the client said, and nothing it was given. */
export function harmless(error: unknown): Error {
  const { name, message, code, syscall } = (error ?? {}) as Clue;
  const text = typeof code === "string" && !isReply(error)
    ? `${typeof syscall === "string" ? `${syscall} ` : ""}${code}`
    : cut(typeof message === "string" ? message : "unknown error");
  const plain = new Error(text);
  plain.name = typeof name === "string" ? name : "Error";
  if (typeof code === "string") Object.assign(plain, { code });
  return plain;
}

/** Error replies quote arguments after these words. */
function cut(text: string): string {
  return text.replace(/(?:,? with args beginning with:|: called with| script: [0-9a-f]{40}).*$/s, "").slice(0, 200);
}

/** Whether an error is a reply of the server. */
export function isReply(error: unknown): error is Error {
  return error instanceof Error &&
    (error.name === "ReplyError");
}

/** Whether an error reply has this code, also where a script passed it on. */
export function replies(error: unknown, code: string): boolean {
  return error instanceof Error && new RegExp(`(?:^|: -?)${code}\\b`).test(error.message);
}

/** It was never written. */
export function unsent(why: string, cause?: unknown): BrokerUnavailableError {
  return new BrokerUnavailableError(
    `Redis is not connected: ${why}`,
    cause === undefined ? {} : { cause: harmless(cause) },
  );
}

/** It was written and not answered. */
export function unanswered(command: string, why: string, cause?: unknown): OutcomeUnknownError {
  return new OutcomeUnknownError(
    `${command} was sent to Redis and not answered: ${why}`,
    cause === undefined ? {} : { cause: harmless(cause) },
  );
}

/** Replies after which the same command may succeed later; the server did nothing. */
const FOR_NOW: readonly (readonly [string, string])[] = [
  ["OOM", "its memory is full (maxmemory)"],
  ["READONLY", "it is a read-only replica"],
  ["MISCONF", "it cannot write its data to disk"],
  ["NOREPLICAS", "it has too few replicas"],
  ["LOADING", "it is loading its data"],
  ["MASTERDOWN", "its master is down"],
  ["CLUSTERDOWN", "the cluster is down"],
  ["TRYAGAIN", "the cluster is moving this topic"],
  ["BUSY", "it is busy with a script"],
  ["UNBLOCKED", "it ended a blocked read"],
];

/** An error reply to `command` as one of our errors. */
export function refusal(command: string, error: unknown): EdaError {
  return understood(command, error) ??
    new BrokerUnavailableError(`Redis refused ${command}; see cause`, {
      cause: harmless(error),
      details: { command },
    });
}

/** The same for a message to publish: what waiting will not cure is a refusal. */
export function publishRefusal(error: unknown): EdaError {
  const known = understood("XADD", error);
  if (known !== undefined && known.code !== "invalid-option") return known;
  return new PublishRefusedError(known?.message ?? "Redis refused XADD; see cause", {
    cause: known?.cause ?? harmless(error),
    details: { command: "XADD" },
  });
}

function understood(command: string, error: unknown): EdaError | undefined {
  if (isEdaError(error)) return error;
  const text = error instanceof Error ? error.message : "";
  const about = { cause: harmless(error), details: { command } };
  if (/WRONGPASS|NOAUTH|invalid password|invalid username-password|AUTH .*called without any password/i.test(text)) {
    return new AuthenticationError("Redis refused the user name or password", about);
  }
  if (/NOPERM|ACL failure|has no permissions|can't run this command|can't access/i.test(text)) {
    return new AuthenticationError(
      `the Redis user lacks a right that ${command} needs on the keys of this topic`,
      about,
    );
  }
  for (const [code, why] of FOR_NOW) {
    if (replies(error, code)) return new BrokerUnavailableError(`Redis refused ${command}: ${why}`, about);
  }
  if (replies(error, "MOVED") || replies(error, "ASK") || replies(error, "CROSSSLOT")) {
    return new ServerUnsupportedError(
      "the server is one of several nodes of a Redis Cluster, and this adapter talks to one",
      about,
    );
  }
  if (replies(error, "WRONGTYPE")) {
    return new InvalidOptionError(
      "a key of this topic holds something else than a stream: choose another prefix",
      about,
    );
  }
  if (/unknown command|unknown subcommand|syntax error/i.test(text)) {
    return new ServerUnsupportedError(
      `the server does not know ${command} as it is used here: Redis 6.2 or later is needed`,
      about,
    );
  }
  return undefined;
}
