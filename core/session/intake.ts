import { inspect } from "../codec.ts";
import { type EdaError, EnvelopeCorruptError, isEdaError } from "../errors.ts";
import type { Raw } from "../transport.ts";
import type { ToHost } from "./messages.ts";
import type { Entry } from "./pump_context.ts";

/** What one read brought. */
export interface Intake {
  /** Entries of the readable ones; ids count up from the first. */
  readonly good: readonly Entry[];
  readonly texts: readonly string[];
  readonly dataAt: readonly number[];
  /** Only when any is above 0. */
  readonly attempts: readonly number[] | undefined;
  readonly bad: readonly { readonly entry: Entry; readonly body: Uint8Array | string; readonly error: EdaError }[];
  /** Those whose body the broker no longer has. */
  readonly gone: readonly Entry[];
  /** Whether any has a lease of its own. */
  readonly leased: boolean;
}

/** Those that are still ours `ageMs` after the read was sent: without a lease of their own, or with one that is not over. */
export function unexpired(raws: readonly Raw[], ageMs: number): readonly Raw[] {
  return raws.filter(({ leaseMs }) => leaseMs === undefined || ageMs <= leaseMs);
}

/** The readable ones as the host is told of them. */
export function toDeliver(sub: number, base: number, found: Intake): Extract<ToHost, { k: "deliver" }> {
  const { texts, dataAt, attempts } = found;
  return { k: "deliver", sub, base, texts, dataAt, ...(attempts === undefined ? {} : { attempts }) };
}

/** Reads a batch. One that cannot be read never keeps back the others. */
export function takeIn(raws: readonly Raw[], base: number, sentAt: number, maxBytes: number): Intake {
  const good: Entry[] = [];
  const texts: string[] = [];
  const dataAt: number[] = [];
  const attempts: number[] = [];
  const bad: Intake["bad"][number][] = [];
  const gone: Entry[] = [];
  let counted = false;
  let leased = false;
  for (const raw of raws) {
    leased ||= raw.leaseMs !== undefined;
    if (raw.body === null) {
      gone.push(entryOf(-1, raw, sentAt));
      continue;
    }
    try {
      const found = inspect(raw.body, { maxBytes });
      const entry = entryOf(base + good.length, raw, sentAt);
      good.push(entry);
      texts.push(found.text);
      dataAt.push(found.binary ? -found.dataAt - 2 : found.dataAt);
      attempts.push(entry.deliveries);
      counted ||= entry.deliveries > 0;
    } catch (cause) {
      const error = isEdaError(cause)
        ? cause
        : new EnvelopeCorruptError("not-json", "the message could not be read", { cause });
      bad.push({ entry: entryOf(-1, raw, sentAt), body: raw.body, error });
    }
  }
  return { good, texts, dataAt, attempts: counted ? attempts : undefined, bad, gone, leased };
}

function entryOf(id: number, raw: Raw, sentAt: number): Entry {
  return {
    id,
    native: raw.native,
    partition: raw.partition,
    deliveries: toCount(raw.deliveries),
    leaseUntil: raw.leaseMs === undefined ? Infinity : sentAt + raw.leaseMs,
    leaseMs: raw.leaseMs ?? 0,
  };
}

/** A broker's count as a whole number; anything else reads as 0, so that one odd count loses no message. */
function toCount(value: unknown): number {
  const count = typeof value === "boolean" ? Number(value) : Math.floor(Number(value));
  return Number.isFinite(count) && count > 0 ? count : 0;
}
