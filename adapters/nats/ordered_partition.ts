import { pause } from "../../core/clock.ts";
import type { Raw } from "../../core/transport.ts";
import type { MessageSlice } from "./client.ts";
import type { NatsContext, NatsNative } from "./context.ts";
import { refusal } from "./errors.ts";
import type { Begun } from "./owner_store.ts";
import type { Durable } from "./partition_durables.ts";
import { Progress, type Snapshot } from "./progress.ts";
import { pull } from "./pull.ts";
import { ACK, WORKING } from "./settles.ts";
import { bodyOf, placeOf } from "./wire.ts";

/** What a partition asks and tells its subscription. */
export interface PartitionEvents {
  /** Makes another durable; `undefined` = the partition is another's, `replaced` = its stream is another one. */
  again(partition: number, epoch: number): Promise<Begun | "replaced" | undefined>;
  /** What was read in this epoch is not in the stream any more, or the partition is not ours. */
  over(partition: number, why: string): void;
  /** There may be something to hand out or to ask for, or nothing held any more. */
  changed(partition: number): void;
}

/** Pulls of one partition that may be on their way at a time: the next one is asked for while the last is being answered. */
const MAX_PULLS = 2;
/** How long to wait after a pull that ended early and brought nothing. */
const REST_MS = 100;

/**
 * One partition while this member owns it. Messages come in the order of the stream, whichever pull brings them, and wait here
 * until they are handed out.
 *
 * ```text
 * off      begin(epoch)                          -> live
 * live     a pull ended otherwise than it should -> doubt: no further pull until the server was asked
 * doubt    the durable delivered what we got     -> live
 * doubt    it is gone, or delivered more         -> live on another durable, from the first unsettled message on; what we hold
 *                                                   or settled is delivered again and not handed out
 * doubt    the stream is another one             -> given up, and sought anew
 * any      end()                                 -> off
 * ```
 */
export class OrderedPartition {
  readonly partition: number;
  readonly progress: Progress = new Progress();
  /** When it was last read, in its subscription's count of reads. */
  turn = 0;
  readonly #context: NatsContext;
  readonly #stream: string;
  readonly #events: PartitionEvents;
  #epoch: number | undefined;
  #durable: Durable = { name: "", startsAfter: 0 };
  #deliveredTo = 0;
  #lastSeen = 0;
  #doubt = false;
  #asking: Promise<void> | undefined;
  /** In the order of the stream, not handed out yet. */
  #ready: Raw[] = [];
  readonly #pulls = new Map<AbortController, Promise<unknown>>();
  /** What pulls on their way may still bring. */
  #asked = 0;
  #settling = 0;
  #ended: { readonly epoch: number; readonly snapshot: Snapshot } | undefined;

  constructor(context: NatsContext, stream: string, partition: number, events: PartitionEvents) {
    this.#context = context;
    this.#stream = stream;
    this.partition = partition;
    this.#events = events;
  }

  /** It became ours. */
  begin(epoch: number, begun: Begun): void {
    this.end();
    this.#epoch = epoch;
    this.#use(begun);
    this.#deliveredTo = begun.deliveredTo;
    this.progress.begin(begun.from);
  }

