import { type Clock, pause } from "../../core/clock.ts";
import { BrokerUnavailableError } from "../../core/errors.ts";
import type { NativeOutcome } from "../../core/transport.ts";
import type { Api } from "./api.ts";
import type { Action } from "./client.ts";
import { asError, isCodeForNow, isQueueMissing, plainCode } from "./errors.ts";
import { batchesOf, type SqsNative } from "./held.ts";
import { MOST_HELD_MS } from "./limits.ts";

/** Batches in flight of one call. */
const MOST_FLYING = 8;
/** How often a message is tried that SQS did not settle through no fault of it. */
const TRIES = 4;
const AGAIN_MS = 50;

interface Answer {
  readonly Successful?: readonly { readonly Id?: string }[];
  readonly Failed?: readonly { readonly Id?: string; readonly Code?: string; readonly SenderFault?: boolean }[];
}

type Extra = (native: SqsNative) => Readonly<Record<string, unknown>>;

/**
 * Deletes messages and changes how long they stay hidden, in batches; what fails within a batch is tried again alone. One that
 * SQS says is not ours becomes `gone`.
 */
export class Settles {
  readonly #api: Api;
  readonly #clock: Clock;
  readonly #visibilityMs: number;

  constructor(api: Api, clock: Clock, visibilityMs: number) {
    this.#api = api;
    this.#clock = clock;
    this.#visibilityMs = visibilityMs;
  }

  /** Deletes; those that a former call deleted already are not sent again. */
  async delete(url: string, natives: readonly SqsNative[]): Promise<readonly NativeOutcome[]> {
    const ours = natives.filter(({ state }) => state === "held" || state === "deleting");
    for (const native of ours) native.state = "deleting";
    try {
      await this.#each("DeleteMessageBatch", url, ours, () => ({}), (native) => native.state = "deleted");
    } finally {
      for (const native of ours) if (native.state === "deleting") native.state = "held";
    }
    return natives.map(({ state }) => state === "deleted" ? "settled" : "stale");
  }

  /** Hides for another window, but never past SQS's own limit; at the limit it is `stale`. */
  async extend(url: string, natives: readonly SqsNative[]): Promise<readonly NativeOutcome[]> {
    const ends = this.#clock.monotonic() + this.#visibilityMs;
    const over = new Set(natives.filter(({ since }) => ends > since + MOST_HELD_MS));
    const ours = natives.filter((native) => native.state === "held" && !over.has(native));
    await this.#visibility(url, ours, this.#visibilityMs / 1_000);
    return natives.map((native) =>
      over.has(native) || native.state === "gone" || native.state === "replaced" ? "stale" : "settled"
    );
  }

  /** Shows them to others after `delayMs`, rounded up to whole seconds. */
  async release(url: string, natives: readonly SqsNative[], delayMs: number): Promise<readonly NativeOutcome[]> {
    const ours = natives.filter(({ state }) => state === "held");
    await this.#visibility(url, ours, Math.ceil(delayMs / 1_000));
    return natives.map(({ state }) => state === "held" ? "settled" : "stale");
  }

  #visibility(url: string, natives: readonly SqsNative[], seconds: number): Promise<void> {
    const extra = { VisibilityTimeout: seconds };
    return this.#each("ChangeMessageVisibilityBatch", url, natives, () => extra, () => {});
  }

  /** Resolves when each of them is done or gone; rejects when SQS would not say so of one. */
  async #each(
    action: Action,
    url: string,
    natives: readonly SqsNative[],
    extra: Extra,
    done: (native: SqsNative) => void,
  ): Promise<void> {
    const batches = batchesOf(natives);
    let failure: unknown;
    const work = async (): Promise<void> => {
      for (let batch = batches.shift(); batch !== undefined; batch = batches.shift()) {
        try {
          await this.#batch(action, url, batch, extra, done);
        } catch (error) {
          failure ??= error;
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(MOST_FLYING, batches.length) }, work));
    if (failure !== undefined) throw failure;
  }

  async #batch(
    action: Action,
    url: string,
    batch: readonly SqsNative[],
    extra: Extra,
    done: (native: SqsNative) => void,
  ): Promise<void> {
    let left = batch;
    for (let tries = 1;; tries++) {
      const entries = left.map((native, at) => ({ Id: String(at), ReceiptHandle: native.receipt, ...extra(native) }));
      let answer: Answer;
      try {
        answer = await this.#api.call<Answer>(action, { QueueUrl: url, Entries: entries });
      } catch (error) {
        if (!isQueueMissing(error)) throw asError(action, error);
        for (const native of left) native.state = "gone";
        return;
      }
      const ok = new Set(answer.Successful?.map(({ Id }) => Id));
      const failed = new Map(answer.Failed?.map((one) => [one.Id, one]));
      const again: SqsNative[] = [];
      left.forEach((native, at) => {
        const id = String(at);
        const no = failed.get(id);
        if (ok.has(id)) done(native);
        else if (no !== undefined && isGone(no.Code, no.SenderFault)) native.state = "gone";
        else again.push(native);
      });
      if (again.length === 0) return;
      if (tries === TRIES) {
        throw new BrokerUnavailableError(`SQS did not do ${action} for some messages`, { details: { action } });
      }
      await pause(this.#clock, AGAIN_MS * 2 ** (tries - 1));
      left = again;
    }
  }
}

/** Codes that say that the receipt is no longer good. */
const GONE: ReadonlySet<string> = new Set(["MessageNotInflight", "ReceiptHandleIsInvalid"]);

/** Whether trying again cannot help: the receipt ran out, or SQS calls it our fault. */
function isGone(code: unknown, senderFault: boolean | undefined): boolean {
  return GONE.has(plainCode(code)) || senderFault === true && !isCodeForNow(code);
}
