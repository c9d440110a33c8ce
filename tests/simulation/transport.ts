/**
 * A transport over the simulated line, as an adapter's author would write it: ordered with the library's own ownership code, or
 * unordered with a lease a message.
 *
 * @module
 */
import { type Clock, withDeadline } from "../../core/clock.ts";
import type { Capabilities } from "../../core/contract.ts";
import { BrokerUnavailableError, isEdaError, OutcomeUnknownError } from "../../core/errors.ts";
import type {
  FetchRequest,
  Native,
  NativeOutcome,
  Outgoing,
  Raw,
  SendOutcome,
  Transport,
  TransportEvents,
} from "../../core/transport.ts";
import type { Line } from "./network.ts";
import { OrderedReading } from "./ordered_reading.ts";
import { partitionOf, type Reach, type Reading, type SimNative } from "./reach.ts";
import type { Server } from "./server.ts";
import { UnorderedReading } from "./unordered_reading.ts";

/** Settings of the transports of one run. */
export interface TransportSettings {
  readonly ordered: boolean;
  readonly partitions: number;
  readonly leaseMs: number;
  readonly commandMs: number;
  readonly defect: TransportDefect | undefined;
}

/** What a broken transport does: it keeps to itself what it lost and until when it owns, or it brings everything twice. */
export type TransportDefect = "silent" | "doubles";

/** What a run hears of its transports besides what the session hears. */
export interface TransportTaps {
  /** A settle is handed to the transport; answers what is to be called when it was answered or failed. */
  settling(natives: readonly SimNative[]): () => void;
  /** A partition ended at this transport. */
  revoked(partition: number, epoch: number): void;
  /** Its reading of the topic ended. */
  left(): void;
}

/** What this broker can do. */
export function capabilitiesOf(ordered: boolean): Capabilities {
  return {
    ordering: ordered ? "subject" : "none",
    groups: true,
    deliveryCount: "hint",
    dedupWindowMs: 0,
    delayedRelease: false,
    leaseExtension: true,
    uncountedRelease: true,
    maxBytes: 65_536,
    replay: true,
    survivesBlockedHost: true,
  };
}

/** The transport of one member. */
export class SimTransport implements Transport {
  readonly capabilities: Capabilities;
  readonly stopsAtFailure = true;
  readonly extend?: (topic: string, group: string, natives: readonly Native[]) => Promise<readonly NativeOutcome[]>;
  readonly #reach: Reach;
  readonly #settings: TransportSettings;
  readonly #taps: TransportTaps;
  readonly #readings = new Map<string, Reading>();
  #events: TransportEvents | undefined;

  constructor(
    name: string,
    server: Server,
    line: Line,
    clock: Clock,
    settings: TransportSettings,
    taps: TransportTaps,
  ) {
    const { leaseMs, commandMs, partitions, ordered } = settings;
    this.capabilities = capabilitiesOf(ordered);
    this.#settings = settings;
    this.#taps = taps;
    const ask = <T>(op: () => T): Promise<T> =>
      withDeadline(clock, commandMs, line.call("main", op), () => {
        line.reset();
        return new BrokerUnavailableError("the server did not answer in time");
      });
    this.#reach = { name, server, line, clock, leaseMs, commandMs, partitions, ask };
    if (!ordered) {
      this.extend = async (topic, group, natives) =>
        await this.#find(topic, group)?.extend?.(natives as SimNative[]) ?? natives.map(() => "stale");
    }
  }

  async open(events: TransportEvents): Promise<void> {
    this.#events = events;
    const { line } = this.#reach;
    if (line.connected) await this.#reach.ask(() => {});
    else await line.ready();
  }

  async send(_topic: string, messages: readonly Outgoing[]): Promise<readonly SendOutcome[]> {
    const { line, server, partitions } = this.#reach;
    if (!line.connected) await line.ready();
    const append = (): void => {
      for (const { body, subject } of messages) {
        server.publish(partitionOf(subject, partitions), subject, body, (JSON.parse(body) as { id: string }).id);
      }
    };
    try {
      await line.call("publish", append);
      return messages.map(() => undefined);
    } catch (error) {
      if (isEdaError(error)) return messages.map(() => error);
      return messages.map(() => new OutcomeUnknownError("the answer was lost", { cause: error }));
    }
  }

  async fetch(topic: string, request: FetchRequest): Promise<readonly Raw[]> {
    const key = `${request.group}\0${topic}`;
    let reading = this.#readings.get(key);
    if (reading === undefined) {
      const events = this.#events!;
      reading = this.#settings.ordered
        ? new OrderedReading(this.#reach, {
          owned: (partition, epoch, until) => {
            const told = this.#settings.defect === "silent" ? Infinity : until;
            events.owned(topic, request.group, partition, epoch, told);
          },
          revoked: (partition, epoch, why) => {
            this.#taps.revoked(partition, epoch);
            if (this.#settings.defect !== "silent") events.revoked(topic, request.group, partition, why);
          },
          state: (state) => events.topic(topic, request.group, state),
        })
        : new UnorderedReading(this.#reach);
      this.#readings.set(key, reading);
    }
    const raws = await reading.fetch(request);
    return this.#settings.defect === "doubles" ? [...raws, ...raws] : raws;
  }

  #find(topic: string, group: string): Reading | undefined {
    return this.#readings.get(`${group}\0${topic}`);
  }

  async #settle(
    kind: "ack" | "drop",
    topic: string,
    group: string,
    natives: readonly SimNative[],
  ): Promise<readonly NativeOutcome[]> {
    const over = this.#taps.settling(natives);
    try {
      // Not a turn later than it must be: the reads that follow count on it.
      if (!this.#reach.line.connected) await this.#reach.line.ready();
      return await this.#find(topic, group)?.settle(kind, natives) ?? natives.map(() => "stale");
    } finally {
      over();
    }
  }

  ack(topic: string, group: string, natives: readonly Native[]): Promise<readonly NativeOutcome[]> {
    return this.#settle("ack", topic, group, natives as SimNative[]);
  }

  drop(topic: string, group: string, natives: readonly Native[]): Promise<readonly NativeOutcome[]> {
    return this.#settle("drop", topic, group, natives as SimNative[]);
  }

  async release(topic: string, group: string, natives: readonly Native[]): Promise<readonly NativeOutcome[]> {
    return await this.#find(topic, group)?.release(natives as SimNative[]) ?? natives.map(() => "stale");
  }

  async unsubscribe(topic: string, group: string): Promise<void> {
    const reading = this.#find(topic, group);
    this.#readings.delete(`${group}\0${topic}`);
    this.#taps.left();
    await reading?.stop();
  }

  reset(): void {
    this.#reach.line.reset();
  }

  async close(): Promise<void> {
    const readings = [...this.#readings.values()];
    this.#readings.clear();
    await Promise.all(readings.map((reading) => reading.stop()));
    this.#reach.line.close();
  }
}
