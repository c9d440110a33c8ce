/**
 * Errors of the client as our errors. Its own carry addresses in their texts and members: what goes on as a cause is rebuilt
 * from their name and Kafka's code.
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
  /** Kafka's name of an error code. */
  readonly type?: unknown;
  readonly code?: unknown;
  readonly message?: unknown;
  readonly cause?: unknown;
  readonly errors?: readonly unknown[];
}

/** The errors that one error is made of, outermost first. */
function* chain(error: unknown): Iterable<Clue> {
  let at = error;
  for (let depth = 0; depth < 8 && typeof at === "object" && at !== null; depth++) {
    yield at as Clue;
    const { cause, errors } = at as Clue;
    at = errors?.[0] ?? cause;
  }
}

/** Kafka's name of the error code, such as `TOPIC_AUTHORIZATION_FAILED`; undefined for an error that is no answer. */
export function typeOf(error: unknown): string | undefined {
  for (const { type } of chain(error)) if (typeof type === "string" && /^[A-Z_]{3,64}$/.test(type)) return type;
  return undefined;
}

function named(error: unknown, name: string): boolean {
  for (const clue of chain(error)) if (clue.name === name) return true;
  return false;
}

/** An error that says what went wrong, and nothing of where. */
export function harmless(error: unknown): Error {
  const type = typeOf(error);
  let code: string | undefined;
  for (const clue of chain(error)) if (typeof clue.code === "string") code = clue.code;
  const { name } = (error ?? {}) as Clue;
  const plain = new Error(type ?? code ?? "no answer");
  plain.name = typeof name === "string" && /^\w{1,64}$/.test(name) ? name : "Error";
  if (code !== undefined) Object.assign(plain, { code });
  return plain;
}

/** What the server's listeners say of a request that they did not carry out, and may later. */
const STALE: ReadonlySet<string> = new Set([
  "FENCED_LEADER_EPOCH",
  "KAFKA_STORAGE_ERROR",
  "LEADER_NOT_AVAILABLE",
  "NOT_LEADER_FOR_PARTITION",
  "REPLICA_NOT_AVAILABLE",
  "UNKNOWN_LEADER_EPOCH",
  "UNKNOWN_TOPIC_OR_PARTITION",
]);

/** Answers after which the records may be there all the same. */
const PERHAPS_WRITTEN: ReadonlySet<string> = new Set(["REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"]);

/** Answers of a cluster that is out of order for now. */
const FOR_NOW: ReadonlySet<string> = new Set([
  "NOT_ENOUGH_REPLICAS",
  "THROTTLING_QUOTA_EXCEEDED",
  "NOT_CONTROLLER",
  "GROUP_COORDINATOR_NOT_AVAILABLE",
  "GROUP_LOAD_IN_PROGRESS",
  "COORDINATOR_LOAD_IN_PROGRESS",
  "NETWORK_EXCEPTION",
]);

/** Answers that mean: the client's numbering of its sends is not the server's any more. */
const SEQUENCE: ReadonlySet<string> = new Set([
  "DUPLICATE_SEQUENCE_NUMBER",
  "INVALID_PRODUCER_EPOCH",
  "INVALID_PRODUCER_ID_MAPPING",
  "OUT_OF_ORDER_SEQUENCE_NUMBER",
  "PRODUCER_FENCED",
  "UNKNOWN_PRODUCER_ID",
]);

/** How one send failed. */
export type SendFailure =
  /** Nothing left this machine. */
  | "unsent"
  /** It left and nobody knows. */
  | "unknown"
  /** The broker did not write it and says that another may. */
  | "moved"
  /** The broker did not write it. */
  | "refused"
  /** The same, but only because of how sends are numbered: another producer is needed. */
  | "sequence";