  #use({ durable }: Begun): void {
    this.#durable = durable;
    this.#lastSeen = durable.startsAfter;
    this.#doubt = false;
  }

  /** It is ours no more: what was handed out is lost. */
  end(): void {
    if (this.#epoch === undefined) return;
    this.#ended = { epoch: this.#epoch, snapshot: this.progress.snapshot() };
    this.#epoch = undefined;
    this.#ready = [];
    this.#settling = 0;
    this.progress.clear();
    this.cancel();
  }

  /** How far it is, or was when that epoch ended. */
  snapshot(epoch: number): Snapshot | undefined {
    if (this.#epoch === epoch) return this.progress.snapshot();
    return this.#ended?.epoch === epoch ? this.#ended.snapshot : undefined;
  }

  /** The name of the durable that it reads. */
  get durable(): string {
    return this.#durable.name;
  }

  /** Messages that wait to be handed out. */
  get ready(): number {
    return this.#ready.length;
  }

  /** Whether nothing of it is held or on its way. */
  get idle(): boolean {
    return this.progress.held === 0 && this.#pulls.size === 0;
  }

  /** Whether a further pull may be sent: the first, or one more. */
  mayPull(more: boolean): boolean {
    if (this.#epoch === undefined || this.#asking !== undefined) return false;
    return this.#pulls.size === 0 || (more && !this.#doubt && this.#pulls.size < MAX_PULLS);
  }

  /** How many more messages it may ask for before it holds `share` unsettled. */
  room(share: number): number {
    return share - (this.progress.held - this.#settling) - this.#asked;
  }

  /** The next ones in order. */
  take(max: number): Raw[] {
    return this.#ready.splice(0, max);
  }

  /** Ends what waits at the server; resolves when nothing more can come of it. */
  async cancel(): Promise<void> {
    const pulls = [...this.#pulls.values()];
    for (const abort of this.#pulls.keys()) abort.abort();
    await Promise.allSettled(pulls);
  }

  /** Resolves when nothing more can come of pulls that were told to end. */
  async left(): Promise<void> {
    await Promise.allSettled([...this.#pulls].filter(([{ signal }]) => signal.aborted).map(([, pull]) => pull));
  }

  /** Asks for at most `max` messages; they are ready when it resolves. */
  async pull(max: number, waitMs: number): Promise<void> {
    const epoch = this.#epoch;
    if (epoch === undefined) return;
    if (this.#doubt) await (this.#asking ??= this.#ask(epoch).finally(() => this.#asking = undefined));
    if (this.#epoch !== epoch || this.#doubt) return;
    const abort = new AbortController();
    const work = this.#pull(epoch, max, waitMs, abort.signal);
    this.#pulls.set(abort, work);
    try {
      await work;
    } finally {
      this.#pulls.delete(abort);
      this.#events.changed(this.partition);
    }
  }

  async #pull(epoch: number, max: number, waitMs: number, signal: AbortSignal): Promise<void> {
    let left = max;
    this.#asked += max;
    const { name: durable } = this.#durable;
    const request = { stream: this.#stream, durable, batch: max, waitMs, signal };
    const take = (message: MessageSlice): void => {
      left--;
      this.#asked--;
      if (this.#epoch === epoch) this.#arrived(message, epoch);
    };
    const { clock } = this.#context;
    const askedAt = clock.monotonic();
    try {
      if (await pull(this.#context, { ...request, take }) !== "done" && this.#epoch === epoch) this.#doubt = true;
      // A server ends a wait early for reasons of its own, and would do so again at once.
      if (left === max && waitMs > REST_MS && clock.monotonic() - askedAt < REST_MS) {
        await pause(clock, REST_MS, signal);
      }
    } catch (error) {
      if (this.#epoch === epoch) this.#doubt = true;
      throw refusal("reading", error);
    } finally {
      this.#asked -= left;
    }
  }

  #arrived(message: MessageSlice, epoch: number): void {
    const place = placeOf(message.reply);
    if (place === undefined) return;
    const { seq, delivered } = place;
    const { partition } = this;
    const native: NatsNative = { partition, epoch, seq, reply: message.reply!, settled: false };
    if (seq > this.#lastSeen) this.#lastSeen = seq;
    const arrival = this.progress.arrived(native, delivered > 1);
    if (arrival === "settled") this.#context.main.tell(native.reply, ACK);
    if (arrival !== "new") return;
    const deliveries = delivered - 1 + (seq <= this.#deliveredTo ? 1 : 0);
    this.#ready.push({ body: bodyOf(message), native, partition, epoch, deliveries });
  }

  /** Asks the server whether what it delivered has come, and reads another durable if not. */
  async #ask(epoch: number): Promise<void> {
    await this.cancel();
    const { api } = this.#context;
    try {
      const info = await api.consumer(this.#stream, this.#durable.name);
      if (this.#epoch !== epoch) return;
      if (info !== undefined && info.delivered.stream_seq <= this.#lastSeen) {
        this.#doubt = false;
        return;
      }
      const begun = await this.#events.again(this.partition, epoch);
      if (this.#epoch !== epoch) return;
      if (begun === undefined) return this.#events.over(this.partition, "another member took it");
      if (begun === "replaced") return this.#events.over(this.partition, "the stream is another one");
      this.progress.again();
      this.#use(begun);
    } catch (error) {
      throw refusal("looking at the durable", error);
    }
  }

  /** A settle found no durable: no further pull until the server was asked. */
  suspect(): void {
    this.#doubt = true;
    void this.cancel();
  }

  /** Settles are on their way; at the server they take no room any more. */
  settling(count: number, epoch: number): void {
    if (this.#epoch === epoch) this.#settling += count;
    this.#events.changed(this.partition);
  }

  /** Settles were confirmed. */
  settled(natives: readonly NatsNative[], epoch: number): void {
    if (this.#epoch !== epoch) return;
    this.progress.settle(natives);
    this.#events.changed(this.partition);
  }

  /** Tells the server that what is held is not forgotten, or it would deliver it again, in vain. */
  keep(): void {
    for (const { reply } of this.progress.unsettled()) this.#context.main.tell(reply, WORKING);
  }
}
