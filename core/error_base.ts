/**
 * The base of every error and the list of codes.
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
