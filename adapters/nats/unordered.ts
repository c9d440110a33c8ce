import { pause, withDeadline } from "../../core/clock.ts";
import { InvalidOptionError } from "../../core/errors.ts";
import type { FetchRequest, NativeOutcome, Raw } from "../../core/transport.ts";
import type { ConsumerInfo } from "./api.ts";
import type { NatsContext, NatsNative } from "./context.ts";
import { refusal } from "./errors.ts";
import { GroupFloor } from "./group_floor.ts";
import { pull } from "./pull.ts";
import { ACK, nak, settle, TERM, WORKING } from "./settles.ts";
import { SharedDurable } from "./shared_durable.ts";
import type { Subscription } from "./subscription.ts";
import type { Topic } from "./topic_book.ts";
import { bodyOf, placeOf } from "./wire.ts";

/** How long a read may take to end when it is told to. */
const QUIET_MS = 500;
/** How long to wait after the server ended a wait early, which it does for its own reasons. */
const REST_MS = 100;

/** One topic and group with `ordered: false`: competes for messages with everybody who reads the group's durable. */
export class UnorderedSubscription implements Subscription {
  readonly #context: NatsContext;
  readonly #topic: Topic;
  readonly #group: string;
  readonly #durable: SharedDurable;
  readonly #floor: GroupFloor;
  /** The latest hold of each message, by its sequence: one that came again to us has another. */
  readonly #held = new Map<number, NatsNative>();
  readonly #fetches = new Set<Promise<unknown>>();
  /** Of fetches on their way. */
  readonly #ends = new Set<AbortController>();
  #stopped = false;
  #told = false;

  constructor(context: NatsContext, topic: Topic, group: string) {
    this.#context = context;
    this.#topic = topic;
    this.#group = group;
    this.#floor = new GroupFloor(context, topic, group);
    this.#durable = new SharedDurable(context, topic, group, this.#floor, () => this.#durableLost());
  }

