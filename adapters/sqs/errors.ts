/**
 * Errors of the SDK and answers of SQS as our errors. What goes on as a cause is rebuilt from name and code: the SDK's own
 * errors carry headers, addresses and parts of what was sent.
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
} from "../../core/errors.ts";

interface Clue {
  readonly name?: unknown;
  readonly code?: unknown;
  readonly message?: unknown;
  readonly errors?: unknown;
  readonly cause?: unknown;
  readonly $fault?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: unknown };
}

const clueOf = (error: unknown): Clue => (typeof error === "object" && error !== null ? error : {}) as Clue;

/** The name of an error of SQS, without the prefixes that older protocols put before it. */
export function nameOf(error: unknown): string {
  const { name } = clueOf(error);
  return plainCode(name);
}

/** A code of SQS, without prefixes. */
export function plainCode(code: unknown): string {
  const text = typeof code === "string" ? code : "Error";
  const plain = text.split(/[.#]/).pop()!;
  return plain === "NonExistentQueue" ? "QueueDoesNotExist" : plain;
}

/** Whether SQS itself answered. */
export function isAnswer(error: unknown): boolean {
  return statusOf(error) !== undefined && clueOf(error).$fault !== undefined;
}

function statusOf(error: unknown): number | undefined {
  const status = clueOf(error).$metadata?.httpStatusCode;
  return typeof status === "number" ? status : undefined;
}

/** The code of what went wrong below HTTP, such as `ECONNREFUSED`; where several addresses were tried, of the first. */
function socketCode(error: unknown): string | undefined {
  const { code, errors, cause } = clueOf(error);
  if (typeof code === "string") return code;
  const inner = Array.isArray(errors) ? errors[0] : cause;
  return inner === undefined || inner === error ? undefined : socketCode(inner);
}

/** An error that says what kind it is, and nothing of what it was given. */
export function harmless(error: unknown): Error {
  const status = statusOf(error);
  const code = socketCode(error);
  const name = nameOf(error);
  const plain = new Error(status === undefined ? code ?? name : `${name}, HTTP status ${status}`);
  plain.name = name;
  if (code !== undefined) Object.assign(plain, { code });
  return plain;
}

/** Whether the queue is not there. */
export function isQueueMissing(error: unknown): boolean {
  return nameOf(error) === "QueueDoesNotExist";
}

/** Whether SQS refuses this call to whoever we are. */
export function isDenied(error: unknown): boolean {
  const name = nameOf(error);
  return name === "AccessDenied" || name === "AccessDeniedException" || name === "KmsAccessDenied";
}

const BAD_CREDENTIALS: ReadonlySet<string> = new Set([
  "CredentialsProviderError",
  "IncompleteSignature",
  "InvalidClientTokenId",
  "InvalidSecurity",
  "MissingAuthenticationToken",
  "OptInRequired",
  "SignatureDoesNotMatch",
  "TokenProviderError",
  "UnrecognizedClientException",
]);

/** Codes after which the same call may succeed later; SQS did nothing. */
const FOR_NOW: ReadonlySet<string> = new Set([
  "ExpiredToken",
  "ExpiredTokenException",
  "KmsThrottled",
  "OverLimit",
  "QueueDeletedRecently",
  "RequestExpired",
  "RequestThrottled",
  "RequestThrottledException",
  "RequestTimeTooSkewed",
  "ServiceUnavailable",
  "Throttling",
  "ThrottlingException",
  "TooManyRequestsException",
]);

/** Whether SQS asks for a slower pace, or for the same call a little later; it did nothing. */
export function isForNow(error: unknown): boolean {
  return FOR_NOW.has(nameOf(error)) || statusOf(error) === 503 || statusOf(error) === 429;
}

/** The same for a code of one message of a batch. */
export function isCodeForNow(code: unknown): boolean {
  return FOR_NOW.has(plainCode(code));
}

/** Failures of a socket that had not connected. */
const UNCONNECTED: ReadonlySet<string> = new Set([
  "EADDRNOTAVAIL",
  "EAI_AGAIN",
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
]);

/** A call that did not succeed, as one of our errors. `sent` = what it was to change may be changed all the same. */
export function asError(action: string, error: unknown): EdaError {
  if (isEdaError(error)) return error;
  const about = { cause: harmless(error), details: { action } };
  const name = nameOf(error);
  const message = clueOf(error).message;
  if (BAD_CREDENTIALS.has(name)) {
    return new AuthenticationError(
      name === "CredentialsProviderError"
        ? "the SDK found no credentials: set them in the environment or a profile, or give client or clientModule"
        : "SQS refused the credentials",
      about,
    );
  }
  if (isDenied(error)) return new AuthenticationError(`the credentials lack a right that ${action} needs`, about);
  if (typeof message === "string" && /region (?:is missing|not accepted)/i.test(message)) {
    return new InvalidOptionError("region is missing, or is none: name it in the options, or in AWS_REGION", {
      details: { option: "region" },
    });
  }
  if (isForNow(error)) return new BrokerUnavailableError(`SQS refused ${action} for now; see cause`, about);
  if (name === "NotCapable" || name === "PermissionDenied") {
    return new BrokerUnavailableError("the runtime does not permit what the SDK needs; see the docs of SQS", about);
  }
  const code = socketCode(error);
  if (code !== undefined && UNCONNECTED.has(code)) {
    return new BrokerUnavailableError("SQS cannot be reached; see cause", about);
  }
  if (isAnswer(error) && (statusOf(error) ?? 500) < 500) {
    return new BrokerUnavailableError(`SQS refused ${action}; see cause`, about);
  }
  return new OutcomeUnknownError(`${action} was sent to SQS and not answered as it should be; see cause`, about);
}

/** The same for a batch of messages to publish: what waiting will not cure is a refusal. */
export function publishError(error: unknown): EdaError {
  const known = asError("SendMessageBatch", error);
  if (known.code === "broker-unavailable" && isAnswer(error) && !isForNow(error)) {
    return new PublishRefusedError("SQS refused SendMessageBatch; see cause", {
      ...(known.cause === undefined ? {} : { cause: known.cause }),
      details: known.details,
    });
  }
  return known;
}

/** One message of a batch that SQS did not take. */
export function entryError(code: unknown, senderFault: boolean): EdaError {
  const name = plainCode(code);
  const cause = new Error(name);
  cause.name = name;
  const about = { cause, details: { action: "SendMessageBatch" } };
  if (isDenied(cause)) {
    return new AuthenticationError("the credentials lack a right that SendMessageBatch needs", about);
  }
  return senderFault && !isCodeForNow(code)
    ? new PublishRefusedError("SQS refused the message; see cause", about)
    : new BrokerUnavailableError("SQS did not take the message; see cause", about);
}
