/**
 * For authors of adapters: the transport interface, the broker base class, and what a worker entry calls. See
 * `docs/writing-an-adapter.md`.
 *
 * @module
 */
export { AsyncBroker, type BrokerSetup } from "../core/broker.ts";
export {
  BROKER_OPTION_NAMES,
  type BrokerOptions,
  sessionOptions,
  WORKER_OPTION_NAMES,
  type WorkerOptions,
} from "../core/broker_options.ts";
export { Alarm, Backoff, type Clock, pause, systemClock, type Timer, withDeadline } from "../core/clock.ts";
export type { Capabilities } from "../core/contract.ts";
export * from "../core/errors.ts";
export { checkNumber, checkOneOf, checkOptions, checkRange } from "../core/options.ts";
export type { SessionOptions } from "../core/session/session.ts";
export type * from "../core/transport.ts";
export { type LinkChoice, linkFor } from "./link_for.ts";
export { serve, type TransportModule } from "./serve.ts";
