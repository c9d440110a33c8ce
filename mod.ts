/**
 * Event-driven services on any broker, for Deno, Bun and Node: one small contract (publish, subscribe, ack, nack), CloudEvents
 * envelopes, a dispatcher for plain handlers and state machines, inbox, outbox and dead letters.
 *
 * This entry holds everything that needs no broker client, the memory broker and the memory store included. Each broker has
 * an entry of its own, such as `@xsm/eda/redis`.
 *
 * @example
 * ```ts
 * import { InboundDispatcher, MemoryBroker } from "@xsm/eda";
 *
 * const broker = new MemoryBroker({ source: "/shop" });
 * await broker.publish("orders", { type: "shop.order.placed", subject: "o-1", data: { total: 42 } });
 *
 * const app = new InboundDispatcher({
 *   broker,
 *   routes: { "shop.order.placed": (envelope) => console.log(envelope.subject, envelope.data) },
 * });
 * await app.runOnce(["orders"]);
 * await broker.close();
 * ```
 *
 * @module
 */
export { MemoryBroker, type MemoryBrokerOptions, MemoryHub } from "./adapters/memory/mod.ts";
export type { BrokerOptions, SettleErrorReport, WorkerOptions } from "./core/broker_options.ts";
export { type Clock, systemClock, type Timer } from "./core/clock.ts";
export { decodeEnvelope, textOf, withCause } from "./core/codec.ts";
export type * from "./core/contract.ts";
export type { Context, Handler, Middleware } from "./core/dispatch/context.ts";
export { type DispatcherHealth, InboundDispatcher } from "./core/dispatch/dispatcher.ts";
export type { DispatcherOptions } from "./core/dispatch/dispatcher_options.ts";
export type { Outcome, OutcomeReport, RunReport } from "./core/dispatch/outcomes.ts";
export type { Route, RouteResult, RouteScope } from "./core/dispatch/route.ts";
export { shutdownSignal } from "./core/dispatch/shutdown.ts";
export type { Envelope, EnvelopeInit, Scalar } from "./core/envelope.ts";
export * from "./core/errors.ts";
export type { Logger } from "./core/logger.ts";
export type * from "./core/store/contract.ts";
export { MemoryStore, type MemoryStoreOptions } from "./core/store/memory_store.ts";
export { defineTopics, typed } from "./core/topics.ts";
export type { AnyTopics, EnvelopeOf, InitOf, Schema, TopicName, Topics } from "./core/topics.ts";
