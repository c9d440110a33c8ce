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

/** What the host says to the worker itself. */
type HostControl =
  | {
    readonly k: "init";
    readonly version: number;
    /** The adapter's own options. */
    readonly adapter: unknown;
    readonly session: SessionOptions;
    /** Address of the user's `clientModule`. */
    readonly clientModule?: string;
  }
  | { readonly k: "exit" };

/** What the worker says of itself. */
type WorkerControl =
  | { readonly k: "ready"; readonly version: number }
  | { readonly k: "started" }
  | { readonly k: "not-started"; readonly error: WireError }
  | { readonly k: "bye" };

/** Fails to compile where a word of the session has a second meaning here. */
type Apart<Control extends { k: string }, Said extends { k: string }> = Control["k"] & Said["k"] extends never
  ? Control | Said
  : never;

/** Host to worker. */
export type HostFrame = Apart<HostControl, ToSession>;

/** Worker to host. */
export type WorkerFrame = Apart<WorkerControl, ToHost>;

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
