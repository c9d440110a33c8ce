/**
 * The slice of `@nats-io/transport-node` that is used, and how a connection is made.
 *
 * @module
 */
import { readFile } from "node:fs/promises";
import { AuthenticationError, ClientMissingError, InvalidOptionError } from "../../core/errors.ts";
import { harmless } from "./errors.ts";
import type { ResolvedOptions } from "./resolve.ts";
import { guardSockets, type SocketOwner } from "./sockets.ts";

/** Headers of a message; a status line has a code. */
export interface HeadersSlice extends Iterable<[string, string[]]> {
  readonly code: number;
  readonly description: string;
  get(name: string): string;
  set(name: string, value: string): void;
}

/** One message as it came. */
export interface MessageSlice {
  readonly subject: string;
  readonly reply?: string;
  readonly data: Uint8Array;
  readonly headers?: HeadersSlice;
}

/** One subscription. */
export interface SubscriptionSlice {
  unsubscribe(): void;
  /** Resolves when everything that was sent before the server heard of the end has been handed over. */
  drain(): Promise<void>;
}

/** What the server said of itself. */
export interface ServerInfo {
  readonly version: string;
  readonly max_payload: number;
  readonly headers?: boolean;
  readonly jetstream?: boolean;
  readonly cluster?: string;
}

/** One connection. */
export interface ClientSlice {
  readonly info?: ServerInfo;
  publish(subject: string, data?: Uint8Array | string, options?: { reply?: string; headers?: HeadersSlice }): void;
  subscribe(
    subject: string,
    options: { callback: (error: Error | null, message: MessageSlice) => void },
  ): SubscriptionSlice;
  flush(): Promise<void>;
  close(): Promise<void>;
  closed(): Promise<void | Error>;
  status(): AsyncIterable<{ readonly type: string; readonly error?: Error }>;
}

/** What makes a connection and can be destroyed at any time, also before it stands. */
export interface Dialling {
  readonly connected: Promise<ClientSlice>;
  /** Ends the socket now, without a word to the server. */
  destroy(): void;
}

/** Makes connections. */
export interface Dialler {
  dial(): Dialling;
  /** A subject for replies that nobody else has. */
  inbox(): string;
  headers(): HeadersSlice;
}

interface Handler extends SocketOwner {
  dialLoop(): Promise<void>;
  close(): Promise<void>;
}

type Options = Readonly<Record<string, unknown>>;

/** The module, as far as it is used. The two classes are what `connect` itself is made of. */
export interface ClientModule {
  connect(options: Options): Promise<ClientSlice>;
  createInbox(prefix?: string): string;
  headers(): HeadersSlice;
  credsAuthenticator(credentials: Uint8Array): unknown;
  nkeyAuthenticator(seed: Uint8Array): unknown;
  readonly NatsConnectionImpl?: new (options: Options) => ClientSlice & { options: unknown; protocol: Handler };
  readonly ProtocolHandler?: new (options: unknown, publisher: unknown) => Handler;
}

/** Loads the client when it is needed, so that this package works without it for those who use other brokers. */
export async function loadClient(): Promise<ClientModule> {
  let module: Partial<ClientModule>;
  try {
    module = await import("@nats-io/transport-node") as unknown as Partial<ClientModule>;
  } catch (cause) {
    throw new ClientMissingError(
      "the npm package @nats-io/transport-node is not installed: `npm install @nats-io/transport-node`, " +
        "`deno add npm:@nats-io/transport-node` or `bun add @nats-io/transport-node`",
      { cause },
    );
  }
  if (typeof module.connect !== "function" || typeof module.credsAuthenticator !== "function") {
    throw new ClientMissingError("the installed @nats-io/transport-node is not one this adapter knows: version 3");
  }
  return module as ClientModule;
}

/**
 * A dialler of connections that do nothing by themselves: no reconnecting and no waiting for a server. All of that is the
 * connection's business, which knows what was sent and what was not.
 */
export async function diallerOf(module: ClientModule, options: ResolvedOptions): Promise<Dialler> {
  const { client } = options;
  const prefix = client["inboxPrefix"];
  const settings: Record<string, unknown> = {
    name: "xsm-eda",
    pingInterval: 10_000,
    maxPingOut: 2,
    noAsyncTraces: true,
    ...client,
    servers: [...options.servers],
    timeout: options.connectTimeoutMs,
    reconnect: false,
    // With 0 the client drops two hosts of a list for each that does not answer.
    maxReconnectAttempts: -1,
    waitOnFirstConnect: false,
    ignoreAuthErrorAbort: false,
    verbose: false,
  };
  if (options.user !== undefined) settings["user"] = options.user;
  if (options.password !== undefined) settings["pass"] = options.password;
  if (options.tls && settings["tls"] === undefined) settings["tls"] = {};
  const authenticator = await authenticatorOf(module, options);
  if (authenticator !== undefined) settings["authenticator"] = authenticator;
  const { NatsConnectionImpl, ProtocolHandler } = module;
  if (NatsConnectionImpl !== undefined && ProtocolHandler !== undefined) await registerSockets(module);
  const dial = (): Dialling => {
    try {
      if (NatsConnectionImpl === undefined || ProtocolHandler === undefined) return plainDial(module, settings);
      const connection = new NatsConnectionImpl(settings);
      const handler = new ProtocolHandler(connection.options, connection);
      connection.protocol = handler;
      const sockets = guardSockets(handler);
      return {
        connected: handler.dialLoop().then(() => connection),
        destroy: () => {
          handler.transport?.discard();
          sockets.destroy();
          void handler.close().catch(() => {});
        },
      };
    } catch {
      // Whatever it says may quote what it was given.
      throw new InvalidOptionError("@nats-io/transport-node does not accept url or client options", {
        details: { option: "client" },
      });
    }
  };
  return {
    dial,
    inbox: () => typeof prefix === "string" ? module.createInbox(prefix) : module.createInbox(),
    headers: () => module.headers(),
  };
}

/**
 * Tells the client which kind of socket to use, as `connect` does first of all, without connecting: the options contradict
 * each other. A connection that is then made of the two classes can be destroyed while it is being made; `connect` would leave
 * the socket of a silent server open for good.
 */
async function registerSockets(module: ClientModule): Promise<void> {
  await module.connect({ servers: ["127.0.0.1"], port: 4222 }).then((client) => client.close(), () => {});
}

function plainDial(module: ClientModule, settings: Options): Dialling {
  let ended = false;
  const connected = module.connect(settings);
  const end = (client: ClientSlice): void => void client.close().catch(() => {});
  connected.then((client) => ended ? end(client) : undefined, () => {});
  return {
    connected,
    destroy: () => {
      ended = true;
      connected.then(end, () => {});
    },
  };
}

async function authenticatorOf(module: ClientModule, options: ResolvedOptions): Promise<unknown> {
  try {
    if (options.credentialsFile !== undefined) {
      return module.credsAuthenticator(new Uint8Array(await readFile(options.credentialsFile)));
    }
    if (options.nkeySeed !== undefined) return module.nkeyAuthenticator(new TextEncoder().encode(options.nkeySeed));
  } catch (cause) {
    const option = options.credentialsFile !== undefined ? "credentialsFile" : "nkeySeed";
    throw new AuthenticationError(`${option} cannot be read or holds no credentials`, {
      cause: harmless(cause),
      details: { option },
    });
  }
  return undefined;
}
