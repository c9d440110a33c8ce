/**
 * What a worker entry calls: `serve(() => import("./transport.ts"))`. Listens at once, announces itself, builds the transport
 * when told to, and runs a session over it.
 *
 * @module
 */
import { type Clock, systemClock } from "../core/clock.ts";
import { BrokerUnavailableError, InvalidOptionError } from "../core/errors.ts";
import type { ToHost, ToSession } from "../core/session/messages.ts";
import { asStartError, Session } from "../core/session/session.ts";
import type { Transport } from "../core/transport.ts";
import { type Scope, workerScope } from "./port.ts";
import { type HostFrame, pack, PROTOCOL_VERSION } from "./protocol.ts";
import { toWireError } from "./wire_error.ts";

/** What the module of a transport exports. */
export interface TransportModule {
  /** Builds the transport; imports its client lazily. No I/O yet. */
  createTransport(options: never, clock: Clock): Transport | Promise<Transport>;
}

/** Runs a worker. Call it synchronously at the top of the worker's entry file. */
export function serve(load: () => Promise<TransportModule>): void {
  const scope = workerScope();
  let session: Session | undefined;
  scope.listen((data) => {
    const frame = data as HostFrame;
    if (frame.k === "init") {
      start(frame, load).then((transport) => {
        session = new Session(transport, systemClock, frame.session, (message) => send(scope, message));
        scope.post({ k: "started" });
      }, (error) => scope.post({ k: "not-started", error: toWireError(error) }));
    } else if (frame.k === "exit") {
      // The host ends the thread when it hears this; ending it here as well would lose the message on some runtimes.
      scope.post({ k: "bye" });
    } else {
      session?.receive(frame as ToSession);
    }
  });
  scope.post({ k: "ready", version: PROTOCOL_VERSION });
}

/**
 * Posts what the session says. A transport that puts more than plain data into it must not throw in the middle of the
 * session, nor leave a caller waiting.
 */
function send(scope: Scope, message: ToHost): void {
  try {
    scope.post(pack(message));
  } catch (cause) {
    const { name } = cause as Error;
    if (message.k === "answer") {
      const error = new BrokerUnavailableError("the adapter answered with something that cannot leave its worker");
      scope.post({ k: "answer", call: message.call, error: toWireError(error) });
    } else {
      scope.post({ k: "signal", name: "not-cloneable", topic: "", details: { frame: message.k, error: name } });
    }
  }
}

async function start(
  frame: Extract<HostFrame, { k: "init" }>,
  load: () => Promise<TransportModule>,
): Promise<Transport> {
  if (frame.version !== PROTOCOL_VERSION) {
    throw new InvalidOptionError(
      `worker: this worker speaks protocol ${PROTOCOL_VERSION}, the host ${frame.version}; use the worker of the same ` +
        "version of this package",
    );
  }
  try {
    const module = await load();
    const options = frame.clientModule === undefined
      ? frame.adapter
      : await withClientModule(frame.adapter, frame.clientModule);
    return await module.createTransport(options as never, systemClock);
  } catch (error) {
    throw asStartError(error);
  }
}

/**
 * Adds what the user's `clientModule` gives to the adapter's `client` options.
 *
 * @throws InvalidOptionError when the module cannot be imported, or does not do what it should.
 */
export async function withClientModule(adapter: unknown, address: string): Promise<unknown> {
  let module: { readonly clientOptions?: unknown };
  try {
    module = await import(address);
  } catch (cause) {
    throw wrong("clientModule could not be imported; see cause", cause);
  }
  const { clientOptions } = module;
  if (typeof clientOptions !== "function") {
    throw wrong("clientModule must export a function clientOptions() that returns client options");
  }
  let given: unknown;
  try {
    given = await clientOptions();
  } catch (cause) {
    throw wrong("clientOptions() of clientModule failed; see cause", cause);
  }
  if (typeof given !== "object" || given === null) {
    throw wrong("clientOptions() of clientModule must answer an object of client options");
  }
  const { client, ...rest } = adapter as { client?: object };
  return { ...rest, client: { ...client, ...given } };
}

function wrong(text: string, cause?: unknown): InvalidOptionError {
  return new InvalidOptionError(text, {
    details: { option: "clientModule" },
    ...(cause === undefined ? {} : { cause }),
  });
}
