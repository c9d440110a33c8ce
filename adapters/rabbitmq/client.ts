/**
 * The slice of amqplib 2 that is used, and how a connection is made.
 *
 * @module
 */
import { ClientMissingError } from "../../core/errors.ts";

/** A message as it arrives. */
export interface MessageSlice {
  readonly fields: {
    readonly deliveryTag: number;
    readonly redelivered: boolean;
    readonly exchange: string;
    readonly routingKey: string;
  };
  readonly properties: {
    readonly contentType?: unknown;
    readonly messageId?: unknown;
    readonly headers?: Readonly<Record<string, unknown>>;
  };
  readonly content: Uint8Array;
}

/** What a queue holds at this moment, by its declaration. */
export interface QueueCounts {
  readonly messageCount: number;
  readonly consumerCount: number;
}

/** One channel. Every promise rejects when the channel or its connection ends. */
export interface ChannelSlice {
  on(event: "error" | "close" | "return", listener: (argument?: unknown) => void): unknown;
  assertQueue(queue: string, options: QueueOptions): Promise<QueueCounts>;
  checkQueue(queue: string): Promise<QueueCounts>;
  bindQueue(queue: string, exchange: string, pattern: string): Promise<unknown>;
  assertExchange(exchange: string, type: string, options: ExchangeOptions): Promise<unknown>;
  checkExchange(exchange: string): Promise<unknown>;
  bindExchange(destination: string, source: string, pattern: string): Promise<unknown>;
  prefetch(count: number): Promise<unknown>;
  consume(
    queue: string,
    onMessage: (message: MessageSlice | null) => void,
    options: { readonly noAck: false; readonly priority?: number },
  ): Promise<unknown>;
  ack(message: TagSlice, allUpTo: boolean): void;
  nack(message: TagSlice, allUpTo: boolean, requeue: boolean): void;
  /** Of a channel with confirms only. */
  publish(
    exchange: string,
    routingKey: string,
    content: Uint8Array,
    options: PublishOptions,
    confirmed: (refused: unknown) => void,
  ): boolean;
  close(): Promise<unknown>;
}

/** Runs `use` with an open channel; a call that closes the channel gets a new one the next time. */
export type OnChannel = <T>(use: (channel: ChannelSlice) => Promise<T>) => Promise<T>;

/** All that a settle needs of a message. */
export interface TagSlice {
  readonly fields: { readonly deliveryTag: number };
}

/** How a queue is declared. */
export interface QueueOptions {
  readonly durable: boolean;
  readonly arguments: Readonly<Record<string, string | number | boolean>>;
}

/** How an exchange is declared. */
export interface ExchangeOptions {
  readonly durable: boolean;
  readonly internal?: boolean;
  readonly arguments?: Readonly<Record<string, string>>;
}

/** How a message is published. */
export interface PublishOptions {
  readonly mandatory: true;
  readonly persistent: true;
  readonly contentType: string;
  readonly messageId: string;
  readonly type?: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The socket under a connection. */
export interface StreamSlice {
  readonly destroyed: boolean;
  once(event: "close", listener: () => void): unknown;
  destroy(error?: Error): void;
}

/** One connection. */
export interface ConnectionSlice {
  readonly connection: {
    readonly stream: StreamSlice;
    readonly serverProperties?: Readonly<Record<string, unknown>>;
    /** As agreed on, seconds; 0 = none. */
    readonly heartbeat?: number;
  };
  on(event: "error" | "close" | "blocked" | "unblocked", listener: (argument?: unknown) => void): unknown;
  createChannel(): Promise<ChannelSlice>;
  createConfirmChannel(): Promise<ChannelSlice>;
  close(): Promise<unknown>;
}

/** Opens one connection. */
export type Connect = (server: object, socket: object) => Promise<ConnectionSlice>;

/** Loads amqplib when it is needed, so that this package works without it for those who use other brokers. */
export async function loadClient(): Promise<Connect> {
  let module: { readonly connect?: unknown; readonly default?: { readonly connect?: unknown } };
  try {
    module = await import("amqplib") as never;
  } catch (cause) {
    throw new ClientMissingError(
      "the npm package amqplib is not installed: `npm install amqplib`, `deno add npm:amqplib` or `bun add amqplib`",
      { cause },
    );
  }
  const found = module.connect ?? module.default?.connect;
  if (typeof found !== "function") {
    throw new ClientMissingError("the installed amqplib is not one this adapter knows: version 2");
  }
  return found as Connect;
}
