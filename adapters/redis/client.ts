/**
 * The slice of ioredis that is used, and how a client is made. Versions 5.4 and later, and 6, fit it.
 *
 * @module
 */
import { ClientMissingError, InvalidOptionError } from "../../core/errors.ts";
import type { ResolvedOptions } from "./resolve.ts";

/** The client's socket. */
export interface SocketSlice {
  readonly writable: boolean;
  cork(): void;
  uncork(): void;
  destroy(): void;
}

/** One client = one connection. */
export interface ClientSlice {
  readonly status: string;
  /** Undefined before it connects. */
  readonly stream?: SocketSlice | null;
  connect(): Promise<void>;
  disconnect(reconnect?: boolean): void;
  call(command: string, ...args: string[]): Promise<unknown>;
  /** Replies hold bytes instead of text. */
  callBuffer(command: string, ...args: string[]): Promise<unknown>;
  on(event: string, listener: (error?: unknown) => void): unknown;
  off(event: string, listener: (error?: unknown) => void): unknown;
}

/** Makes an unconnected client. */
export type ClientFactory = () => ClientSlice;

type ClientClass = new (options: Readonly<Record<string, unknown>>, url?: string) => ClientSlice;

/** Loads ioredis when it is needed, so that this package works without it for those who use other brokers. */
export async function loadClient(): Promise<ClientClass> {
  let module: { readonly default?: unknown; readonly Redis?: unknown };
  try {
    module = await import("ioredis");
  } catch (cause) {
    throw new ClientMissingError(
      "the npm package ioredis is not installed: `npm install ioredis`, `deno add npm:ioredis` or `bun add ioredis`",
      { cause },
    );
  }
  const found = module.Redis ?? module.default;
  if (typeof found !== "function") {
    throw new ClientMissingError("the installed ioredis is not one this adapter knows: versions 5.4 and later, or 6");
  }
  return found as ClientClass;
}

/**
 * A factory of clients that do nothing by themselves: no reconnecting, no queue while offline, no sending again. All of that
 * is the connection's business, which knows what was sent and what was not.
 */
export function clientFactory(Client: ClientClass, options: ResolvedOptions): ClientFactory {
  const settings: Record<string, unknown> = {
    connectionName: "xsm-eda",
    ...options.client,
    lazyConnect: true,
    connectTimeout: options.connectTimeoutMs,
    // Sockets are destroyed by us; this timer of the client's own would outlive them.
    disconnectTimeout: 1,
    retryStrategy: null,
    reconnectOnError: null,
    maxRetriesPerRequest: null,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    enableAutoPipelining: false,
    // Only what a sentinel hands out needs the client's own check (is it the master?); version and loading are ours to see.
    enableReadyCheck: options.client["sentinels"] !== undefined,
    disableClientInfo: true,
    stringNumbers: false,
    protocol: 2,
  };
  return () => {
    try {
      return options.url === undefined ? new Client(settings) : new Client(settings, options.url);
    } catch {
      // Whatever it says may quote the URL.
      throw new InvalidOptionError("ioredis does not accept url or client options", { details: { option: "url" } });
    }
  };
}
