/**
 * What the client does with its sockets, mended from outside: it lets go of those that are being opened, and of listeners that
 * are still needed.
 *
 * @module
 */
import { createConnection } from "node:net";

/** What is used of a socket. */
interface Socket {
  on(event: string, listener: (error?: Error) => void): unknown;
  removeAllListeners(event?: string): unknown;
  setNoDelay(on: boolean): unknown;
  destroy(): unknown;
}

interface Address {
  readonly hostname: string;
  readonly port: number;
}

/** What the client calls a transport: one socket, from its opening on. */
interface Transport {
  socket?: Socket | undefined;
  dial?(address: Address): Promise<Socket>;
  discard(): void;
}

/** What makes a transport for each attempt. */
export interface SocketOwner {
  transport?: Transport;
  prepare?(): unknown;
}

/** Sees to the sockets of one connection; `destroy` ends the one that is being opened. */
export function guardSockets(owner: SocketOwner): { destroy(): void } {
  const opening = new Set<Socket>();
  const prepare = owner.prepare?.bind(owner);
  if (prepare !== undefined) {
    owner.prepare = () => {
      const answer = prepare();
      if (owner.transport !== undefined) guardTransport(owner.transport, opening);
      return answer;
    };
  }
  return {
    destroy: () => {
      for (const socket of opening) socket.destroy();
    },
  };
}

function guardTransport(transport: Transport, opening: Set<Socket>): void {
  let socket: Socket | undefined;
  Object.defineProperty(transport, "socket", {
    configurable: true,
    get: () => socket,
    set: (made: Socket | undefined) => {
      socket = made;
      if (made !== undefined) keepListening(made);
    },
  });
  // The client's own forgets a socket that never connects, so that nobody could end it.
  if (typeof transport.dial === "function") transport.dial = (address) => dial(address, opening);
}

function dial({ hostname, port }: Address, opening: Set<Socket>): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket: Socket = createConnection(port, hostname);
    let failure: Error | undefined;
    opening.add(socket);
    socket.setNoDelay(true);
    socket.on("connect", () => {
      opening.delete(socket);
      socket.removeAllListeners();
      keepListening(socket);
      resolve(socket);
    });
    socket.on("error", (error) => failure = error);
    socket.on("close", () => {
      opening.delete(socket);
      reject(failure ?? new Error("the connection closed"));
    });
  });
}

/**
 * Has a socket keep a listener for errors. The client removes its own before it destroys one, and on some runtimes an error may
 * still come then, such as the reset of a server that refused the credentials: with nobody to listen it would end the process.
 */
function keepListening(socket: Socket): void {
  const ignore = (): void => {};
  const remove = socket.removeAllListeners.bind(socket);
  socket.removeAllListeners = (event?: string) => {
    if (event === undefined) remove();
    else remove(event);
    socket.on("error", ignore);
    return socket;
  };
  socket.on("error", ignore);
}
