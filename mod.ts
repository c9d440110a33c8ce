/**
 * Event-driven services on any broker, for Deno, Bun and Node.
 *
 * @module
 */
export * from "./core/contract.ts";
export * from "./core/errors.ts";
