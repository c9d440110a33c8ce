/**
 * Errors of stores and handlers.
 *
 * @module
 */
import { EdaError, type EdaErrorOptions } from "./error_base.ts";

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