/** What became of records whose send failed. */
export function sendFailureOf(error: unknown): SendFailure {
  const type = typeOf(error);
  if (type !== undefined) {
    if (STALE.has(type)) return "moved";
    if (SEQUENCE.has(type)) return "sequence";
    return PERHAPS_WRITTEN.has(type) ? "unknown" : "refused";
  }
  for (const { name, code, message } of chain(error)) {
    if (
      name === "KafkaJSMetadataNotLoaded" || name === "KafkaJSTopicMetadataNotLoaded" ||
      name === "KafkaJSBrokerNotFound" || name === "KafkaJSLockTimeout" || name === "KafkaJSSASLAuthenticationError" ||
      name === "KafkaJSNoBrokerAvailableError" || name === "KafkaJSNotImplemented"
    ) return "unsent";
    if (typeof code === "string" && UNREACHED.test(code)) return "unsent";
    if (typeof message === "string" && /^(?:Connection timeout|Not connected|The producer is disc)/.test(message)) {
      return "unsent";
    }
  }
  return "unknown";
}

/** Codes of a connection that never stood. */
const UNREACHED = /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|CERT_|ERR_TLS|ERR_SSL|DEPTH_)/;

/** An error of a request that is no publish. */
export function failureOf(action: string, error: unknown): EdaError {
  if (isEdaError(error)) return error;
  const about = { cause: harmless(error), details: { action } };
  const type = typeOf(error);
  if (type === "SASL_AUTHENTICATION_FAILED" || named(error, "KafkaJSSASLAuthenticationError")) {
    return new AuthenticationError("Kafka refused the credentials or their mechanism", about);
  }
  if (type?.endsWith("_AUTHORIZATION_FAILED")) {
    return new AuthenticationError(`this Kafka user lacks a right that ${action} needs`, about);
  }
  if (type === "INVALID_TOPIC_EXCEPTION") return invalidTopic();
  if (type === "INVALID_SESSION_TIMEOUT") {
    return new InvalidOptionError("sessionTimeoutMs is outside of what the cluster allows", about);
  }
  if (type === "INCONSISTENT_GROUP_PROTOCOL") {
    return new InvalidOptionError(
      "the group holds members of another kind, with which none of this kind can share",
      about,
    );
  }
  if (type === "UNSUPPORTED_VERSION" || named(error, "KafkaJSServerDoesNotSupportApiKey")) {
    return new ServerUnsupportedError("the server does not speak what the client needs: Kafka 2.1 or later", about);
  }
  if (type === "POLICY_VIOLATION" || type === "INVALID_CONFIG" || type === "INVALID_REPLICATION_FACTOR") {
    return new InvalidOptionError(`the cluster refuses ${action}: ${type}`, about);
  }
  if (named(error, "KafkaJSNotImplemented")) return codecMissing(about.cause);
  return new BrokerUnavailableError(`${action}: Kafka did not answer as it should; see cause`, about);
}

/** For a name of a topic that Kafka has none of. */
export function invalidTopic(): InvalidOptionError {
  return new InvalidOptionError(
    "topic must be a text of 1 to 249 letters, digits, dots, dashes and underscores for Kafka, and neither . nor ..",
    { details: { option: "topic" } },
  );
}

function codecMissing(cause: Error): InvalidOptionError {
  return new InvalidOptionError("no codec is registered for this compression: register one through clientModule", {
    cause,
    details: { option: "compression" },
  });
}

/** The outcome of records whose send failed. */
export function publishFailure(failure: SendFailure, error: unknown): EdaError {
  const about = { cause: harmless(error), details: { action: "publishing" } };
  const type = typeOf(error);
  if (named(error, "KafkaJSNotImplemented")) {
    return new PublishRefusedError(
      "no codec is registered for this compression: register one through clientModule",
      about,
    );
  }
  if (named(error, "KafkaJSSASLAuthenticationError") || type?.endsWith("_AUTHORIZATION_FAILED")) {
    return failureOf("publishing", error);
  }
  if (failure === "unsent") return new BrokerUnavailableError("not sent: Kafka is not connected", about);
  if (failure === "unknown") return new OutcomeUnknownError("it was sent to Kafka and not confirmed", about);
  if (failure !== "refused" || type !== undefined && FOR_NOW.has(type)) {
    return new BrokerUnavailableError("Kafka did not write it, and may later; see cause", about);
  }
  return new PublishRefusedError(
    type === "MESSAGE_TOO_LARGE" || type === "RECORD_LIST_TOO_LARGE"
      ? "Kafka refused it: it is larger than max.message.bytes of the topic"
      : "Kafka refused it; see cause",
    about,
  );
}
