import {
  BrokerUnavailableError,
  type EdaError,
  isEdaError,
  OutcomeUnknownError,
  PublishRefusedError,
} from "../errors.ts";
import type { Outgoing, SendOutcome, Transport } from "../transport.ts";
import type { Connection } from "./connection.ts";
import type { ToSession } from "./messages.ts";
import { PacedPlan, RunPlan, type SendPlan } from "./send_plan.ts";

/** Messages of one `publishAll` handed to the broker in one call. */
const CHUNK = 256;

type Publish = Extract<ToSession, { k: "publish" }>;
type Failures = readonly (readonly [number, EdaError])[] | undefined;

/**
 * Publishes what the host sends. Messages of a topic go to the transport in the order of their frames, also while the first
 * ones wait for the connection or a frame takes several calls. Of a chained frame, a subject ends at its first failure and
 * its later messages are refused unsent.
 */
export class Sender {
  readonly #transport: Transport;
  readonly #connection: Connection;
  readonly #timeoutMs: number;
  /** By topic: settles when all frames so far were handed to the transport. Absent: they were. */
  readonly #before = new Map<string, Promise<void>>();

  constructor(transport: Transport, connection: Connection, timeoutMs: number) {
    this.#transport = transport;
    this.#connection = connection;
    this.#timeoutMs = timeoutMs;
  }

  /** Sends one frame; answers pairs of index and error, `undefined` when all were confirmed. */
  async publish(frame: Publish): Promise<Failures> {
    const { topic } = frame;
    const before = this.#before.get(topic);
    const plan = this.#planOf(frame);
    if (before === undefined && plan === undefined && this.#connection.isOpen) return await this.#single(frame);
    // Frames that arrive while a connection is attempted share its outcome, instead of trying one after the other.
    const opening = this.#connection.isOpen ? undefined : this.#connection.ensure();
    opening?.catch(() => {});
    let handed = (): void => {};
    const mine = new Promise<void>((resolve) => handed = resolve);
    this.#before.set(topic, mine);
    try {
      await before;
      await opening;
      return await (plan === undefined ? this.#single(frame, handed) : this.#chunks(frame, plan, handed));
    } catch (error) {
      return frame.bodies.map((_, at) => [at, error as EdaError] as const);
    } finally {
      handed();
      if (this.#before.get(topic) === mine) this.#before.delete(topic);
    }
  }

  /** How a frame goes out that takes several calls of the transport; `undefined` = one call. */
  #planOf({ chained, subjects }: Publish): SendPlan | undefined {
    if (!chained) return undefined;
    if (this.#transport.stopsAtFailure === true) {
      return subjects.length <= CHUNK ? undefined : new RunPlan(subjects, CHUNK);
    }
    const keyed = subjects.filter((subject) => subject !== undefined);
    const repeated = new Set(keyed).size < keyed.length;
    return repeated || subjects.length > CHUNK ? new PacedPlan(subjects, CHUNK) : undefined;
  }

  async #single(frame: Publish, handed?: () => void): Promise<Failures> {
    return collect(await this.#send(frame, range(0, frame.bodies.length), handed), (at) => at);
  }

  async #chunks(frame: Publish, plan: SendPlan, handed: () => void): Promise<Failures> {
    const errors: (readonly [number, EdaError])[] = [];
    let down: EdaError | undefined;
    for (let first = true; plan.left > 0; first = false) {
      if (!first && down === undefined && !this.#connection.isOpen) {
        // The rest shares this attempt: one for each chunk would add up to minutes.
        down = await this.#connection.ensure().then(() => undefined, (error: EdaError) => error);
      }
      const indexes = plan.next();
      const outcomes = down === undefined
        ? await this.#send(frame, indexes, plan.left > 0 ? undefined : handed)
        : indexes.map(() => down);
      for (const [at, error] of collect(outcomes, (n) => indexes[n]!) ?? []) {
        errors.push([at, error]);
        plan.fail(at, error);
      }
      for (const [at, cause] of plan.leftOut()) errors.push([at, unsent(cause)]);
    }
    return errors.length === 0 ? undefined : errors.sort((a, b) => a[0] - b[0]);
  }

  async #send(frame: Publish, indexes: readonly number[], handed?: () => void): Promise<readonly SendOutcome[]> {
    if (indexes.length === 0) return [];
    const messages = indexes.map((at): Outgoing => ({
      body: frame.bodies[at]!,
      ...(frame.subjects[at] === undefined ? {} : { subject: frame.subjects[at] }),
      ...(frame.replay === undefined ? {} : { replay: frame.replay }),
    }));
    const send = (): Promise<readonly SendOutcome[]> => {
      const sending = this.#transport.send(frame.topic, messages);
      handed?.();
      return sending;
    };
    try {
      return await this.#connection.call(
        "publish",
        this.#timeoutMs,
        send,
        (sent) => sent.find((outcome) => isEdaError(outcome) && outcome.retriable),
      );
    } catch (cause) {
      const error = isEdaError(cause) && cause.details["deadline"] === true
        ? new OutcomeUnknownError("publish was not confirmed within publishTimeoutMs; the broker may have it", {
          cause,
        })
        : cause as Error;
      return indexes.map(() => error);
    }
  }
}

function range(from: number, to: number): number[] {
  const out: number[] = [];
  for (let at = from; at < to; at++) out.push(at);
  return out;
}

/** For a message behind the first failure of its subject: it never left. */
function unsent(first: EdaError): EdaError {
  const text = "not sent: an earlier message of its subject failed in the same publishAll";
  const options = { cause: first, details: { unsent: true } };
  return first.retriable ? new BrokerUnavailableError(text, options) : new PublishRefusedError(text, options);
}

function collect(
  outcomes: readonly SendOutcome[],
  indexOf: (at: number) => number,
): (readonly [number, EdaError])[] | undefined {
  let errors: (readonly [number, EdaError])[] | undefined;
  outcomes.forEach((outcome, at) => {
    if (outcome === undefined) return;
    (errors ??= []).push([indexOf(at), outcome as EdaError]);
  });
  return errors;
}
