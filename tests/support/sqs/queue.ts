/**
 * One queue by the rules that the documentation of SQS states, where the emulator of the bed is stricter or laxer: a receive
 * brings several messages of one group in order, the group is locked while one of it is in flight, a receipt that ran out is
 * no good, and a receive that is tried again with its attempt id brings the same messages.
 *
 * @module
 */
import { createHash } from "node:crypto";

/** A message that the queue holds. */
export interface StoredMessage {
  readonly id: string;
  readonly body: string;
  readonly group: string | undefined;
  readonly number: number;
  receipt: string | undefined;
  receives: number;
  firstReceivedAt: number;
  visibleAt: number;
}

/** A failure of one message of a batch. */
export interface Refusal {
  readonly Code: string;
  readonly SenderFault: boolean;
}

const MOST_HELD_MS = 43_200_000;
const DEDUP_MS = 300_000;
// deno-lint-ignore no-control-regex
const REFUSED = /[^\x09\x0A\x0D\x20-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/u;

export const md5 = (text: string): string => createHash("md5").update(text).digest("hex");

export class RulesQueue {
  readonly fifo: boolean;
  readonly attributes: Readonly<Record<string, string>>;
  readonly #now: () => number;
  #messages: StoredMessage[] = [];
  readonly #seen = new Map<string, { readonly at: number; readonly id: string }>();
  readonly #attempts = new Map<string, readonly StoredMessage[]>();
  #numbers = 0;
  /** Wakes receives that wait. */
  #wake: (() => void)[] = [];

  constructor(name: string, attributes: Readonly<Record<string, string>>, now: () => number = Date.now) {
    this.fifo = name.endsWith(".fifo");
    this.attributes = attributes;
    this.#now = now;
  }

  get all(): readonly StoredMessage[] {
    return this.#messages;
  }

  get inFlight(): number {
    return this.#messages.filter((message) => this.#isHidden(message)).length;
  }

  get visible(): number {
    return this.#messages.length - this.inFlight;
  }

  #isHidden(message: StoredMessage): boolean {
    return message.visibleAt > this.#now();
  }

  send(body: string, group?: string, dedup?: string): { readonly id: string } | Refusal {
    if (body === "") return { Code: "MissingParameter", SenderFault: true };
    if (REFUSED.test(body)) return { Code: "InvalidMessageContents", SenderFault: true };
    if (this.fifo && (group === undefined || dedup === undefined)) {
      return { Code: "MissingParameter", SenderFault: true };
    }
    const key = `${group}\0${dedup}`;
    const before = this.#seen.get(key);
    if (this.fifo && before !== undefined && this.#now() - before.at < DEDUP_MS) return { id: before.id };
    const number = ++this.#numbers;
    const id = `m-${number}`;
    if (this.fifo) this.#seen.set(key, { at: this.#now(), id });
    this.#messages.push({
      id,
      body,
      group: this.fifo ? group : undefined,
      number,
      receipt: undefined,
      receives: 0,
      firstReceivedAt: 0,
      visibleAt: 0,
    });
    this.#wakeAll();
    return { id };
  }

  receive(max: number, visibilityMs: number, attempt?: string): readonly StoredMessage[] {
    const again = attempt === undefined ? undefined : this.#attempts.get(attempt);
    if (again?.every((message) => this.#messages.includes(message) && this.#isHidden(message))) {
      for (const message of again) message.visibleAt = this.#now() + visibilityMs;
      return again;
    }
    const locked = new Set(this.#messages.filter((one) => this.#isHidden(one)).map(({ group }) => group));
    const free = this.#messages.filter((one) => !this.#isHidden(one) && !(this.fifo && locked.has(one.group)));
    // As many of one group as there are, then of the next one.
    const groups = [...new Set(free.map(({ group }) => group))];
    const found = groups.flatMap((group) => free.filter((one) => one.group === group)).slice(0, max);
    for (const message of found) {
      message.receives++;
      message.receipt = `${message.id}-${message.receives}-${crypto.randomUUID()}`;
      message.firstReceivedAt = this.#now();
      message.visibleAt = this.#now() + visibilityMs;
    }
    if (attempt !== undefined && found.length > 0) this.#attempts.set(attempt, found);
    return found;
  }

  /** The same, waiting for the first one. A receive whose client is gone gets nothing. */
  async wait(
    max: number,
    visibilityMs: number,
    waitMs: number,
    gone: AbortSignal,
    attempt?: string,
  ): Promise<readonly StoredMessage[]> {
    const until = this.#now() + waitMs;
    for (;;) {
      if (gone.aborted) return [];
      const found = this.receive(max, visibilityMs, attempt);
      const left = until - this.#now();
      if (found.length > 0 || left <= 0) return found;
      const next = Math.min(left, ...this.#messages.map(({ visibleAt }) => Math.max(5, visibleAt - this.#now())));
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, next);
        const wake = (): void => {
          clearTimeout(timer);
          resolve();
        };
        this.#wake.push(wake);
        gone.addEventListener("abort", wake, { once: true });
      });
    }
  }

  delete(receipt: string): Refusal | undefined {
    const message = this.#held(receipt);
    // A standard queue answers so too, whatever the receipt.
    if (message === undefined) return this.fifo ? { Code: "ReceiptHandleIsInvalid", SenderFault: true } : undefined;
    this.#messages = this.#messages.filter((other) => other !== message);
    this.#wakeAll();
    return undefined;
  }

  change(receipt: string, visibilityMs: number): Refusal | undefined {
    const message = this.#held(receipt);
    if (message === undefined) return { Code: "MessageNotInflight", SenderFault: true };
    if (this.#now() + visibilityMs > message.firstReceivedAt + MOST_HELD_MS) {
      return { Code: "InvalidParameterValue", SenderFault: true };
    }
    message.visibleAt = this.#now() + visibilityMs;
    if (visibilityMs === 0) {
      message.receipt = undefined;
      this.#wakeAll();
    }
    return undefined;
  }

  #held(receipt: string): StoredMessage | undefined {
    return this.#messages.find((message) => message.receipt === receipt && this.#isHidden(message));
  }

  #wakeAll(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }
}
