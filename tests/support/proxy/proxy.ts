/**
 * A TCP proxy with faults, to stand between a client and a server.
 *
 * @module
 */
import { connect, createServer, type Server, type Socket } from "node:net";
import { type Fault, noFault, Pipe } from "./pipe.ts";

/** From the client to the server (`up`), back (`down`), or both ways. */
export type Direction = "up" | "down" | "both";

/** Where a proxy listens and forwards to. */
export interface ProxyOptions {
  /** The server's port. */
  readonly port: number;
  /** The server's host; 127.0.0.1 by default. */
  readonly host?: string;
  /** The port to listen on at 127.0.0.1; a free one by default. */
  readonly listen?: number;
}

/** What a proxy counted since its start. */
export interface ProxyCounts {
  /** Connections that it accepted. */
  readonly accepted: number;
  /** Connections open now, on the client's side. */
  readonly open: number;
  /** Bytes passed on from clients to the server. */
  readonly up: number;
  /** Bytes passed on back. */
  readonly down: number;
}

/** A running proxy. Every switch holds for open and for later connections until {@link Proxy.heal}. */
export interface Proxy extends AsyncDisposable {
  /** The port on 127.0.0.1 where it listens. */
  readonly port: number;
  /** The same URL with the proxy's host and port in place of the server's. */
  url(serverUrl: string): string;
  /** Resets every open connection on both sides. New ones are taken as before. */
  cut(): Promise<void>;
  /** Cuts every open connection after `bytes` more bytes passed in one direction, summed over all connections; once. */
  cutAfter(bytes: number, direction: "up" | "down"): Promise<void>;
  /** Stops listening: a new connection is refused by the system. Open ones go on. */
  refuse(): Promise<void>;
  /** Listens again. */
  accept(): Promise<void>;
  /** Passes nothing on, no bytes and no closing; connections stay open and new ones are taken. */
  blackHole(direction?: Direction): Promise<void>;
  /** Passes every byte on `ms` late. */
  delay(ms: number, direction?: Direction): Promise<void>;
  /** Passes on at most so many bytes a second for each connection. */
  slow(bytesPerSecond: number, direction?: Direction): Promise<void>;
  /** Ends every fault: passes on what was held, and listens. */
  heal(): Promise<void>;
  /** What it counted. */
  counts(): Promise<ProxyCounts>;
  /** Resolves when it has accepted `total` connections since its start. Give it a deadline of your own. */
  arrivals(total: number): Promise<void>;
  /** Ends it and every connection. Twice does nothing. */
  close(): Promise<void>;
}

interface Link {
  readonly client: Socket;
  readonly server: Socket;
  readonly pipes: readonly Pipe[];
}

/** Starts a proxy in this process. */
export async function startProxy(options: ProxyOptions): Promise<Proxy> {
  const proxy = new LocalProxy(options);
  await proxy.accept();
  return proxy;
}

