/**
 * A broker as the benchmarks see it: this library's broker class, and the raw client as somebody who knows it well would use
 * it. One file in `bench/brokers/` for each.
 *
 * @module
 */
import type { AsyncBroker } from "../../core/broker.ts";
import type { StartOptions } from "../../tests/support/bed/kind.ts";
import type { Order } from "./event.ts";

/** How one of ours is made. */
export interface OursOptions {
  /** In place of the server's own: of a proxy in front of it. */
  readonly url?: string;
  /** `worker` by default. */
  readonly isolation?: "worker" | "inline";
  /** True by default. */
  readonly ordered?: boolean;
  /** Messages; the default of the broker by default. */
  readonly prefetch?: number;
  readonly group?: string;
  /** Replaces whatever bounds how long a silent consumer keeps its messages: a lease, an ack wait, a heartbeat; milliseconds. */
  readonly leaseMs?: number;
  readonly onDisconnect?: () => void;
  readonly onReconnect?: () => void;
}

/** Messages that are ready, and where. Each place is read once. */
export interface Place {
  readonly topic: string;
  readonly group: string;
}

/** What a handler of the raw loops is given. */
export interface RawEvent {
  readonly type: string;
  readonly subject: string;
  readonly data: Order;
}

/** Reads and acks `count` messages with the raw client, 256 in flight at most. */
export type RawLoop = (place: Place, count: number, handle: (event: RawEvent) => void) => Promise<void>;

/** Publishes `count` events with the raw client; resolves when the last one is confirmed. */
export type RawPublish = (topic: string, count: number) => Promise<void>;

/** An open benchmark on one server. */
export interface BenchServer {
  /** A broker of ours; its source is `SOURCE`, its logger off. */
  ours(options?: OursOptions): AsyncBroker;
  /** Makes `count` messages ready to be read once, by one of ours with `ordered`, or by a raw loop. */
  stock(count: number, reader: "ordered" | "unordered" | "raw"): Promise<Place>;
  /** An empty topic to publish to; what is in it is not read. */
  empty(): Promise<string>;
  /** The best loops somebody would write: the simple one first, the fastest one found second. */
  readonly loops: readonly { readonly name: string; readonly run: RawLoop }[];
  /** The best ways to publish many that somebody would write; the first one with one promise a message, 256 in flight. */
  readonly publishers: readonly { readonly name: string; readonly run: RawPublish }[];
  /** The raw client publishing one message after the other. */
  readonly oneAtATime: RawPublish;
  /** Publishes one message with the raw client. */
  send(place: Place, n: number): Promise<void>;
  /** CPU time of the server so far, microseconds; absent where it cannot be known. */
  serverCpu?(): Promise<number>;
  /** Client connections that the server has taken since its start. */
  connections(): Promise<number>;
  /** Ends the raw clients, removes what was made. */
  close(): Promise<void>;
}

/** A broker. */
export interface BenchBroker {
  /** Kinds of server that it may run on; the first one that is installed is started. */
  readonly servers: readonly [string, ...string[]];
  /** The name of the environment variable that gives a server instead. */
  readonly env: string;
  /** Starts a server so that what it confirmed survives SIGKILL. */
  readonly durable: StartOptions;
  /** Messages of a run: of `consume` and `publish`, of `delay`, of `backlog`. */
  readonly counts: { readonly run: number; readonly delay: number; readonly backlog: number };
  /** What the first reference system reached on such a machine, messages a second. */
  readonly reference: { readonly publish: number; readonly consume: number };
  /** What `leaseMs` stands for, as a word for the figures. */
  readonly lease: string;
  /** The lease of `blocked`, milliseconds. */
  readonly leaseMs: number;
  open(url: string): Promise<BenchServer>;
}