  fetch(request: FetchRequest): Promise<readonly Raw[]> {
    const end = new AbortController();
    const abort = (): void => end.abort();
    request.signal.addEventListener("abort", abort, { once: true });
    if (request.signal.aborted || this.#stopped) abort();
    this.#ends.add(end);
    const work = this.#fetch(request, end.signal);
    const done = work.then(() => {}, () => {}).finally(() => {
      request.signal.removeEventListener("abort", abort);
      this.#ends.delete(end);
      this.#fetches.delete(done);
    });
    this.#fetches.add(done);
    return work;
  }

  async #fetch(request: FetchRequest, end: AbortSignal): Promise<readonly Raw[]> {
    const { clock, main, topics, api, events } = this.#context;
    const startedAt = clock.monotonic();
    for (;;) {
      if (!main.live) await main.ready();
      if (!this.#topic.checked) await topics.check(this.#topic, api);
      const info = await this.#durable.ready();
      const leaseMs = leaseOf(info, this.#context.options.ackWaitMs);
      mustHold(info, request.window);
      if (!this.#told) {
        this.#told = true;
        events.topic(this.#topic.name, this.#group, "active");
      }
      // The session counts a message's lease from when it asked, so the wait must be short against it.
      const left = startedAt + Math.min(request.waitMs, leaseMs / 4) - clock.monotonic();
      if (end.aborted) return [];
      const raws: Raw[] = [];
      const askedAt = clock.monotonic();
      const how = await pull(this.#context, {
        stream: this.#topic.names.stream,
        durable: info.name,
        batch: request.max,
        waitMs: Math.max(0, Math.floor(left)),
        take: (message) => {
          const place = placeOf(message.reply);
          if (place === undefined) return;
          const native: NatsNative = { partition: 0, epoch: 0, seq: place.seq, reply: message.reply!, settled: false };
          this.#held.set(place.seq, native);
          raws.push({ body: bodyOf(message), native, partition: 0, deliveries: place.delivered - 1, leaseMs });
        },
        signal: end,
      });
      if (how === "gone" || how === "silent") this.#durable.doubt();
      this.#floor.look();
      if (this.#stopped) return await this.#tooLate(raws);
      if (raws.length > 0 || end.aborted) return raws;
      if (how !== "gone" && left <= clock.monotonic() - askedAt) return [];
      // A durable that is gone is made again once; then the caller asks again.
      if (how === "gone" && request.waitMs === 0) return [];
      if (clock.monotonic() - askedAt < REST_MS) await pause(clock, REST_MS, end);
    }
  }

  async #tooLate(raws: readonly Raw[]): Promise<readonly Raw[]> {
    await this.release(raws.map((raw) => raw.native as NatsNative), 0).catch(() => {});
    return [];
  }

  /** The durable was made anew: what was handed out comes again to whoever is first. */
  #durableLost(): void {
    const { events } = this.#context;
    events.signal("group-lost", this.#topic.name, { group: this.#group });
    const lost = [...this.#held.values()];
    this.#held.clear();
    if (lost.length > 0) events.lost(this.#topic.name, this.#group, lost, "the durable was lost");
  }

  ack(natives: readonly NatsNative[]): Promise<readonly NativeOutcome[]> {
    return this.#settle(natives, ACK);
  }

  drop(natives: readonly NatsNative[]): Promise<readonly NativeOutcome[]> {
    return this.#settle(natives, TERM);
  }

  async #settle(natives: readonly NatsNative[], what: string): Promise<readonly NativeOutcome[]> {
    const outcomes = await this.#send(natives, what);
    this.#letGo(natives);
    this.#floor.settled();
    return outcomes;
  }

  async extend(natives: readonly NatsNative[]): Promise<readonly NativeOutcome[]> {
    const outcomes = await this.#send(natives, WORKING);
    this.#letGo(natives.filter((_, at) => outcomes[at] === "stale"));
    return outcomes;
  }

  async release(natives: readonly NatsNative[], delayMs: number): Promise<readonly NativeOutcome[]> {
    // A pull that was told to end is remembered by the server until it looks: it would try the first one on it, and put it
    // behind the others then.
    if (natives.length > 1) await this.#durable.look().catch(() => {});
    const outcomes = await this.#send(natives, nak(delayMs));
    this.#letGo(natives);
    return outcomes;
  }

  #letGo(natives: readonly NatsNative[]): void {
    for (const native of natives) if (this.#held.get(native.seq) === native) this.#held.delete(native.seq);
  }

  /**
   * Sends what is still the latest hold of its message. The server takes a word about an earlier one for a word about the
   * later, which would end it in the hands that have it now.
   */
  async #send(natives: readonly NatsNative[], what: string): Promise<readonly NativeOutcome[]> {
    const latest = natives.map((native) => (this.#held.get(native.seq) ?? native) === native);
    try {
      const answers = await settle(this.#context.main, natives.filter((_, at) => latest[at]), what);
      let next = 0;
      return latest.map((sent) => sent ? answers[next++]! : "stale");
    } catch (error) {
      throw refusal("a settle", error);
    }
  }

  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    for (const end of this.#ends) end.abort();
    const { clock } = this.#context;
    const quiet = Promise.all([...this.#fetches]);
    await withDeadline(clock, QUIET_MS, quiet, () => new Error("still reading")).catch(() => {});
    await this.release([...this.#held.values()], 0).catch(() => {});
    await this.#floor.stop();
  }
}

/** How long the server waits for a sign of life, ms: what was given at its making, which may differ from our option. */
function leaseOf({ config }: ConsumerInfo, fallbackMs: number): number {
  const waits = [config.ack_wait ?? fallbackMs * 1_000_000, ...config.backoff ?? []];
  return Math.floor(Math.min(...waits) / 1_000_000);
}

/** @throws InvalidOptionError where the durable would let fewer messages wait than the subscription holds. */
function mustHold({ config }: ConsumerInfo, window: number): void {
  const most = config.max_ack_pending ?? -1;
  if (most <= 0 || most >= window) return;
  throw new InvalidOptionError(
    `prefetch is ${window}, and the durable of this group lets ${most} wait (max_ack_pending): it would stop for ever`,
    { details: { option: "prefetch", most } },
  );
}
