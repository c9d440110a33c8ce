/**
 * The smallest transport that keeps the whole contract: a list in memory is its server. It has no order (`ordering: "none"`):
 * members of a group compete, message by message. Everything else, such as credit, deadlines, settling once, retries, and
 * health, is the session's, which drives it.
 *
 * @module
 */
import {
  type Capabilities,
  type Clock,
  type FetchRequest,
  type Native,
  type NativeOutcome,
  type Outgoing,
  pause,
  type Raw,
  type SendOutcome,
  type Transport,
  type TransportEvents,
} from "@xsm/eda/adapter";

/** What this broker can do. Data, on which the session, the dispatcher and tests branch. */
export const capabilities: Capabilities = {
  ordering: "none",
  groups: true,
  deliveryCount: "exact",
  dedupWindowMs: 0,
  delayedRelease: false,
  leaseExtension: false,
  uncountedRelease: false,
  maxBytes: 1_048_576,
  replay: true,
  survivesBlockedHost: false,
};

/** One message as one group sees it. */
interface Copy {
  readonly body: string | Uint8Array;
  deliveries: number;
  holder: ListTransport | undefined;
}

/** The "server": every transport made from one sees the same topics. */
export class ListServer {
  readonly #log = new Map<string, (string | Uint8Array)[]>();
  readonly #groups = new Map<string, Set<Copy>>();

  append(topic: string, body: string | Uint8Array): void {
    this.#log.set(topic, [...this.#log.get(topic) ?? [], body]);
    for (const [key, copies] of this.#groups) if (key.endsWith(`\0${topic}`)) copies.add(fresh(body));
  }

  /** What a group has not settled, oldest first. A new group begins at the first message. */
  group(topic: string, group: string): Set<Copy> {
    const key = `${group}\0${topic}`;
    let copies = this.#groups.get(key);
    if (copies === undefined) this.#groups.set(key, copies = new Set((this.#log.get(topic) ?? []).map(fresh)));
    return copies;
  }
}

const fresh = (body: string | Uint8Array): Copy => ({ body, deliveries: 0, holder: undefined });

/** The native operations, and nothing else. */
export class ListTransport implements Transport {
  readonly capabilities: Capabilities = capabilities;
  readonly #server: ListServer;
  readonly #clock: Clock;

  constructor(server: ListServer, clock: Clock) {
    this.#server = server;
    this.#clock = clock;
  }

  /** Connects whatever is not connected; there is nothing to connect here. */
  async open(_events: TransportEvents): Promise<void> {}

  // deno-lint-ignore require-await
  async send(topic: string, messages: readonly Outgoing[]): Promise<readonly SendOutcome[]> {
    for (const { body } of messages) this.#server.append(topic, body);
    return messages.map(() => undefined); // undefined = confirmed; else one of our publish errors
  }

  async fetch(topic: string, { group, max, waitMs, signal }: FetchRequest): Promise<readonly Raw[]> {
    const copies = this.#server.group(topic, group);
    const until = this.#clock.monotonic() + waitMs;
    for (;;) {
      const found = [...copies].filter((copy) => copy.holder === undefined).slice(0, max);
      for (const copy of found) copy.holder = this;
      if (found.length > 0) return found.map((copy) => raw(copy));
      if (signal.aborted || this.#clock.monotonic() >= until) return [];
      await pause(this.#clock, 10, signal); // a real client waits at the server
    }
  }

  ack(topic: string, group: string, natives: readonly Native[]): Promise<readonly NativeOutcome[]> {
    const copies = this.#server.group(topic, group);
    return this.#each(natives, (copy) => copies.delete(copy));
  }

  drop(topic: string, group: string, natives: readonly Native[]): Promise<readonly NativeOutcome[]> {
    return this.ack(topic, group, natives);
  }

  release(_topic: string, _group: string, natives: readonly Native[]): Promise<readonly NativeOutcome[]> {
    return this.#each(natives, (copy) => {
      copy.deliveries++;
      copy.holder = undefined;
    });
  }

  /** Does something to each message that is still ours; the others are `stale`. */
  #each(natives: readonly Native[], run: (copy: Copy) => void): Promise<readonly NativeOutcome[]> {
    return Promise.resolve((natives as readonly Copy[]).map((copy): NativeOutcome => {
      if (copy.holder !== this) return "stale";
      run(copy);
      return "settled";
    }));
  }

  /** The session has given back what we held of it. */
  async unsubscribe(_topic: string, _group: string): Promise<void> {}

  /** A call did not settle in time: destroy the connection, so that the next call makes a new one. */
  reset(_why: string): void {}

  async close(): Promise<void> {}
}

function raw(copy: Copy): Raw {
  return { body: copy.body, native: copy, partition: 0, deliveries: copy.deliveries };
}
