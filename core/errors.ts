/**
 * Every error the library throws. Each has a stable `code`, says whether trying again can help (`retriable`), and keeps
 * the client's own error as `cause`. Match on `code`: it survives a thread boundary, a class identity does not.
 *
 * @module
 */

/** The stable codes. */
export type ErrorCode =
  | "authentication-failed"
  | "broker-unavailable"
  | "client-missing"
  | "closed"
  | "envelope-corrupt"
  | "envelope-invalid"
  | "envelope-too-large"
  | "event-rejected"
  | "handler-timeout"
  | "invalid-option"
  | "outcome-unknown"
  | "partition-mismatch"
  | "publish-batch"
  | "publish-capacity"
  | "publish-refused"
  | "schema-invalid"
  | "server-unsupported"
  | "snapshot-incompatible"
  | "store-conflict"
  | "store-fenced"
  | "store-unavailable"
  | "worker-crashed"
  | "worker-start-failed";

/** What an error may carry besides its text. */
export interface EdaErrorOptions {
  /** The error below this one. */
  readonly cause?: unknown;
  /** Machine-readable extra facts; never a secret, a body or a URL. */
  readonly details?: Readonly<Record<string, string | number | boolean>>;
}

/** Base of every error here. */
export class EdaError extends Error {
  /** The stable code. */
  readonly code: ErrorCode;
  /** Whether the same call may succeed later without a change by the caller. */
  readonly retriable: boolean;
  /** Machine-readable extra facts. */
  readonly details: Readonly<Record<string, string | number | boolean>>;

  constructor(code: ErrorCode, retriable: boolean, message: string, options: EdaErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "EdaError";
    this.code = code;
    this.retriable = retriable;
    this.details = options.details ?? {};
  }
}

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

/** Another writer changed the same key first. Retriable: reload and run again. */
export class StoreConflictError extends EdaError {
  override readonly name = "StoreConflictError";
  constructor(message: string, options?: EdaErrorOptions) {
    super("store-conflict", true, message, options);
  }
}

/** The fence of a unit had aborted when its commit was due: its delivery was lost or its time was up. Nothing was stored. */
export class StoreFencedError extends EdaError {
  override readonly name = "StoreFencedError";
  constructor(message: string, options?: EdaErrorOptions) {
    super("store-fenced", false, message, options);
  }
}

/** The store cannot be reached or refused for the moment; never counted against a message. Retriable. */
export class StoreUnavailableError extends EdaError {
  override readonly name = "StoreUnavailableError";
  constructor(message: string, options?: EdaErrorOptions) {
    super("store-unavailable", true, message, options);
  }
}

/** Why a handler gives an event up; the names that dead letters use. */
export type RejectReason =
  | "invalid"
  | "unhandled"
  | "no_instance"
  | "instance_done";

/** Options of {@link EventRejectedError}. */
export interface RejectOptions extends EdaErrorOptions {
  /**
   * `true`: not yet, but maybe later: it is tried again, later events of its subject may go first, and only once the attempts
   * are used up is it given up, for this reason. Default false: given up at once.
   */
  readonly retry?: boolean;
}

/** Thrown by a handler or route: this event is to be given up, for this reason, without further attempts. */
export class EventRejectedError extends EdaError {
  override readonly name = "EventRejectedError";
  readonly reason: RejectReason;
  /** Whether it is tried again before it is given up. */
  readonly retry: boolean;
  constructor(reason: RejectReason, message: string, options: RejectOptions = {}) {
    super("event-rejected", false, message, options);
    this.reason = reason;
    this.retry = options.retry ?? false;
  }
}

/** A handler ran longer than `handlerTimeoutMs`; its signal was aborted and its unit fenced. */
export class HandlerTimeoutError extends EdaError {
  override readonly name = "HandlerTimeoutError";
  constructor(message: string, options?: EdaErrorOptions) {
    super("handler-timeout", true, message, options);
  }
}

/** A stored snapshot does not fit the machine it is restored into; the snapshot is left as it was. */
export class SnapshotIncompatibleError extends EdaError {
  override readonly name = "SnapshotIncompatibleError";
  constructor(message: string, options?: EdaErrorOptions) {
    super("snapshot-incompatible", false, message, options);
  }
}

/** Whether a value is one of our errors, also when it crossed a thread or came from a second copy of this package. */
export function isEdaError(value: unknown): value is EdaError {
  try {
    return value instanceof Error && typeof (value as Partial<EdaError>).code === "string" &&
      typeof (value as Partial<EdaError>).retriable === "boolean";
  } catch {
    // What was thrown at us may throw when it is looked at.
    return false;
  }
}
