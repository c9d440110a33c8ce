import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

/** What the client asks a socket for. */
interface SocketRequest {
  readonly host: string;
  readonly port: number;
  readonly ssl?: object | null;
  readonly onConnect: () => void;
}

/** The slice of a socket that the client uses. */
export interface SocketSlice {
  on(event: string, listener: (value?: never) => void): unknown;
  write(data: Uint8Array, encoding?: string): unknown;
  end(): unknown;
  unref(): unknown;
}

/** What a gate tells. */
export interface GateEvents {
  /** A connection was lost or not made, and none is left that stands. */
  lost(): void;
}

const PRODUCE = 0;
const FETCH = 1;

/**
 * The sockets of one client. Only so can they be destroyed at once, and the client's loops be ended: it has neither.
 *
 * A server's end of a connection reaches the client as an error. Told of the end itself, it forgets the broker, gives up its
 * place in the group when that was the last one, and comes back as a stranger whose predecessor the group still waits for.
 */
export class Gate {
  readonly #events: GateEvents;
  readonly #open = new Set<GatedSocket>();
  #closed = false;
  /** How many requests to write records were handed to the system so far. */
  produced = 0;

  constructor(events: GateEvents) {
    this.#events = events;
  }

  /** Given to the client as `socketFactory`. */
  readonly create = (request: SocketRequest): SocketSlice => {
    // The client wraps what is thrown here by its message, and tries for ever; what its message throws ends its loop.
    if (this.#closed) throw END;
    const socket = new GatedSocket(request, {
      produces: () => void this.produced++,
      gone: (lost) => {
        this.#open.delete(socket);
        if (lost && !this.#closed && ![...this.#open].some((other) => other.stands)) this.#events.lost();
      },
    });
    this.#open.add(socket);
    return socket;
  };

  /** Destroys every connection; the client is told and may connect again. */
  cut(): void {
    for (const socket of [...this.#open]) socket.destroy();
  }

  /** Destroys the connections that wait for records. */
  cutFetches(): void {
    for (const socket of [...this.#open]) if (socket.fetches) socket.destroy();
  }

  /** Destroys every connection, for good. */
  close(): void {
    this.#closed = true;
    this.cut();
  }
}

const END = Object.defineProperty({}, "message", {
  get(): never {
    throw Object.assign(new Error("the adapter closed this client"), { retriable: false });
  },
});

interface SocketEvents {
  produces(): void;
  /** `lost`: it was not ended by the client. */
  gone(lost: boolean): void;
}

class GatedSocket implements SocketSlice {
  readonly #socket: Socket;
  readonly #events: SocketEvents;
  #ended = false;
  /** Whether it was connected. */
  stands = false;
  /** Whether it carried a request for records. */
  fetches = false;

  constructor({ host, port, ssl, onConnect }: SocketRequest, events: SocketEvents) {
    this.#events = events;
    const connected = (): void => {
      this.stands = true;
      onConnect();
    };
    this.#socket = ssl
      ? connectTls({ host, port, ...(isIP(host) ? {} : { servername: host }), ...ssl }, connected)
      : connect({ host, port, noDelay: true }, connected);
    this.#socket.setKeepAlive(true, 60_000);
    this.#socket.on("end", () => {
      if (!this.#ended) this.#socket.destroy(closedByServer());
    });
    let failed = false;
    this.#socket.on("error", () => failed = true);
    // The client ends also what failed before.
    this.#socket.on("close", () => events.gone(failed || !this.#ended));
  }

  on(event: string, listener: (value?: never) => void): unknown {
    return event === "end" ? this : this.#socket.on(event, listener as (value: unknown) => void);
  }

  write(data: Uint8Array): unknown {
    // Behind the size stands the kind of the request, in two bytes.
    if (data[4] === 0 && data[5] === FETCH) this.fetches = true;
    if (data[4] === 0 && data[5] === PRODUCE) this.#events.produces();
    return this.#socket.write(data);
  }

  end(): unknown {
    this.#ended = true;
    return this.#socket.destroySoon();
  }

  unref(): unknown {
    return this.#socket.unref();
  }

  destroy(): void {
    this.#socket.destroy(Object.assign(new Error("the connection was replaced"), { code: "ECONNABORTED" }));
  }
}

function closedByServer(): Error {
  return Object.assign(new Error("the server closed the connection"), { code: "ECONNRESET" });
}
