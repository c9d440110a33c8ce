/**
 * The line between a broker object on the host and its session, in process or in a worker.
 *
 * @module
 */
import type { ToHost, ToSession } from "./session/messages.ts";

/** What the host's side listens with. */
export interface LinkSink {
  /** A message of the session. */
  receive(message: ToHost): void;
  /** The session is gone (its worker died): everything pending is lost. A new one is coming, see {@link up}. */
  down(error: Error): void;
  /** A new session stands; nothing it is told before this call reaches it. */
  up(): void;
}

/** The line. One per broker object. */
export interface Link {
  /** Starts the session; resolves when it takes messages. Rejects when it cannot be started at all. Called once. */
  start(sink: LinkSink): Promise<void>;
  /** Sends. Never throws; while the session is down, messages are dropped ({@link LinkSink.down} told so). */
  post(message: ToSession): void;
  /** Where session and host share a thread: whether our hold on a delivery ran out while the thread was busy. */
  expired?(sub: number, id: number): boolean;
  /** Ends session and thread for good, `deadlineMs` at most. Answers whether force was needed. */
  end(deadlineMs: number): Promise<{ readonly terminated: boolean }>;
}

/** Makes the link of a broker; adapters give one to {@link AsyncBroker}. */
export type LinkFactory = () => Link;
