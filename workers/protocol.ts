/**
 * What crosses between host and worker: the session's own messages plus a handshake, plain data only, versioned. The host
 * sends nothing before `ready`; the worker does nothing before `init`.
 *
 * @module
 */
import type { SessionOptions } from "../core/session/session.ts";
import type { ToHost, ToSession } from "../core/session/messages.ts";
import { fromWireError, toWireError, type WireError } from "./wire_error.ts";

/** Version of this protocol; host and worker of different copies of the package refuse each other. */
export const PROTOCOL_VERSION = 1;

/** Host to worker. */
export type HostFrame =
  | {
    readonly k: "init";
    readonly version: number;
    /** The adapter's own options. */
    readonly adapter: unknown;
    readonly session: SessionOptions;
    /** Address of the user's `clientModule`. */
    readonly clientModule?: string;
  }
  | { readonly k: "exit" }
  | ToSession;

/** Worker to host. */
export type WorkerFrame =
  | { readonly k: "ready"; readonly version: number }
  | { readonly k: "started" }
  | { readonly k: "failed"; readonly error: WireError }
  | { readonly k: "bye" }
  | ToHost;

/** Puts the errors of a session's message into their wire form. */
export function pack(message: ToHost): ToHost {
  if (message.k === "published") {
    if (message.errors === undefined) return message;
    return { ...message, errors: message.errors.map(([at, error]) => [at, toWireError(error)] as const) };
  }
  if ("error" in message && message.error !== undefined) return { ...message, error: toWireError(message.error) };
  return message;
}

/** The reverse of {@link pack}. */
export function unpack(message: ToHost): ToHost {
  if (message.k === "published") {
    if (message.errors === undefined) return message;
    return {
      ...message,
      errors: message.errors.map(([at, error]) => [at, fromWireError(error as WireError)] as const),
    };
  }
  if ("error" in message && message.error !== undefined) {
    return { ...message, error: fromWireError(message.error as WireError) };
  }
  return message;
}
