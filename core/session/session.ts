import { type Clock, withDeadline } from "../clock.ts";
import { BrokerUnavailableError, ClosedError, type EdaError, InvalidOptionError, isEdaError } from "../errors.ts";
import type { Transport, TransportEvents } from "../transport.ts";
import { Connection } from "./connection.ts";
import { HostClock } from "./host_clock.ts";
import { Leaving } from "./leaving.ts";
import type { ToHost, ToSession } from "./messages.ts";
import { Pump } from "./pump.ts";
import type { PumpContext, PumpIds } from "./pump_context.ts";
import { Sender } from "./sender.ts";
import { StallWatch } from "./stall_watch.ts";

/** Settings of a session; plain data, so that they can cross to a worker. */
export interface SessionOptions {
  readonly maxBytes: number;
  readonly publishTimeoutMs: number;
  readonly connectTimeoutMs: number;
  /** Deadline of every other broker call. */
  readonly callTimeoutMs: number;
  /** Without a beat of the host for this long it is assumed hung; 0 = host and session share a thread, no watch. */
  readonly maxStallMs: number;
  /** How often the host beats. */
  readonly beatMs: number;
  readonly keepCorruptBodies: boolean;
}

/** Longest wait of one read. */
const WAIT_MS = 2_000;

/**
 * Drives one transport for one broker object: connects, publishes, pumps subscriptions, keeps leases, settles, and tells the
 * truth about it. Speaks {@link ToSession} and {@link ToHost}; knows no thread.
 */
export class Session {
  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #options: SessionOptions;
  readonly #post: (message: ToHost) => void;
  readonly #connection: Connection;
  readonly #sender: Sender;
  readonly #context: PumpContext;
  readonly #pumps = new Map<number, Pump>();
  readonly #wanted = new Map<number, Extract<ToSession, { k: "subscribe" }>>();
  /** Subscriptions that are asked for and have not begun. */
  readonly #asked = new Set<number>();
  readonly #leaving = new Leaving();
  /** Probes of subscriptions that stalled: for the pump that follows. */
  #probes: { readonly sub: number; readonly call: number }[] = [];
  readonly #ids = new Map<number, PumpIds>();
  readonly #stall: StallWatch;
  readonly #hostClock: HostClock;
  #closing: Promise<void> | undefined;

