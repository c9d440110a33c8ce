import { type Clock, pause, type Timer } from "../../core/clock.ts";
import type { Queue } from "./queue_book.ts";
import type { Message, Reader } from "./reader.ts";

/** What a poll does with messages that nobody takes in time. */
export type GiveBack = (queue: Queue, messages: readonly Message[]) => void;

/**
 * The one read of a subscription that waits at SQS. It outlasts the fetches that wait for it: SQS may hand out a message to a
 * read that was given up, which hides it from everybody until its visibility timeout. So it is given up only at the end, and
 * what it brings is kept for the next fetch, for a while.
 */
export class Poll {
  readonly #reader: Reader;
  readonly #clock: Clock;
  readonly #keepMs: number;
  readonly #generation: () => number;
  readonly #giveBack: GiveBack;
  #reading: Promise<void> | undefined;
  #end: AbortController = new AbortController();
  #promised = 0;
  #brought: readonly Message[] = [];
  #queue: Queue | undefined;
  #failure: { readonly error: unknown; readonly generation: number } | undefined;
  #keeping: Timer | undefined;
  #stopped = false;
  #wasFull = false;

  /** @param generation Of the connections: what failed on those that were replaced since says nothing any more. */
  constructor(reader: Reader, clock: Clock, keepMs: number, generation: () => number, giveBack: GiveBack) {
    this.#reader = reader;
    this.#clock = clock;
    this.#keepMs = keepMs;
    this.#generation = generation;
    this.#giveBack = giveBack;
  }

  /** How many messages it holds or may yet bring. */
  get promised(): number {
    return this.#promised + this.#brought.length;
  }

  /** Whether it brought as many as it had asked for, the last time. */
  get wasFull(): boolean {
    return this.#wasFull;
  }

  /** Begins, unless it is under way. */
  start(queue: Queue, max: number, waitSeconds: number): void {
    if (this.#reading !== undefined || this.#stopped) return;
    this.#promised = max;
    this.#queue = queue;
    const generation = this.#generation();
    this.#reading = this.#reader.receive(queue, max, waitSeconds, this.#end.signal)
      .then((messages) => this.#came(messages, max), (error) => void (this.#failure = { error, generation }))
      .finally(() => {
        this.#reading = undefined;
        this.#promised = 0;
      });
  }

  /** Resolves when it brought something or failed, after `ms`, or when `signal` aborts. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    const reading = this.#reading;
    if (reading === undefined) return;
    const over = new AbortController();
    const stop = (): void => over.abort();
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) over.abort();
    await Promise.race([reading.finally(stop), pause(this.#clock, ms, over.signal)]);
    signal.removeEventListener("abort", stop);
    over.abort();
  }

  /** Hands over what it brought, at most `max`; throws what it failed with. `waited` = whoever asks has waited for it. */
  take(max: number, waited: boolean): readonly Message[] {
    const failure = this.#failure;
    this.#failure = undefined;
    const isNews = failure !== undefined && (waited || failure.generation === this.#generation());
    if (isNews && this.#brought.length === 0) throw failure.error;
    const taken = this.#brought.slice(0, max);
    this.#brought = this.#brought.slice(max);
    if (this.#brought.length === 0) this.#keep(false);
    return taken;
  }

  #came(messages: readonly Message[], max: number): void {
    this.#wasFull = messages.length >= max;
    if (messages.length === 0) return;
    if (this.#stopped) return this.#giveBack(this.#queue!, messages);
    this.#brought = [...this.#brought, ...messages];
    this.#keep(true);
  }

  #keep(on: boolean): void {
    this.#keeping?.cancel();
    this.#keeping = on ? this.#clock.timer(this.#keepMs, () => this.#drop()) : undefined;
  }

  #drop(): void {
    this.#keep(false);
    const messages = this.#brought;
    this.#brought = [];
    if (messages.length > 0) this.#giveBack(this.#queue!, messages);
  }

  /** Gives back what it holds and what it brings within `graceMs`, then gives up. */
  async stop(graceMs: number): Promise<void> {
    this.#stopped = true;
    this.#drop();
    if (this.#reading === undefined) return;
    await this.wait(graceMs, new AbortController().signal);
    const reading = this.#reading;
    this.#end.abort();
    await reading;
  }
}