/** `serverUrl` with `127.0.0.1:port` in place of its host and port. */
export function throughPort(serverUrl: string, port: number): string {
  const found = serverUrl.match(/^([a-z+]+:\/\/(?:[^@/]*@)?)[^/?#]*(.*)$/i);
  if (found === null) throw new TypeError("A proxy needs a URL of the form scheme://host:port");
  return `${found[1]}127.0.0.1:${port}${found[2]}`;
}

/** Ends a socket so that its peer sees a reset where the runtime can send one. */
function reset(socket: Socket): void {
  if (typeof socket.resetAndDestroy === "function") socket.resetAndDestroy();
  else socket.destroy();
}

class LocalProxy implements Proxy {
  readonly #target: { readonly host: string; readonly port: number };
  readonly #faults: { readonly up: Fault; readonly down: Fault } = { up: noFault(), down: noFault() };
  readonly #links = new Set<Link>();
  readonly #waiting = new Set<() => void>();
  #port: number;
  #listener: Server | undefined;
  #accepted = 0;
  #closed = false;

  constructor(options: ProxyOptions) {
    this.#target = { host: options.host ?? "127.0.0.1", port: options.port };
    this.#port = options.listen ?? 0;
  }

  get port(): number {
    return this.#port;
  }

  url(serverUrl: string): string {
    return throughPort(serverUrl, this.#port);
  }

  cut(): Promise<void> {
    this.#endAll(reset);
    return Promise.resolve();
  }

  cutAfter(bytes: number, direction: "up" | "down"): Promise<void> {
    return this.#switch(direction, (fault) => fault.cutAfter = bytes);
  }

  refuse(): Promise<void> {
    // Its callback waits for open connections, which go on; listening ends at once.
    this.#listener?.close();
    this.#listener = undefined;
    return Promise.resolve();
  }

  accept(): Promise<void> {
    if (this.#listener !== undefined || this.#closed) return Promise.resolve();
    const listener = createServer({ allowHalfOpen: true }, (client) => this.#join(client));
    this.#listener = listener;
    return new Promise((resolve, reject) => {
      listener.once("error", reject);
      listener.listen(this.#port, "127.0.0.1", () => {
        const address = listener.address();
        if (typeof address === "object" && address !== null) this.#port = address.port;
        resolve();
      });
    });
  }

  blackHole(direction: Direction = "both"): Promise<void> {
    return this.#switch(direction, (fault) => fault.hole = true);
  }

  delay(ms: number, direction: Direction = "both"): Promise<void> {
    return this.#switch(direction, (fault) => fault.delayMs = ms);
  }

  slow(bytesPerSecond: number, direction: Direction = "both"): Promise<void> {
    return this.#switch(direction, (fault) => fault.bytesPerSecond = bytesPerSecond);
  }

  async heal(): Promise<void> {
    await this.#switch("both", (fault) => Object.assign(fault, { ...noFault(), passed: fault.passed }));
    await this.accept();
  }

  counts(): Promise<ProxyCounts> {
    const { up, down } = this.#faults;
    return Promise.resolve({
      accepted: this.#accepted,
      open: [...this.#links].filter(({ client }) => !client.destroyed).length,
      up: up.passed,
      down: down.passed,
    });
  }

  async arrivals(total: number): Promise<void> {
    while (this.#accepted < total && !this.#closed) {
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
    if (this.#accepted < total) throw new Error(`The proxy closed after ${this.#accepted} of ${total} connections`);
  }

  async close(): Promise<void> {
    this.#closed = true;
    const listener = this.#listener;
    this.#listener = undefined;
    const ended = [...this.#links].flatMap(({ client, server }) => [client, server]).map(closed);
    this.#endAll((socket) => socket.destroy());
    this.#wake();
    await Promise.all(ended);
    if (listener !== undefined) await new Promise<void>((resolve) => listener.close(() => resolve()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #switch(direction: Direction, change: (fault: Fault) => void): Promise<void> {
    for (const way of direction === "both" ? ["up", "down"] as const : [direction]) change(this.#faults[way]);
    for (const link of this.#links) link.pipes.forEach((pipe) => pipe.pump());
    return Promise.resolve();
  }

  #join(client: Socket): void {
    const server = connect({ ...this.#target, allowHalfOpen: true });
    const cut = () => this.#endAll((socket) => socket.destroy());
    const up = new Pipe(client, server, this.#faults.up, cut);
    const down = new Pipe(server, client, this.#faults.down, cut);
    const link: Link = { client, server, pipes: [up, down] };
    this.#links.add(link);
    for (const socket of [client, server]) {
      socket.setNoDelay(true);
      // The close that follows an error is what counts.
      socket.on("error", () => {});
      socket.on("close", () => {
        if (client.destroyed && server.destroyed) this.#links.delete(link);
      });
    }
    down.open();
    server.on("connect", () => up.open());
    this.#accepted++;
    this.#wake();
  }

  #endAll(end: (socket: Socket) => void): void {
    for (const { client, server, pipes } of this.#links) {
      pipes.forEach((pipe) => pipe.stop());
      end(client);
      end(server);
    }
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.destroyed ? resolve() : socket.once("close", () => resolve()));
}
