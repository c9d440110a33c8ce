/**
 * Every error the library throws. Each has a stable `code`, says whether trying again can help (`retriable`), and keeps
 * the client's own error as `cause`. Match on `code`: it survives a thread boundary, a class identity does not.
 *
 * @module
 */
import { EdaError, type EdaErrorOptions } from "./error_base.ts";

export * from "./error_base.ts";
export * from "./store_errors.ts";

/** The broker cannot be reached; nothing was sent. Retriable. */
export class BrokerUnavailableError extends EdaError {
  override readonly name = "BrokerUnavailableError";
  constructor(message: string, options?: EdaErrorOptions) {
    super("broker-unavailable", true, message, options);
  }
}

/** It was sent and not confirmed: the broker may have it. Publishing again may duplicate. Retriable. */
export class OutcomeUnknownError extends EdaError {
  override readonly name = "OutcomeUnknownError";
  constructor(message: string, options?: EdaErrorOptions) {
    super("outcome-unknown", true, message, options);
  }
}

/** The broker answered no. The broker does not have it. Not retriable. */
export class PublishRefusedError extends EdaError {
  override readonly name = "PublishRefusedError";
  constructor(message: string, options?: EdaErrorOptions) {
    super("publish-refused", false, message, options);
  }
}

/** Too much is waiting to be published (10,000 messages or 64 MiB); this one was not sent. Retriable. */
export class PublishCapacityError extends EdaError {
  override readonly name = "PublishCapacityError";
  constructor(message: string, options?: EdaErrorOptions) {
    super("publish-capacity", true, message, options);
  }
}

/** The outcome of one message of a `publishAll` that failed as a whole. */
export type PublishOutcome =
  | { readonly ok: true; readonly id: string }
  | { readonly ok: false; readonly id: string; readonly error: EdaError };

/** At least one message of `publishAll` failed; `outcomes` has one entry a message, in the order given. */
export class PublishBatchError extends EdaError {
  override readonly name = "PublishBatchError";
  /** One entry a message, in the order given. */
  readonly outcomes: readonly PublishOutcome[];
  constructor(outcomes: readonly PublishOutcome[], options?: EdaErrorOptions) {
    const failed = outcomes.filter((outcome) => !outcome.ok);
    super(
      "publish-batch",
      failed.every((outcome) => !outcome.ok && outcome.error.retriable),
      `${failed.length} of ${outcomes.length} messages were not published; see outcomes`,
      options,
    );
    this.outcomes = outcomes;
  }
}

/** An envelope built here breaks a rule of CloudEvents or of this library. `details.attribute` names it. */
export class EnvelopeInvalidError extends EdaError {
  override readonly name = "EnvelopeInvalidError";
  constructor(message: string, options?: EdaErrorOptions) {
    super("envelope-invalid", false, message, options);
  }
}

/** Why received bytes are no envelope. */
export type CorruptReason =
  | "not-json"
  | "not-utf8"
  | "not-an-object"
  | "batch-not-supported"
  | "unsupported-specversion"
  | "missing-attribute"
  | "invalid-attribute"
  | "data-and-data-base64"
  | "invalid-base64"
  | "too-deep"
  | "schema";

/** Received bytes are no envelope. `reason` says why, `details.attribute` where. */
export class EnvelopeCorruptError extends EdaError {
  override readonly name = "EnvelopeCorruptError";
  /** Why. */
  readonly reason: CorruptReason;
  constructor(reason: CorruptReason, message: string, options: EdaErrorOptions = {}) {
    super("envelope-corrupt", false, message, { ...options, details: { ...options.details, reason } });
    this.reason = reason;
  }
}

/** An envelope is larger than `maxBytes`, in either direction. */
export class EnvelopeTooLargeError extends EdaError {
  override readonly name = "EnvelopeTooLargeError";
  constructor(message: string, options?: EdaErrorOptions) {
    super("envelope-too-large", false, message, options);
  }
}

/** `data` does not pass the schema of its topic and type. */
export class SchemaInvalidError extends EdaError {
  override readonly name = "SchemaInvalidError";
  constructor(message: string, options?: EdaErrorOptions) {
    super("schema-invalid", false, message, options);
  }
}

/** An option or argument is unknown, missing or out of range. Its name is in the text, its value never. */
export class InvalidOptionError extends EdaError {
  override readonly name = "InvalidOptionError";
  constructor(message: string, options?: EdaErrorOptions) {
    super("invalid-option", false, message, options);
  }
}

/** The npm package of a broker's client is not installed; the text has the install command. */
export class ClientMissingError extends EdaError {
  override readonly name = "ClientMissingError";
  constructor(message: string, options?: EdaErrorOptions) {
    super("client-missing", false, message, options);
  }
}

/** The broker refused our credentials or permissions. */
export class AuthenticationError extends EdaError {
  override readonly name = "AuthenticationError";
  constructor(message: string, options?: EdaErrorOptions) {
    super("authentication-failed", false, message, options);
  }
}

/** The server lacks something we need; the text names the version found and the version needed. */
export class ServerUnsupportedError extends EdaError {
  override readonly name = "ServerUnsupportedError";
  constructor(message: string, options?: EdaErrorOptions) {
    super("server-unsupported", false, message, options);
  }
}

/** `partitions` differs from the number recorded at the broker; both are in the text. */
export class PartitionMismatchError extends EdaError {
  override readonly name = "PartitionMismatchError";
  constructor(message: string, options?: EdaErrorOptions) {
    super("partition-mismatch", false, message, options);
  }
}

/** This object has been closed; make a new one. */
export class ClosedError extends EdaError {
  override readonly name = "ClosedError";
  constructor(message: string, options?: EdaErrorOptions) {
    super("closed", false, message, options);
  }
}

/** The worker died; what was in flight is unknown, and a new worker is being started. Retriable. */
export class WorkerCrashedError extends EdaError {
  override readonly name = "WorkerCrashedError";
  constructor(message: string, options?: EdaErrorOptions) {
    super("worker-crashed", true, message, options);
  }
}

/** The worker could not be started; the text says what to try (bundling, permissions, `isolation: "inline"`). */
export class WorkerStartError extends EdaError {
  override readonly name = "WorkerStartError";
  constructor(message: string, options?: EdaErrorOptions) {
    super("worker-start-failed", false, message, options);
  }
}
