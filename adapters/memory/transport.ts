import type { Clock, Timer } from "../../core/clock.ts";
import type { Capabilities } from "../../core/contract.ts";
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
import type { Member, MemoryGroup, MemoryHub, Stored } from "./hub.ts";

/** What memory can do. */
export function memoryCapabilities(ordered: boolean, maxBytes: number): Capabilities {
  return {
    ordering: ordered ? "subject" : "none",
    groups: true,
    deliveryCount: "exact",
    dedupWindowMs: 0,
    delayedRelease: false,
    leaseExtension: true,
    uncountedRelease: false,
    maxBytes,
    replay: false,
    survivesBlockedHost: true,
  };
}

/** This broker's place in one group of one topic. */
class MemoryMember implements Member {
  readonly group: MemoryGroup;
  readonly #owns: (epoch: number) => void;
  #waiting: (() => void) | undefined;

  constructor(group: MemoryGroup, owns: (epoch: number) => void) {
    this.group = group;
    this.#owns = owns;
  }

  owns(epoch: number): void {
    this.#owns(epoch);
  }

  wake(): void {
    this.#waiting?.();
  }

  /** Resolves when there may be something to read, after `ms`, or on abort. */
  wait(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        timer.cancel();
        this.#waiting = undefined;
        signal.removeEventListener("abort", done);
        resolve();
      };
      const timer: Timer = clock.timer(ms, done);
      this.#waiting = done;
      signal.addEventListener("abort", done, { once: true });
      if (signal.aborted) done();
    });
  }
}

/** Native operations of the memory "broker": a hub shared by all brokers that were given it. */
export class MemoryTransport implements Transport {
  readonly capabilities: Capabilities;
  readonly stopsAtFailure = true;
  readonly #hub: MemoryHub;
  readonly #clock: Clock;
  readonly #ordered: boolean;
  readonly #members = new Map<string, MemoryMember>();
  #events: TransportEvents | undefined;
  #closed = false;

  constructor(hub: MemoryHub, clock: Clock, ordered: boolean, maxBytes: number) {
    this.#hub = hub;
    this.#clock = clock;
    this.#ordered = ordered;
    this.capabilities = memoryCapabilities(ordered, maxBytes);
  }

  open(events: TransportEvents): Promise<void> {
    this.#events = events;
    return Promise.resolve();
  }

  send(topic: string, messages: readonly Outgoing[]): Promise<readonly SendOutcome[]> {
    const outcomes: SendOutcome[] = [];
    for (const message of messages) {
      this.#hub.publish(topic, message.body);
      outcomes.push(undefined);
    }
    return Promise.resolve(outcomes);
  }

  #find(topic: string, group: string): MemoryMember | undefined {
    return this.#members.get(`${group}\0${topic}`);
  }

  /** Joins where it is none yet. */
  #join(topic: string, group: string): MemoryMember {
    const key = `${group}\0${topic}`;
    let member = this.#members.get(key);
    if (member === undefined) {
      const reading = this.#hub.group(topic, group, this.#ordered);
      member = new MemoryMember(reading, (epoch) => {
        this.#events?.owned(topic, group, 0, epoch, Infinity);
        this.#events?.topic(topic, group, "active");
      });
      this.#members.set(key, member);
      reading.join(member);
      if (!reading.mayRead(member)) this.#events?.topic(topic, group, "standby");
    }
    return member;
  }

  async fetch(topic: string, request: FetchRequest): Promise<readonly Raw[]> {
    if (this.#closed) return [];
    const member = this.#join(topic, request.group);
    let found = this.#take(member, request.max);
    if (found.length === 0 && request.waitMs > 0) {
      await member.wait(this.#clock, request.waitMs, request.signal);
      if (!request.signal.aborted) found = this.#take(member, request.max);
    }
    return found.map(toRaw);
  }

  #take(member: MemoryMember, max: number): Stored[] {
    return member.group.mayRead(member) ? member.group.take(member, max) : [];
  }

  ack(topic: string, group: string, natives: readonly Native[]): Promise<readonly NativeOutcome[]> {
    const member = this.#find(topic, group);
    const settle = (native: Native): boolean => member?.group.settle(member, native as number) ?? false;
    return Promise.resolve(natives.map((native) => outcome(settle(native))));
  }

  drop(topic: string, group: string, natives: readonly Native[]): Promise<readonly NativeOutcome[]> {
    return this.ack(topic, group, natives);
  }

  release(
    topic: string,
    group: string,
    natives: readonly Native[],
    _delayMs: number,
  ): Promise<readonly NativeOutcome[]> {
    const member = this.#find(topic, group);
    const ours = member?.group.giveBack(member, natives as readonly number[]) ?? natives.map(() => false);
    return Promise.resolve(ours.map(outcome));
  }

  unsubscribe(topic: string, group: string): Promise<void> {
    const key = `${group}\0${topic}`;
    const member = this.#members.get(key);
    if (member !== undefined) {
      this.#members.delete(key);
      member.group.leave(member);
      member.wake();
    }
    return Promise.resolve();
  }

  reset(_why: string): void {}

  close(): Promise<void> {
    this.#closed = true;
    for (const member of this.#members.values()) {
      member.group.leave(member);
      member.wake();
    }
    this.#members.clear();
    return Promise.resolve();
  }
}

function toRaw(stored: Stored): Raw {
  return { body: stored.body, native: stored.seq, partition: 0, deliveries: stored.deliveries };
}

function outcome(ours: boolean): NativeOutcome {
  return ours ? "settled" : "stale";
}