  constructor(transport: Transport, clock: Clock, options: SessionOptions, post: (message: ToHost) => void) {
    this.#transport = transport;
    this.#clock = clock;
    this.#hostClock = new HostClock(clock);
    this.#options = options;
    this.#post = post;
    this.#connection = new Connection(transport, this.#events(), clock, options.connectTimeoutMs, (ok, error) => {
      post({ k: "health", ok, ...(error === undefined ? {} : { error }) });
    });
    this.#sender = new Sender(transport, this.#connection, options.publishTimeoutMs);
    this.#context = {
      transport,
      connection: this.#connection,
      clock,
      maxBytes: options.maxBytes,
      callTimeoutMs: options.callTimeoutMs,
      waitMs: WAIT_MS,
      keepCorruptBodies: options.keepCorruptBodies,
      hostTime: (at) => this.#hostClock.of(at),
      post,
    };
    this.#stall = new StallWatch(clock, options.beatMs, options.maxStallMs, {
      stalled: () => void this.#stalled(),
      resumed: () => this.#resumed(),
    });
  }

  #events(): TransportEvents {
    const find = (topic: string, group: string, use: (pump: Pump) => void): void => {
      for (const pump of this.#pumps.values()) if (pump.topic === topic && pump.group === group) use(pump);
    };
    return {
      owned: (topic, group, partition, epoch, until) =>
        find(topic, group, (pump) => pump.owned(partition, epoch, until)),
      revoked: (topic, group, partition, why) => find(topic, group, (pump) => pump.revoked(partition, why)),
      lost: (topic, group, natives, why) => find(topic, group, (pump) => pump.lostNatives(natives, why)),
      topic: (topic, group, state) => find(topic, group, (pump) => pump.told(state)),
      lag: (topic, group, count) => find(topic, group, (pump) => this.#post({ k: "lag", sub: pump.sub, count })),
      signal: (name, topic, details) =>
        this.#post({ k: "signal", name, topic, ...(details === undefined ? {} : { details }) }),
    };
  }

  /** Takes one message of the host. Never throws. */
  receive(message: ToSession): void {
    this.#stall.alive();
    switch (message.k) {
      case "beat":
        this.#hostClock.isAt(message.at);
        return this.#post({ k: "beat" });
      case "settle":
        return this.#settle(message);
      case "recorded":
        return this.#pumps.get(message.sub)?.recorded(message.id, message.ok);
      case "publish":
        return void this.#publish(message);
      case "probe":
        return this.#probe(message.call, message.sub);
      case "connect":
        return this.#answer(message.call, this.#connect());
      case "subscribe":
        this.#hostClock.isAt(message.at);
        return this.#answer(message.call, this.#subscribe(message));
      case "unsubscribe":
        return this.#answer(message.call, this.#unsubscribe(message.sub));
      case "close":
        return this.#answer(message.call, this.#close(message.drainMs));
    }
  }

  #answer(call: number, work: Promise<unknown>): void {
    work.then(
      (value) => this.#post({ k: "answer", call, value }),
      (error) => this.#post({ k: "answer", call, error }),
    );
  }

  async #connect(): Promise<unknown> {
    this.#mustBeOpen();
    await this.#connection.ensure();
    this.#connection.succeed();
    return this.#transport.capabilities;
  }

  async #publish(message: Extract<ToSession, { k: "publish" }>): Promise<void> {
    let errors: readonly (readonly [number, EdaError])[] | undefined;
    if (this.#closing !== undefined) {
      const error = closed();
      errors = message.bodies.map((_, at) => [at, error] as const);
    } else {
      errors = await this.#sender.publish(message);
    }
    this.#post({ k: "published", call: message.call, ...(errors === undefined ? {} : { errors }) });
  }

  async #subscribe(message: Extract<ToSession, { k: "subscribe" }>): Promise<unknown> {
    this.#mustBeOpen();
    this.#asked.add(message.sub);
    try {
      // That it stands is known now: the first read may wait for long, and one that stands by gets nothing at all.
      if (!this.#connection.everOpen) await this.#connect();
      await this.#leaving.gone(message.topic, message.group);
      this.#mustBeOpen();
      // Unless it was left before it began.
      if (this.#asked.has(message.sub)) {
        this.#wanted.set(message.sub, message);
        this.#startPump(message);
      }
      return this.#transport.capabilities;
    } finally {
      this.#asked.delete(message.sub);
    }
  }

  #startPump(message: Extract<ToSession, { k: "subscribe" }>): void {
    const { sub, topic, group, prefetch } = message;
    const ids = this.#ids.get(sub) ?? { delivery: 0, undecodable: 0, read: false };
    this.#ids.set(sub, ids);
    const pump = new Pump(this.#context, sub, topic, group, prefetch, ids);
    this.#pumps.set(sub, pump);
    this.#stall.watch(true);
    pump.pull();
    this.#probeAgain();
  }

  async #unsubscribe(sub: number): Promise<{ released: number }> {
    this.#asked.delete(sub);
    this.#wanted.delete(sub);
    this.#ids.delete(sub);
    this.#probeAgain();
    const pump = this.#pumps.get(sub);
    const quietMs = this.#options.callTimeoutMs;
    const released = pump === undefined ? 0 : await this.#leave(pump, "the subscription ended", quietMs);
    this.#stall.watch(this.#wanted.size > 0);
    return { released };
  }

  /** Stops a pump and gives back what it holds, once it is quiet or after `quietMs`. */
  #leave(pump: Pump, why: string, quietMs: number): Promise<number> {
    const probes = pump.stop();
    const left = this.#leaving.run(pump, () => this.#giveBack(pump, why, quietMs));
    for (const call of probes) this.#probe(call, pump.sub);
    return left;
  }

  async #giveBack(pump: Pump, why: string, quietMs: number): Promise<number> {
    await pump.quiet(quietMs);
    if (this.#pumps.get(pump.sub) === pump) this.#pumps.delete(pump.sub);
    const natives = pump.surrender(why);
    const { topic, group } = pump;
    try {
      if (natives.length > 0) {
        await this.#deadline(this.#transport.release(topic, group, natives, 0), "giving back");
      }
      await this.#deadline(this.#transport.unsubscribe(topic, group), "leaving");
    } catch (error) {
      this.#connection.fail(error);
    }
    return natives.length;
  }

  #deadline<T>(work: Promise<T>, name: string): Promise<T> {
    return withDeadline(
      this.#clock,
      this.#options.callTimeoutMs,
      work,
      () => new BrokerUnavailableError(`${name} did not settle within its deadline`),
    );
  }

  #settle(message: Extract<ToSession, { k: "settle" }>): void {
    const pump = this.#pumps.get(message.sub);
    if (pump !== undefined) return pump.settle(message.acks, message.drops, message.call);
    if (message.call !== undefined) this.#post({ k: "answer", call: message.call, value: "stale" });
  }

  #probe(call: number, sub: number): void {
    const pump = this.#pumps.get(sub);
    if (pump !== undefined && !this.#leaving.has(pump)) pump.probe(call);
    else if (this.#wanted.has(sub)) this.#probes.push({ sub, call });
    else this.#post({ k: "answer", call, value: "empty" });
  }

  /** Looks anew at probes that waited for a pump. */
  #probeAgain(): void {
    for (const { sub, call } of this.#probes.splice(0)) this.#probe(call, sub);
  }

  async #stalled(): Promise<void> {
    const left = [...this.#pumps.values()].map((pump) => {
      this.#post({ k: "topic", sub: pump.sub, state: "stalled" });
      return this.#leave(pump, "the host did not beat", this.#shortMs);
    });
    await Promise.all(left);
    if (!this.#stall.stalled) this.#resumed();
  }

  /** Long enough for what is on its way, where nobody can wait. */
  get #shortMs(): number {
    return Math.min(1_000, this.#options.callTimeoutMs);
  }

  #resumed(): void {
    for (const message of this.#wanted.values()) {
      if (this.#pumps.has(message.sub) || this.#leaving.hasOf(message.topic, message.group)) continue;
      this.#post({ k: "topic", sub: message.sub, state: "active" });
      this.#startPump(message);
    }
  }

  async #close(drainMs: number): Promise<{ released: number; unconfirmed: number }> {
    let report = { released: 0, unconfirmed: 0 };
    this.#closing ??= (async () => {
      this.#stall.watch(false);
      this.#wanted.clear();
      const pumps = [...this.#pumps.values()];
      const quietMs = Math.max(drainMs, this.#shortMs);
      const released = await Promise.all(pumps.map((pump) => this.#leave(pump, "the broker was closed", quietMs)));
      await this.#leaving.allGone();
      const unconfirmed = pumps.reduce((sum, pump) => sum + pump.unconfirmed, 0);
      report = { released: released.reduce((sum, count) => sum + count, 0), unconfirmed };
      this.#connection.close();
      await this.#deadline(this.#transport.close(), "closing").catch(() => this.#transport.reset("closing"));
    })();
    await this.#closing;
    return report;
  }

  /** Whether our hold on a delivery ran out; for a host on the same thread. */
  expired(sub: number, id: number): boolean {
    return this.#pumps.get(sub)?.expiredId(id) ?? true;
  }

  #mustBeOpen(): void {
    if (this.#closing !== undefined) throw closed();
  }
}

function closed(): ClosedError {
  return new ClosedError("the broker is closed; make a new one");
}

/** Turns whatever a transport factory threw into one of our errors. */
export function asStartError(cause: unknown): EdaError {
  if (isEdaError(cause)) return cause;
  return new InvalidOptionError("the adapter could not be set up with these options; see cause", { cause });
}
