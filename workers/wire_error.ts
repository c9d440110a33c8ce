/**
 * Errors as plain data and back: structured clone keeps neither class nor code.
 *
 * @module
 */
import {
  AuthenticationError,
  BrokerUnavailableError,
  ClientMissingError,
  ClosedError,
  EdaError,
  type EdaErrorOptions,
  EnvelopeCorruptError,
  EnvelopeInvalidError,
  EnvelopeTooLargeError,
  type ErrorCode,
  InvalidOptionError,
  OutcomeUnknownError,
  PartitionMismatchError,
  PublishCapacityError,
  PublishRefusedError,
  SchemaInvalidError,
  ServerUnsupportedError,
  WorkerCrashedError,
  WorkerStartError,
} from "../core/errors.ts";
import { redactText } from "../core/redact.ts";

/** An error on the wire. */
export interface WireError {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  readonly retriable?: boolean;
  readonly stack?: string;
  readonly details?: Readonly<Record<string, string | number | boolean>>;
  readonly cause?: WireError;
}

/** Causes kept; a longer or circular chain is cut. */
const DEPTH = 8;

type Known = new (message: string, options?: EdaErrorOptions) => EdaError;

const CLASSES: Readonly<Partial<Record<ErrorCode, Known>>> = {
  "authentication-failed": AuthenticationError,
  "broker-unavailable": BrokerUnavailableError,
  "client-missing": ClientMissingError,
  "closed": ClosedError,
  "envelope-invalid": EnvelopeInvalidError,
  "envelope-too-large": EnvelopeTooLargeError,
  "invalid-option": InvalidOptionError,
  "outcome-unknown": OutcomeUnknownError,
  "partition-mismatch": PartitionMismatchError,
  "publish-capacity": PublishCapacityError,
  "publish-refused": PublishRefusedError,
  "schema-invalid": SchemaInvalidError,
  "server-unsupported": ServerUnsupportedError,
  "worker-crashed": WorkerCrashedError,
  "worker-start-failed": WorkerStartError,
};

/**
 * Any thrown value as data. Never throws, whatever getters the value has; what cannot be read is left out. A client's own
 * errors may quote what it was given, so credentials are masked.
 */
export function toWireError(value: unknown, depth: number = 0): WireError {
  if (!isError(value)) return { name: "NonError", message: read(() => redactText(String(value))) ?? UNREADABLE };
  const code = read(() => (value as Partial<EdaError>).code);
  const retriable = read(() => (value as Partial<EdaError>).retriable);
  const details = read(() => plain((value as Partial<EdaError>).details));
  const stack = read(() => value.stack);
  const cause = read(() => value.cause);
  return {
    name: read(() => String(value.name)) ?? "Error",
    message: read(() => redactText(String(value.message))) ?? UNREADABLE,
    ...(typeof code === "string" ? { code } : {}),
    ...(typeof retriable === "boolean" ? { retriable } : {}),
    ...(typeof stack === "string" ? { stack: redactText(stack) } : {}),
    ...(details === undefined ? {} : { details }),
    ...(cause !== undefined && depth < DEPTH ? { cause: toWireError(cause, depth + 1) } : {}),
  };
}

const UNREADABLE = "an error that could not be read";

function isError(value: unknown): value is Error {
  return read(() => value instanceof Error) === true;
}

function read<T>(get: () => T): T | undefined {
  try {
    return get();
  } catch {
    return undefined;
  }
}

function plain(details: unknown): Record<string, string | number | boolean> | undefined {
  if (typeof details !== "object" || details === null) return undefined;
  const out: Record<string, string | number | boolean> = {};
  for (const [key, value] of Object.entries(details)) {
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") out[key] = value;
  }
  return out;
}

/** The error that data stands for, of our class where the code is ours. */
export function fromWireError(wire: WireError): Error {
  const cause = wire.cause === undefined ? undefined : fromWireError(wire.cause);
  const options: EdaErrorOptions = {
    ...(cause === undefined ? {} : { cause }),
    ...(wire.details === undefined ? {} : { details: wire.details }),
  };
  const error = make(wire, options);
  if (wire.stack !== undefined) error.stack = wire.stack;
  return error;
}

function make(wire: WireError, options: EdaErrorOptions): Error {
  if (wire.code === "envelope-corrupt") {
    return new EnvelopeCorruptError(wire.details?.["reason"] as EnvelopeCorruptError["reason"], wire.message, options);
  }
  const Class = CLASSES[wire.code as ErrorCode];
  if (Class !== undefined) return new Class(wire.message, options);
  if (wire.code !== undefined && wire.retriable !== undefined) {
    return new EdaError(wire.code as ErrorCode, wire.retriable, wire.message, options);
  }
  const error = new Error(wire.message, options.cause === undefined ? undefined : { cause: options.cause });
  error.name = wire.name;
  if (wire.code !== undefined) (error as Error & { code?: string }).code = wire.code;
  return error;
}
